"""Runs as a report reads them: scores, pace, and what is said of damaged files."""

import json
import math

import pytest

from report.final_scores import table_of
from report.methods import methods_of
from report.metrics_file import MetricsFile
from report.paper_table import Score, paper_scores
from report.runs import find_runs
from tests.report.synthetic_runs import REFERENCES, write_run


def read(folder):
    """Runs and warnings."""
    said: list[str] = []
    return find_runs(folder, REFERENCES, said.append), said


def test_a_run_says_what_was_run_how_far_it_is_and_how_fast_it_went(tmp_path):
    write_run(tmp_path / "run", returns=(-20.7, 14.6), total_frames=3000, seed=7)
    [run], said = read(tmp_path)
    assert (run.game, run.algorithm, run.seed, run.frames) == ("pong", "va", 7, 2000)
    assert run.evaluations.normalized.tolist() == [0.0, 1.0]
    assert (run.pace.seconds, run.pace.frames_per_second) == (10.0, 100.0)
    assert not run.finished and not said


def test_a_folder_that_is_a_run_is_found_and_so_are_runs_deep_below(tmp_path):
    write_run(tmp_path / "run" / "deep" / "er")
    assert len(read(tmp_path)[0]) == 1
    assert len(read(tmp_path / "run" / "deep" / "er")[0]) == 1


def test_a_run_that_ends_at_a_whole_step_and_plays_on_a_little_is_finished_at_its_total(tmp_path):
    write_run(tmp_path / "short", total_frames=3002)
    write_run(tmp_path / "long", total_frames=2990)
    [long, short], _ = read(tmp_path)
    assert short.finished and long.finished
    assert long.evaluations.frames.tolist() == [1000, 2000, 2990]


def test_evaluations_after_a_step_back_replace_those_of_the_lost_past(tmp_path):
    path = write_run(tmp_path / "run", returns=(1.0, 2.0, 3.0))
    MetricsFile(path / "metrics.jsonl").append(
        [{"time": 200.0, "role": "evaluator", "frames": 2000, "eval_return": 9.0}]
    )
    [run], _ = read(tmp_path)
    assert run.evaluations.frames.tolist() == [1000, 2000]
    assert run.evaluations.returns.tolist() == [1.0, 9.0]


def test_time_while_stopped_is_no_time_of_training(tmp_path):
    path = write_run(tmp_path / "run", returns=(1.0, 2.0))
    MetricsFile(path / "metrics.jsonl").append(
        [
            {"time": 9000.0, "role": "learner", "frames": 2000},
            {"time": 9010.0, "role": "learner", "frames": 3000},
        ]
    )
    [run], _ = read(tmp_path)
    assert (run.pace.seconds, run.pace.frames) == (20.0, 2000.0)


def test_nan_returns_are_left_out_and_the_file_is_named(tmp_path):
    path = write_run(tmp_path / "run", returns=(1.0, math.nan, None, 4.0))
    [run], [said] = read(tmp_path)
    assert run.evaluations.returns.tolist() == [1.0, 4.0]
    assert said == (
        f"{path / 'metrics.jsonl'}: 2 evaluations whose return is not a number left out"
    )


def test_half_written_and_damaged_lines_are_named_and_the_rest_is_kept(tmp_path):
    path = write_run(tmp_path / "run")
    metrics = path / "metrics.jsonl"
    lines = metrics.read_text().splitlines()
    metrics.write_text("\n".join([lines[0], '{"time": 1', *lines[1:], '{"time": 9, "ro']))
    [run], said = read(tmp_path)
    assert len(run.evaluations.frames) == 3
    assert [message.split(": ")[0] for message in said] == [
        f"{metrics}, line 2",
        f"{metrics}, line 8",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "is not a run's config"), ("{}", "has no 'config'"), ("[]", "is not a run's config")],
)
def test_a_damaged_config_is_named_and_the_other_runs_stay(tmp_path, text, reason):
    write_run(tmp_path / "good")
    bad = write_run(tmp_path / "bad")
    (bad / "config.json").write_text(text)
    runs, [said] = read(tmp_path)
    assert [run.path.name for run in runs] == ["good"]
    assert said.startswith(f"{bad / 'config.json'}: {reason}")


def test_a_game_without_reference_scores_keeps_its_raw_ones(tmp_path):
    path = write_run(tmp_path / "run", game="chess", returns=(1.0, 2.0))
    runs, [said] = read(tmp_path)
    assert said.startswith(f"{path / 'config.json'}: game 'chess' has no random and human scores")
    [cell] = table_of(methods_of(runs, print))
    assert cell.raw.mean == 1.5
    assert cell.normalized is None and cell.paper is None and cell.difference is None


def test_the_score_of_a_long_run_is_that_of_its_last_5m_frames(tmp_path):
    for seed, shift in ((1, 0.0), (2, 1.0)):
        write_run(
            tmp_path / str(seed),
            seed=seed,
            returns=[0.0, 0.0, 10.0 + shift, 12.0 + shift],
            period_frames=2_500_000,
        )
    [cell] = table_of(methods_of(read(tmp_path)[0], print))
    # Runs score 11 and 12: mean 11.5, deviation 1/sqrt(2), over the root of two.
    assert cell.raw.mean == pytest.approx(11.5)
    assert cell.raw.stderr == pytest.approx(0.5)
    assert (cell.num_runs, cell.evaluations, cell.short_run) == (2, 4, False)
    assert cell.paper == Score(1.16, 0.00)
    assert cell.difference == pytest.approx(cell.normalized.mean - 1.16)


def test_a_short_run_is_scored_by_its_second_half_and_marked(tmp_path):
    write_run(tmp_path / "run", returns=(1.0, 2.0, 3.0))
    [cell] = table_of(methods_of(read(tmp_path)[0], print))
    assert (cell.raw, cell.short_run) == (Score(2.5, None), True)


def test_the_paper_has_56_games_and_four_algorithms():
    assert len(paper_scores()) == 56 * 4
    assert paper_scores()["alien", "va"] == Score(0.82, 0.10)


def test_runs_of_other_settings_are_other_methods_and_twins_are_told(tmp_path):
    write_run(tmp_path / "a", algorithm="q")
    write_run(tmp_path / "b")
    write_run(tmp_path / "c", n_step=1)
    write_run(tmp_path / "d", n_step=1)
    said: list[str] = []
    methods = methods_of(read(tmp_path)[0], said.append)
    assert list(methods) == ["va (n_step=5)", "va (n_step=1)", "q"]
    assert [len(runs) for runs in methods.values()] == [1, 2, 1]
    assert "are both va (n_step=1) on pong with seed 1; both are counted" in said[0]


def test_the_papers_algorithms_come_first_and_any_other_name_after_them(tmp_path):
    for name in ("zeta", "q", "my_module:MyLoss", "va"):
        write_run(tmp_path / name, algorithm=name)
    assert list(methods_of(read(tmp_path)[0], print)) == ["va", "q", "my_module:MyLoss", "zeta"]


def test_runs_from_before_a_field_was_renamed_or_added_are_of_the_same_method(tmp_path):
    write_run(tmp_path / "old", seed=1, behaviour_target="sampled")
    write_run(tmp_path / "new", seed=2, behavior_target="sampled", updates_per_dispatch=4)
    assert list(methods_of(read(tmp_path)[0], print)) == ["va"]
    write_run(tmp_path / "other", seed=3, behavior_target="distribution")
    assert list(methods_of(read(tmp_path)[0], print)) == [
        "va (behavior_target=sampled)",
        "va (behavior_target=distribution)",
    ]


def test_sticky_actions_are_always_in_the_name_and_old_runs_were_without(tmp_path):
    write_run(tmp_path / "a", sticky_actions=0.25)
    write_run(tmp_path / "b", algorithm="q", sticky_actions=0.0)
    assert list(methods_of(read(tmp_path)[0], print)) == ["va (sticky_actions=0.25)", "q"]
    write_run(tmp_path / "of_an_earlier_version")
    assert list(methods_of(read(tmp_path)[0], print)) == [
        "va (sticky_actions=0.25)",
        "va (sticky_actions=0.0)",
        "q",
    ]


def test_configs_are_read_as_training_stores_them(tmp_path):
    path = write_run(tmp_path / "run")
    stored = json.loads((path / "config.json").read_text())
    [run], _ = read(tmp_path)
    assert run.settings["n_step"] == stored["config"]["learner"]["n_step"]
    assert run.facts["versions"] == stored["versions"]
