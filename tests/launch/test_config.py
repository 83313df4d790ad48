"""Configs: presets, round trips, differences."""

import dataclasses
import json

import pytest

from launch import build, config_checks, config_json
from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.config import PRESETS, Config
from launch.errors import InputError


def test_the_paper_preset_holds_the_papers_numbers():
    paper = PRESETS["paper"]
    assert paper.frames == 200_000_000
    # As dqn_zoo has it: epsilon waits for the 50,000 steps of the warm-up, and starts vary.
    assert (paper.epsilon_start_frames, paper.epsilon_decay_frames) == (200_000, 4_000_000)
    assert (paper.environment.min_noops, paper.environment.max_noops) == (1, 30)
    epsilon = build.make_epsilon(paper, 0)
    assert epsilon(200_000) == 1.0 and epsilon(4_200_000) == pytest.approx(0.01)
    assert (paper.learner.n_step, paper.learner.gamma, paper.learner.batch_size) == (5, 0.99, 32)
    assert paper.learner.optimizer_epsilon == pytest.approx(0.01 / 1024)


@pytest.mark.parametrize(
    ("algorithm", "n_step", "rate"),
    [("va", 5, 1.5e-5), ("dueling", 5, 1.5e-5), ("q", 5, 5e-5), ("q", 1, 2.5e-4)],
)
def test_the_papers_learning_rate_depends_on_algorithm_and_n(algorithm, n_step, rate):
    learner = dataclasses.replace(Config().learner, algorithm=algorithm, n_step=n_step)
    assert build.learning_rate(dataclasses.replace(Config(), learner=learner)) == rate


def test_an_explicit_zero_decay_is_not_taken_for_the_default():
    actor = dataclasses.replace(Config().actor, epsilon_decay_frames=0)
    assert dataclasses.replace(Config(), actor=actor).epsilon_decay_frames == 0


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_config_survives_json(preset):
    stored = json.loads(json.dumps(config_json.to_json(PRESETS[preset])))
    assert config_json.from_json(stored) == PRESETS[preset]


def test_an_unknown_field_is_named():
    stored = config_json.to_json(Config())
    stored["learner"]["momentum"] = 0.9
    with pytest.raises(ValueError, match=r"config\.learner: fields momentum"):
        config_json.from_json(stored)


def test_a_missing_section_is_named():
    stored = config_json.to_json(Config())
    del stored["actor"]
    with pytest.raises(ValueError, match=r"config\.actor is not a JSON object"):
        config_json.from_json(stored)


def test_a_field_added_since_gets_its_default_and_the_log_says_so(caplog):
    stored = config_json.to_json(PRESETS["cpu"])
    del stored["learner"]["final_learning_rate"]
    with caplog.at_level("DEBUG"):
        assert config_json.from_json(stored) == PRESETS["cpu"]
    assert caplog.messages == ["config.learner has no final_learning_rate: it gets its default"]


def test_a_run_of_an_earlier_version_keeps_its_exploration_and_its_starts():
    stored = config_json.to_json(PRESETS["paper"])
    del stored["actor"]["epsilon_after_warmup"], stored["environment"]["min_noops"]
    del stored["evaluator"]["eval_frames"], stored["environment"]["sticky_actions"]
    old = config_json.from_json(stored)
    assert (old.epsilon_start_frames, old.environment.min_noops) == (0, 0)
    assert (old.evaluator.eval_frames, old.environment.sticky_actions) == (None, 0.0)
    assert build.make_epsilon(old, 0)(2_000_000) == pytest.approx(0.505)


def test_the_preset_cpu_explores_from_its_first_frame():
    cpu = PRESETS["cpu"]
    assert (cpu.epsilon_start_frames, cpu.environment.min_noops) == (0, 0)


def test_fewer_noops_than_the_fewest_are_refused():
    environment = dataclasses.replace(Config().environment, min_noops=4, max_noops=3)
    with pytest.raises(InputError, match="min_noops=4 must be at most max_noops=3"):
        config_checks.check_config(dataclasses.replace(Config(), environment=environment))


def test_fields_keep_their_old_names_on_the_command_line():
    for flag in ("--behavior-target", "--behaviour-target"):
        config = parse_train([flag, "distribution"]).config
        assert config.learner.behavior_target == "distribution"


def test_every_number_has_bounds_that_its_default_keeps():
    bounded = {name for name, _, _ in config_checks.bounded_fields(Config())}
    numbers = {
        name
        for name, value in config_json.leaf_values(Config()).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    assert numbers <= bounded
    for preset in PRESETS.values():
        config_checks.check_config(preset)


def test_differences_are_listed_by_leaf_name():
    other = dataclasses.replace(
        Config(), seed=2, learner=dataclasses.replace(Config().learner, gamma=0.9)
    )
    assert sorted(config_json.fields_that_differ(Config(), other)) == [
        ("gamma", 0.99, 0.9),
        ("seed", 1, 2),
    ]


def test_switches_that_a_preset_turns_on_can_be_named_and_turned_off(capsys):
    """A suite names its switches again when it resumes a run."""
    for flag in ("--normalize", "--no-normalize", "--full-action-set"):
        assert cli.run(["train", "--preset", "cpu", flag, "--frames", "1"]) == 2
        assert "frames=1 is 0 agent steps" in capsys.readouterr().err
