"""The job array of a suite, as text and as what a task starts."""

import pathlib
import subprocess

import pytest

from launch.engines.options import SlurmOptions
from launch.engines.slurm.scripts import learner_script
from launch.run_dir import RunDir
from launch.suite.plan import PlannedRun
from launch.suite.slurm_script import suite_script
from tests.launch.batch_scripts import RUN_DIR, command_line_of, make_record, options_of
from tests.launch.tiny_run import tiny_config


def make_planned(name: str, *args: str) -> PlannedRun:
    return PlannedRun("pong", "va", 1, RunDir(pathlib.Path(name)), args, tiny_config())


def test_a_suite_is_an_array_whose_tasks_are_its_runs():
    tasks = {3: make_planned("pong-va-seed1"), 7: make_planned("pong-q-seed1", "--game=pong")}
    slurm = SlurmOptions(learner_partition="gpu", learner_gres="gpu:1", time="1-0")
    script = suite_script(slurm, "vantage-suite-c0ffee", tasks, RUN_DIR)
    options = options_of(script)
    assert options["--job-name"] == "vantage-suite-c0ffee"
    assert options["--partition"] == "gpu" and options["--gres"] == "gpu:1"
    # Actors share the host with the learner.
    alone = options_of(learner_script(make_record(), tiny_config(), RUN_DIR))["--mem"]
    assert int(options["--mem"][:-1]) > int(alone[:-1])
    assert 'scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"' in script


@pytest.mark.parametrize("started", [False, True])
def test_a_task_of_a_suite_starts_its_run_or_continues_it(tmp_path, started):
    out = tmp_path / "my suite"
    (out / "logs").mkdir(parents=True)
    if started:
        (out / "pong-q-seed1").mkdir()
        (out / "pong-q-seed1" / "config.json").touch()
    tasks = {3: make_planned("pong-va-seed1"), 7: make_planned("pong-q-seed1", "--game", "a b")}
    script = suite_script(SlurmOptions(), "name", tasks, out)
    # What would train says what it was asked instead.
    script = script.replace(command_line_of(script), "printf '%s\\n' \"$@\"")
    environment = {"SLURM_ARRAY_TASK_ID": "7", "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", "-c", script], env=environment, check=True, timeout=30)
    said = (out / "logs" / "pong-q-seed1.log").read_text().splitlines()
    resume = ["--resume"] if started else []
    assert said == ["--game", "a b", "--run-dir", str(out / "pong-q-seed1"), *resume]
