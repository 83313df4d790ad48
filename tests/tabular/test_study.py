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
from tabular import readings, theorems
from tabular.figures import FIGURES
from tabular.setting import BadSettingError, Setting, TabularFlags, check_folder, check_setting
from tabular.study import PAGE, run_study
from tabular.summary import Summary, spread

SMALL = Setting(seeds=2, updates=100, epsilons=(0.0, 0.5, 1.0), trajectories=2, budgets=(1, 2))


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[pathlib.Path, list[float], Summary]:
    out = tmp_path_factory.mktemp("study") / "new" / "folder"
    shares: list[float] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(theorems, "NUM_SAMPLED_STEPS", 200)
        summary = run_study(SMALL, out, lambda what, share: shares.append(share))
    return out, shares, summary


def test_a_study_leaves_five_pictures_numbers_and_a_page(study):
    out, shares, summary = study
    names = {f"{name}.png" for name in FIGURES} | {"summary.json", PAGE}
    assert len(FIGURES) == 5
    assert {path.name for path in out.iterdir()} == names
    for name in FIGURES:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_the_page_shows_every_figure_and_a_verdict_for_each(study):
    out, _, _ = study
    text = (out / PAGE).read_text()
    for name in FIGURES:
        assert f"]({name}.png)" in text
    assert len(re.findall(r"\*\*(Agrees|Agrees in part|Does not agree)\.\*\*", text)) == 8
    assert "the bounds hold at all 2000 iterations" in text


def test_every_figure_has_x_mean_and_std_of_every_algorithm(study):
    figures = study[2]["figures"]
    assert figures["control_curves"]["x"] == [0, 50, 100]
    assert figures["performance_by_epsilon"]["x"] == [0.0, 0.5, 1.0]
    for name in ("control_curves", "performance_by_epsilon"):
        assert list(figures[name]["algorithms"]) == list(ALGORITHMS)
        for values in figures[name]["algorithms"].values():
            for line in (values, values["fraction_of_optimal"]):
                assert len(line["mean"]) == len(line["std"]) == 3
            assert max(values["fraction_of_optimal"]["mean"]) <= 1.0 + 1e-9
    for name, lines in (("advantage_error", 3), ("q_error", 2)):
        assert list(figures[name]["budgets"]) == ["1", "2"]
        assert all(len(values) == lines for values in figures[name]["budgets"].values())
    assert len(figures["advantage_norms"]["algorithms"]) == 3
    assert "NaN" not in json.dumps(study[2])


def test_the_curve_ends_where_the_sweep_says_for_the_same_epsilon(tmp_path, monkeypatch):
    monkeypatch.setattr(theorems, "NUM_SAMPLED_STEPS", 20)
    setting = dataclasses.replace(SMALL, seeds=1, updates=50, epsilon=0.5, epsilons=(0.5,))
    figures = run_study(setting, tmp_path, lambda what, share: None)["figures"]
    for name in ALGORITHMS:
        curve = figures["control_curves"]["algorithms"][name]
        sweep = figures["performance_by_epsilon"]["algorithms"][name]
        assert curve["mean"][-1] == sweep["mean"][0]
        assert curve["std"][-1] == 0.0


def test_behavior_dueling_under_a_uniform_mu_is_dueling(study):
    algorithms = study[2]["figures"]["performance_by_epsilon"]["algorithms"]
    ends = [algorithms[name]["mean"][-1] for name in ("behavior_dueling", "dueling")]
    assert ends[0] == pytest.approx(ends[1])


def test_a_spread_is_the_mean_and_the_sample_deviation_over_mdps():
    assert spread(np.array([[1.0, 3.0], [2.0, 2.0]])) == {
        "mean": [2.0, 2.0],
        "std": [pytest.approx(math.sqrt(2.0)), 0.0],
    }
    assert spread(np.array([[5.0]])) == {"mean": [5.0], "std": [0.0]}


def test_a_verdict_follows_the_numbers(study):
    def judged(gap: float, error: float) -> str:
        summary = json.loads(json.dumps(study[2]))
        for pair in summary["gaps"]["pairs"].values():
            pair["mean"] = [gap] * len(pair["mean"])
            pair["standard_error"] = [error] * len(pair["mean"])
        return readings.read_figures(summary)["performance_by_epsilon"][0].verdict

    assert judged(0.2, 0.1) == "Agrees"
    assert judged(0.1, 0.2) == "Does not agree"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": 0}, "seeds=0 must be at least 1"),
        ({"seeds": -3}, "seeds=-3"),
        ({"updates": 0}, "updates=0"),
        ({"updates": 75}, "updates=75 must be a multiple of 50"),
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
        ({"target_period_updates": 7}, "target_period_updates=7 must divide 50"),
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
