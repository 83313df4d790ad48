"""When a run of a suite is done."""

from launch.run_dir import RunDir
from launch.suite.suite_run import is_finished
from report.metrics_file import MetricsFile
from tests.launch.suite.small_suite import finish, plan


def test_a_run_is_finished_once_its_end_is_scored(tmp_path):
    [planned, *_] = plan(tmp_path)
    assert not is_finished(planned.run_dir, planned.config)
    planned.run_dir.create(planned.config)
    metrics = MetricsFile(planned.run_dir.metrics_file)
    metrics.append([{"time": 1.0, "role": "evaluator", "frames": 1000, "eval_return": 1.0}])
    metrics.append([{"time": 1.0, "role": "learner", "frames": 1600}])
    assert not is_finished(planned.run_dir, planned.config)
    finish(planned)
    assert is_finished(RunDir(planned.run_dir.root), planned.config)
