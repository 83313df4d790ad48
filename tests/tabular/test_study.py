"""The study from end to end, small; and what it says of its own numbers."""

import dataclasses
import json
import math
import pathlib
import re

import numpy as np
import pytest
import tyro

from learner.losses import ALGORITHMS
from tabular import readings, sampled, theorems
from tabular.claims import CLAIMS
from tabular.figures import FIGURES
from tabular.setting import (
    GRADIENTS,
    BadSettingError,
    Setting,
    TabularFlags,
    check_folder,
    check_setting,
)
from tabular.study import PAGE, run_study
from tabular.summary import Summary, median_updates_to, spread

SMALL = Setting(
    seeds=2,
    gradient="both",
    updates=100,
    max_updates=200,
    epsilons=(0.0, 0.5, 1.0),
    trajectories=2,
    budgets=(1, 2),
    sampled=True,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[pathlib.Path, list[float], Summary]:
    out = tmp_path_factory.mktemp("study") / "new" / "folder"
    shares: list[float] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(theorems, "NUM_SAMPLED_STEPS", 200)
        patched.setattr(sampled, "NUM_PATH_STEPS", 100)
        summary = run_study(SMALL, out, lambda what, share: shares.append(share))
    return out, shares, summary


def test_a_study_leaves_its_pictures_numbers_and_a_page(study):
    out, shares, summary = study
    pictures = {*FIGURES, "sampled"}
    assert len(FIGURES) == 5
    assert {path.name for path in out.iterdir()} == {
        *(f"{name}.png" for name in pictures),
        "summary.json",
        PAGE,
    }
    for name in pictures:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert "NaN" not in (out / "summary.json").read_text()
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_the_page_judges_every_claim_after_the_budget_and_at_convergence_in_both_readings(study):
    text = (study[0] / PAGE).read_text()
    for name in (*FIGURES, "sampled"):
        assert f"]({name}.png)" in text
    verdicts = re.findall(
        r"^- (per-step|per-trajectory), (after 100 updates|converged): "
        r"\*\*(?:Agrees|Agrees in part|Does not agree)\.\*\*",
        text,
        re.MULTILINE,
    )
    for gradient in GRADIENTS:
        for when in ("after 100 updates", "converged"):
            assert verdicts.count((gradient, when)) == len(CLAIMS) == 10
    assert "the bounds hold at all 2000 iterations" in text


def test_every_curve_has_mean_and_deviation_of_every_algorithm(study):
    for one in study[2]["gradients"].values():
        control, evaluation = one["control"], one["evaluation"]
        points = len(control["updates"])
        assert control["updates"][0] == 0
        assert one["budget_updates"] in control["updates"]
        assert control["epsilons"] == [0.0, 0.5, 0.8, 1.0]
        assert control["shown_epsilons"] == [0.0, 0.5, 1.0]
        assert list(control["share_of_optimal"]) == list(ALGORITHMS)
        for values in control["share_of_optimal"].values():
            assert np.shape(values["mean"]) == np.shape(values["std"]) == (points, 4)
            assert np.max(values["mean"]) <= 1.0 + 1e-9
        assert {name: list(found) for name, found in evaluation["errors"].items()} == {
            "va": ["advantage", "centered", "own_limit", "q"],
            "td": ["advantage", "q"],
        }
        for errors in evaluation["errors"].values():
            for values in errors.values():
                assert np.shape(values["mean"]) == (len(evaluation["updates"]), 2)
        assert len(control["norms"]) == 3


def test_behavior_dueling_under_a_uniform_mu_is_dueling(study):
    for one in study[2]["gradients"].values():
        shares = one["control"]["share_of_optimal"]
        for rows in zip(shares["behavior_dueling"]["mean"], shares["dueling"]["mean"], strict=True):
            assert rows[0][-1] == pytest.approx(rows[1][-1])


def test_one_reading_of_the_gradient_makes_a_page_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(theorems, "NUM_SAMPLED_STEPS", 20)
    setting = dataclasses.replace(
        SMALL, seeds=1, gradient="per-trajectory", updates=None, epsilons=(0.5,), sampled=False
    )
    summary = run_study(setting, tmp_path, lambda what, share: None)
    assert list(summary["gradients"]) == ["per-trajectory"]
    assert summary["sampled"] is None
    text = (tmp_path / PAGE).read_text()
    assert "per-step" not in text
    # Without epsilon 1 and without a small one, three claims have nothing to be judged by.
    assert text.count("**Cannot be judged.**") == 2 * 4


def test_a_spread_is_the_mean_and_the_sample_deviation_over_mdps():
    assert spread(np.array([[1.0, 3.0], [2.0, 2.0]])) == {
        "mean": [2.0, 2.0],
        "std": [pytest.approx(math.sqrt(2.0)), 0.0],
    }
    assert spread(np.array([[5.0]])) == {"mean": [5.0], "std": [0.0]}


def judged(study: Summary, gap: float, error: float) -> dict[str, readings.Reading]:
    """The readings of a study whose every difference is the same."""
    study = json.loads(json.dumps(study))
    control, evaluation = study["control"], study["evaluation"]
    gaps = [control["norm_gap"], *control["gaps"].values(), *evaluation["gaps"].values()]
    for one in [*gaps, control["gap_of_va_at_small_epsilons"]]:
        one["mean"] = np.full_like(one["mean"], gap).tolist()
        one["standard_error"] = np.full_like(one["mean"], error).tolist()
    return {reading.claim.topic: reading for reading in readings.read(study)}


@pytest.mark.parametrize(("gap", "agrees"), [(0.21, True), (0.19, False), (-0.21, False)])
def test_every_verdict_is_by_two_standard_errors(study, gap, agrees):
    found = judged(study[2]["gradients"]["per-step"], gap, error=0.1)
    # What the paper says is no longer different agrees where the others do not.
    alike = {
        "dueling catches up at ε = 1": gap < 0.2,
        "dueling as poor as Q near ε = 0": abs(gap) < 0.2,
    }
    for topic, reading in found.items():
        expected = "Agrees" if alike.get(topic, agrees) else "Does not agree"
        assert reading.at_budget.verdict == reading.at_convergence.verdict == expected, topic
        holds = "from 10 on" if expected == "Agrees" else "never"
        assert reading.holds == holds


def test_a_claim_tells_between_which_updates_it_holds():
    updates = [10, 20, 30, 40, 50]
    assert readings.ranges(updates, [False, True, True, False, True]) == "20 to 30, from 50 on"
    assert readings.ranges(updates, [True, False, False, False, False]) == "at 10"
    assert readings.ranges(updates, [False] * 5) == "never"


def test_the_updates_to_a_share_count_only_where_it_is_kept():
    updates = np.array([0, 10, 20, 30])
    shares = np.array([[0.0, 0.0], [0.96, 0.0], [0.5, 0.0], [0.97, 0.99]])[:, None]
    assert median_updates_to(0.95, shares, updates) == [30]
    assert median_updates_to(0.98, shares, updates) == [None]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": 0}, "seeds=0 must be at least 1"),
        ({"seeds": -3}, "seeds=-3"),
        ({"updates": 0}, "updates=0"),
        ({"updates": 75}, "updates=75 must be a multiple of target_period_updates=10"),
        ({"updates": 300, "max_updates": 200}, "updates=300 must not exceed max_updates=200"),
        ({"max_updates": 0}, "max_updates=0"),
        ({"max_updates": 99_999}, "max_updates=99999 must be a multiple"),
        ({"epsilon": 1.5}, r"epsilon=1.5 must be in [0, 1]"),
        ({"epsilon": math.nan}, "epsilon=nan"),
        ({"epsilons": (0.1, -0.1)}, "epsilons=-0.1"),
        ({"epsilons": ()}, "epsilons=() must name at least one"),
        ({"epsilons": (0.5, 0.5)}, "names a value twice"),
        ({"target_epsilon": 2.0}, "target_epsilon=2.0"),
        ({"trajectories": 0}, "trajectories=0"),
        ({"budgets": (5, 0)}, "budgets=0"),
        ({"gamma": 1.0}, "gamma=1.0"),
        ({"learning_rate": math.inf}, "learning_rate=inf"),
        ({"target_period_updates": 7}, "must be a multiple of target_period_updates=7"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_with_its_value(change, said):
    with pytest.raises(BadSettingError, match=re.escape(said)):
        check_setting(dataclasses.replace(Setting(), **change))


@pytest.mark.parametrize("flag", ["--behavior", "--behaviour"])
def test_the_flag_of_mu_keeps_its_old_spelling(flag):
    without_prefix = (tyro.conf.OmitArgPrefixes,)
    flags = tyro.cli(TabularFlags, args=[flag, "estimated"], config=without_prefix)
    assert flags.setting.behavior == "estimated"


def test_the_papers_setting_is_accepted():
    check_setting(Setting())
    assert Setting().trajectory_steps == 200


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSettingError, match="cannot be made"):
        check_folder(tmp_path / "file" / "out")
