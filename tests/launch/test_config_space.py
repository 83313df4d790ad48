"""The whole config space: a config trains, or is refused in one line that names a field."""

import dataclasses
import json
import pathlib
import typing

import hypothesis
import hypothesis.strategies as st
import pytest

from launch import config, config_checks, config_json, names
from launch.errors import InputError
from launch.run_dir import RunDir
from tests.launch.engines.serial.make_system import make_system
from tests.launch.tiny_run import tiny_config

# Values around every bound, and some that no config should have.
WILD_INTS = st.one_of(st.integers(-3, 40), st.sampled_from([-(2**70), 2**31, 2**63, 10**12]))
WILD_FLOATS = st.one_of(
    st.floats(-1.0, 40.0), st.sampled_from([0.0, 1e-30, 1e30, float("nan"), float("inf")])
)
# Values that all pass on their own; together they may still not fit.
TAME = {
    "game": st.sampled_from(["pong", "breakout", "ms_pacman"]),
    "action_repeat": st.integers(1, 6),
    "max_episode_frames": st.integers(1, 500),
    "max_noops": st.integers(0, 40),
    "actors": st.integers(1, 2),
    "envs_per_actor": st.integers(1, 3),
    "epsilon_decay_frames": st.none() | st.integers(0, 1000),
    "replay_capacity_steps": st.integers(1, 300),
    "warmup_steps": st.integers(1, 60),
    "samples_per_insert": st.floats(0.5, 16.0),
    "error_buffer": st.none() | st.floats(1.0, 1000.0),
    "n_step": st.integers(1, 12),
    "batch_size": st.integers(1, 40),
    "target_period_updates": st.integers(1, 5),
    "publish_period_updates": st.integers(1, 3),
    "min_noops": st.integers(0, 2),
    "eval_episodes": st.integers(1, 2),
    "eval_frames": st.none() | st.integers(1, 100),
    "eval_period_frames": st.integers(1, 10**6),
    "port": st.integers(0, 65535),
    "seed": st.integers(0, 2**31 - 1),
    "network": st.just("tiny"),  # the others are the same code, slower
}


def leaf_types():
    """Field name -> (class it belongs to, its type)."""
    found = {}
    for name, kind in typing.get_type_hints(config.Config).items():
        if dataclasses.is_dataclass(kind):
            found |= {n: (kind, k) for n, k in typing.get_type_hints(kind).items()}
        else:
            found[name] = (config.Config, kind)
    return found


def wild(kind):
    """Values of a field's type, sensible or not."""
    if kind is bool:
        return st.booleans()
    if kind is int:
        return WILD_INTS
    if kind is float:
        return WILD_FLOATS
    if kind is str:
        return st.sampled_from(["pong", "va", "tiny", "", "Pong", "../rom", "no_such:Name"])
    if hasattr(kind, "__args__") and type(None) in kind.__args__:
        return st.none() | wild(kind.__args__[0])
    return st.sampled_from(kind.__args__)  # a Literal


def with_leaves(base, leaves):
    """A config with some fields replaced by their own name."""
    changes = {}
    for section in dataclasses.fields(base):
        value = getattr(base, section.name)
        if dataclasses.is_dataclass(value):
            own = {k: v for k, v in leaves.items() if hasattr(value, k)}
            changes[section.name] = dataclasses.replace(value, **own)
        elif section.name in leaves:
            changes[section.name] = leaves[section.name]
    return dataclasses.replace(base, **changes)


STORED_BY_0_1_0 = pathlib.Path(__file__).parents[1] / "fixtures" / "run_of_0.1.0" / "config.json"
NOT_IN_THE_FIRST_VERSION = ("final_learning_rate", "colocate", "updates_per_dispatch")
NAMES_SINCE_0_1_0 = {"behaviour_target": "behavior_target"}
LEAVES = leaf_types()
BASE = tiny_config()


@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(
    st.fixed_dictionaries({}, optional={name: wild(kind) for name, (_, kind) in LEAVES.items()})
)
def test_any_config_is_accepted_or_refused_in_one_line_that_names_a_field(leaves):
    wild_config = with_leaves(BASE, leaves)
    try:
        config_checks.check_config(wild_config)
    except InputError as refusal:
        assert "\n" not in str(refusal)
        assert any(name in str(refusal) for name in [*LEAVES, "unknown game"]), refusal


def enough_frames(tame):
    """Frames for three updates and little more."""
    # Training ends only where parameters are published, and all games step at once.
    updates = 3 + tame.learner.publish_period_updates
    samples = updates * tame.learner.batch_size
    games = tame.actor.actors * tame.actor.envs_per_actor
    steps = tame.replay.warmup_steps + samples / tame.replay.samples_per_insert + 4 * games
    return int(steps) * tame.environment.action_repeat


# Without shrinking: an example compiles, and a small one tells no more than the first.
@hypothesis.settings(
    phases=[hypothesis.Phase.generate],
    max_examples=4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.filter_too_much],
)
@hypothesis.given(
    st.fixed_dictionaries(
        {name: st.just(value) for name, value in config_json.leaf_values(BASE).items()}
        | {name: wild(kind) for name, (_, kind) in LEAVES.items() if kind is bool}
        | {name: wild(LEAVES[name][1]) for name in ("optimizer", "exploration")}
        | {"algorithm": st.sampled_from(names.algorithm_names())}
        | TAME
    )
)
def test_a_config_that_is_accepted_trains(tmp_path_factory, leaves):
    # Neither is for a run in one process.
    tame = with_leaves(BASE, leaves | {"prioritized": False, "sticky_actions": 0.0})
    tame = dataclasses.replace(tame, frames=enough_frames(tame))
    try:
        config_checks.check_config(tame)
    except InputError:
        hypothesis.reject()
    folder = tmp_path_factory.mktemp("run")
    run_dir = RunDir(folder)
    run_dir.create(tame)
    state = make_system(tame, run_dir).run()
    assert int(state.updates) >= 3


def stored(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(BASE)
    return run_dir


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        (None, "frames", "many"),
        (None, "seed", True),
        ("learner", "algorithm", 7),
        ("learner", "algorithm", "a b:c"),
        ("learner", "network", "\x1b[31m"),
        ("environment", "game", "../../x"),
        ("learner", "gamma", None),
        ("actor", "actors", 2.5),
        (None, "learner", 7),
        ("learner", "from_a_later_version", 1),
    ],
)
def test_a_stored_config_of_another_kind_or_version_names_the_field(tmp_path, section, name, value):
    plain = config_json.to_json(BASE)
    (plain if section is None else plain[section])[name] = value
    with pytest.raises(ValueError, match=name):
        config_json.from_json(plain)


@hypothesis.settings(deadline=None)
@hypothesis.given(
    st.fixed_dictionaries({}, optional=TAME), st.sets(st.sampled_from(NOT_IN_THE_FIRST_VERSION))
)
def test_every_config_that_an_earlier_version_could_write_is_read(leaves, added_since):
    plain = json.loads(STORED_BY_0_1_0.read_text())["config"]
    expected = config_json.leaf_values(config.Config())
    for section in (plain, *(part for part in plain.values() if isinstance(part, dict))):
        section.update({name: leaves[name] for name in leaves.keys() & section.keys()})
        for name in added_since & section.keys():
            del section[name]
        values = {name: value for name, value in section.items() if not isinstance(value, dict)}
        expected |= {NAMES_SINCE_0_1_0.get(name, name): value for name, value in values.items()}
    assert config_json.leaf_values(config_json.from_json(plain)) == expected


FOLDERS, FILES = ("checkpoints", "replay", "logs", "address"), ("metrics.jsonl", "status.json")


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_the_wrong_kind_of_file_is_refused_untouched(tmp_path, capsys, name):
    from launch.cli import main as cli

    run_dir = stored(tmp_path)
    wrong = run_dir.root / name
    if name in FOLDERS:
        wrong.write_text("mine")
    else:
        wrong.mkdir()
    before = sorted(p.name for p in run_dir.root.iterdir())
    assert cli.run(["train", "--run-dir", str(run_dir.root), "--resume"]) == 2
    message = capsys.readouterr().err
    assert name in message and message.count("\n") == 1
    assert sorted(p.name for p in run_dir.root.iterdir()) == before


def test_a_checkpoint_of_a_later_version_is_refused_untouched(tmp_path, capsys, monkeypatch):
    import learner.checkpoint
    from launch.cli import main as cli

    run_dir = stored(tmp_path)
    monkeypatch.setattr(learner.checkpoint, "FORMAT", 99)
    path = learner.checkpoint.Checkpointer(run_dir.checkpoints).save(1, {}, {})
    monkeypatch.undo()
    before = path.read_bytes()
    assert cli.run(["train", "--run-dir", str(run_dir.root), "--resume"]) == 2
    message = capsys.readouterr().err
    assert "format 99" in message and message.count("\n") == 1
    assert path.read_bytes() == before
