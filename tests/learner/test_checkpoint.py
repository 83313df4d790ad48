"""Checkpoints: exact, atomic, and never trusted blindly."""

import contextlib
import functools
import io
import os
import pathlib
import shutil
import tracemalloc
import zipfile
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.checkpoint import Checkpointer, CheckpointError
from learner.optimizers import OptimizerOptions, make_optimizer
from learner.update import LearnerState

COUNTERS = {"steps": 1234, "last_inserts": 567}


@functools.cache
def make_state(value: float, num_actions: int = 3, optimizer: str = "rmsprop") -> LearnerState:
    """A state as the learner has it, with an optimizer that has already moved."""
    params = {"torso/conv_0": {"w": jnp.full((2, num_actions), value), "b": jnp.arange(3.0)}}
    transformation = make_optimizer(
        OptimizerOptions(optimizer, 0.1, epsilon=1e-3, max_grad_norm=1.0)
    )
    gradients = jax.tree.map(lambda leaf: leaf + 1 / 3, params)
    _, opt_state = transformation.update(gradients, transformation.init(params))
    return LearnerState(params, jax.tree.map(lambda x: -x, params), opt_state, jnp.int32(7))


def save(directory: pathlib.Path, *steps: int, keep: int = 3) -> list[pathlib.Path]:
    """Saves states whose value is their step."""
    checkpointer = Checkpointer(directory, keep=keep)
    return [checkpointer.save(step, make_state(float(step)), {"steps": step}) for step in steps]


def restored_step(directory: pathlib.Path) -> int:
    """The step of the state that is restored, with its values checked."""
    restored = Checkpointer(directory).restore(make_state(0.0))
    assert restored is not None
    step = restored.counters["steps"]
    assert_same_bits(restored.tree, make_state(float(step)))
    return step


def assert_same_bits(tree: Any, expected: Any) -> None:
    assert repr(jax.tree.structure(tree)) == repr(jax.tree.structure(expected))
    for leaf, wanted in zip(jax.tree.leaves(tree), jax.tree.leaves(expected), strict=True):
        assert (leaf.dtype, leaf.shape) == (wanted.dtype, wanted.shape)
        assert np.asarray(leaf).tobytes() == np.asarray(wanted).tobytes()


def test_a_run_directory_that_was_deleted_is_not_made_anew(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "run" / "checkpoints", 1)
    assert not (tmp_path / "run").exists()


def test_a_state_comes_back_bit_by_bit_with_optimizer_and_counters(tmp_path: pathlib.Path) -> None:
    state = make_state(1 / 3)
    path = Checkpointer(tmp_path / "new").save(42, state, COUNTERS)
    restored = Checkpointer(tmp_path / "new").restore(make_state(0.0))
    assert restored is not None
    assert_same_bits(restored.tree, state)
    assert (restored.counters, restored.path) == (COUNTERS, path)
    assert len(jax.tree.leaves(state.opt_state)) > 0


def test_without_checkpoints_there_is_nothing_to_restore(tmp_path: pathlib.Path) -> None:
    assert Checkpointer(tmp_path).restore(make_state(0.0)) is None
    assert Checkpointer(tmp_path / "missing").restore(make_state(0.0)) is None


def test_the_last_ones_are_kept_and_the_newest_is_restored(tmp_path: pathlib.Path) -> None:
    paths = save(tmp_path, 1, 2, 10, 100, keep=2)
    assert sorted(tmp_path.iterdir()) == sorted(paths[-2:])
    assert restored_step(tmp_path) == 100


def test_saving_a_step_again_replaces_it(tmp_path: pathlib.Path) -> None:
    save(tmp_path, 1, 5)
    Checkpointer(tmp_path).save(5, make_state(6.0), {"steps": 6})
    assert restored_step(tmp_path) == 6
    assert len(list(tmp_path.iterdir())) == 2


def test_keeping_none_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="keep=0"):
        Checkpointer(tmp_path, keep=0)


@pytest.mark.parametrize("kept_bytes", [0, 1, 100, 1000, -100, -1])
def test_a_truncated_newest_falls_back_to_the_one_before(
    tmp_path: pathlib.Path, kept_bytes: int
) -> None:
    newest = save(tmp_path, 1, 2)[-1]
    newest.write_bytes(newest.read_bytes()[:kept_bytes])
    assert restored_step(tmp_path) == 1


def test_no_altered_byte_is_ever_believed(tmp_path: pathlib.Path) -> None:
    """Either the altered byte does not matter (a date in the archive) or the older one is read."""
    newest = save(tmp_path, 1, 2)[-1]
    whole = newest.read_bytes()
    steps = []
    for position in range(0, len(whole), 7):
        for flip in (0x01, 0xFF):
            altered = bytearray(whole)
            altered[position] ^= flip
            newest.write_bytes(altered)
            steps.append(restored_step(tmp_path))
    assert set(steps) == {1, 2}


def test_after_a_fallback_what_is_saved_next_is_the_newest(tmp_path: pathlib.Path) -> None:
    """Though the damaged one has a higher number."""
    damaged = save(tmp_path, 10, 20)[-1]
    damaged.write_bytes(b"damaged")
    assert restored_step(tmp_path) == 10
    saved = save(tmp_path, 15, keep=1)
    assert list(tmp_path.iterdir()) == saved
    assert restored_step(tmp_path) == 15


def test_if_all_are_damaged_there_is_no_silent_fresh_start(tmp_path: pathlib.Path) -> None:
    for path in save(tmp_path, 1, 2):
        path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(CheckpointError, match="none of its 2 checkpoints"):
        Checkpointer(tmp_path).restore(make_state(0.0))


def test_another_shape_is_an_error_that_names_it_and_not_damage(tmp_path: pathlib.Path) -> None:
    save(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"conv_0.*float32\[2, 3\].*float32\[2, 4\]"):
        Checkpointer(tmp_path).restore(make_state(0.0, num_actions=4))


def test_another_type_is_an_error(tmp_path: pathlib.Path) -> None:
    save(tmp_path, 1)
    other = make_state(0.0)._replace(updates=np.zeros((), np.int64))  # type: ignore
    with pytest.raises(CheckpointError, match=r"updates.*int32\[\].*int64\[\]"):
        Checkpointer(tmp_path).restore(other)


def test_parts_that_only_one_side_has_are_an_error(tmp_path: pathlib.Path) -> None:
    """Else a network with more heads would pass for one with fewer."""
    save(tmp_path, 1)
    state = make_state(0.0)
    more = state._replace(params={**state.params, "value/out": {"w": jnp.zeros(1)}})
    with pytest.raises(CheckpointError, match="value/out"):
        Checkpointer(tmp_path).restore(more)
    fewer = state._replace(target_params={})
    with pytest.raises(CheckpointError, match="target_params"):
        Checkpointer(tmp_path).restore(fewer)
    with pytest.raises(CheckpointError, match="opt_state"):
        Checkpointer(tmp_path).restore(make_state(0.0, optimizer="adam"))


def test_a_newer_format_is_an_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.checkpoint.FORMAT", 2)
    save(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="format 2"):
        Checkpointer(tmp_path).restore(make_state(0.0))


def test_half_written_files_are_ignored_and_cleaned_up(tmp_path: pathlib.Path) -> None:
    leftover = tmp_path / "tmpabc.tmp"
    leftover.write_bytes(b"half of a checkpoint")
    assert Checkpointer(tmp_path).restore(make_state(0.0)) is None
    paths = save(tmp_path, 1)
    assert list(tmp_path.iterdir()) == paths


def test_a_full_disk_leaves_what_was_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = save(tmp_path, 1)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, 2)
    assert list(tmp_path.iterdir()) == paths
    assert restored_step(tmp_path) == 1


def test_a_death_just_before_the_rename_leaves_the_older_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)

    def die(source: str, destination: pathlib.Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, 2)
    monkeypatch.undo()
    assert restored_step(tmp_path) == 1
    save(tmp_path, 3)
    assert not list(tmp_path.glob("*.tmp"))


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: pathlib.Path):
        self.path = path

    def __reduce__(self) -> Any:
        return pathlib.Path.touch, (self.path,)


def test_nothing_is_unpickled(tmp_path: pathlib.Path) -> None:
    older, newest = save(tmp_path / "run", 1, 2)
    sprung = tmp_path / "sprung"
    with np.load(older) as stored:
        arrays = dict(stored)
    key = next(name for name in arrays if name.endswith("['w']"))
    trapped = np.empty(arrays[key].shape, object)
    trapped.fill(Trap(sprung))
    np.savez(newest, **(arrays | {key: trapped}))
    assert restored_step(tmp_path / "run") == 1
    assert not sprung.exists()


def rewrite(path: pathlib.Path, compression: int = zipfile.ZIP_STORED, **changed: bytes) -> None:
    """Writes an archive anew, with other bytes for some members, whatever they claim."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {**members, **changed}.items():
            archive.writestr(name, content)


def header_of(shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    """The first bytes of an array, as np.save writes them."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


WEIGHTS = ".params['torso/conv_0']['w'].npy"


def peak_bytes_of_restoring(directory: pathlib.Path, error: type[Exception] | None) -> int:
    tracemalloc.start()
    try:
        if error is None:
            assert restored_step(directory) == 1
        else:
            with pytest.raises(error):
                Checkpointer(directory).restore(make_state(0.0))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [WEIGHTS, "__meta__.npy", "beside:replay.npy"])
def test_a_bomb_is_damage_and_takes_no_memory(tmp_path: pathlib.Path, name: str) -> None:
    """A small file that says it is a large one, as compression allows."""
    newest = save(tmp_path, 1, 2)[-1]
    zeros = bytes(64 << 20)
    rewrite(newest, zipfile.ZIP_DEFLATED, **{name: header_of((16 << 20,)) + zeros})
    assert newest.stat().st_size < 1 << 20
    assert peak_bytes_of_restoring(tmp_path, None) < 8 << 20


@pytest.mark.parametrize("shape", [(10**12,), (2, 10**15), (10**18, 10**18), (2, 2)])
def test_a_header_that_says_more_or_less_than_there_is_is_damage(
    tmp_path: pathlib.Path, shape: tuple[int, ...]
) -> None:
    newest = save(tmp_path, 1, 2)[-1]
    rewrite(newest, **{WEIGHTS: header_of(shape) + bytes(24)})
    assert peak_bytes_of_restoring(tmp_path, None) < 8 << 20


def test_a_whole_array_of_another_size_is_another_configuration_and_is_not_read(
    tmp_path: pathlib.Path,
) -> None:
    newest = save(tmp_path, 1, 2)[-1]
    rewrite(newest, **{WEIGHTS: header_of((4 << 20,)) + bytes(16 << 20)})
    assert peak_bytes_of_restoring(tmp_path, CheckpointError) < 8 << 20


def test_named_arrays_are_read_only_when_asked_for(tmp_path: pathlib.Path) -> None:
    arrays = {"replay": np.ones(4 << 20, np.uint8), "order": np.asfortranarray(np.eye(3)[:2])}
    Checkpointer(tmp_path).save(1, make_state(1.0), {"steps": 1}, arrays)
    assert peak_bytes_of_restoring(tmp_path, None) < 3 << 20
    restored = Checkpointer(tmp_path).restore(make_state(0.0), named_arrays=True)
    assert restored is not None and restored.named_arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(restored.named_arrays[name], array)
        assert restored.named_arrays[name].dtype == array.dtype


@pytest.mark.parametrize(
    "meta",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "counters": 3}',
        b'{"format": 1, "counters": {"steps": "many"}}',
        b'{"format": 1, "counters": {"steps": -1}}',
        b'{"format": 1, "counters": {"steps": 1' + b"0" * 400 + b"}}",
        b"[" * 60_000,
        b"\xff",
    ],
)
def test_a_checkpoint_that_does_not_say_what_it_is_is_damage(
    tmp_path: pathlib.Path, meta: bytes
) -> None:
    newest = save(tmp_path, 1, 2)[-1]
    rewrite(newest, **{"__meta__.npy": header_of((len(meta),), "|u1") + meta})
    assert restored_step(tmp_path) == 1
    Checkpointer(tmp_path).newest_counters()


def test_a_pipe_under_the_name_of_a_checkpoint_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    save(tmp_path, 1)
    os.mkfifo(tmp_path / "checkpoint-000000000002.npz")
    assert restored_step(tmp_path) == 1


@hypothesis.settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(st.data())
def test_no_archive_whatever_is_in_it_does_more_than_be_restored_or_refused(
    tmp_path: pathlib.Path, data: st.DataObject
) -> None:
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    [path] = save(tmp_path / "run", 1)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(whole) - 1))
        junk = data.draw(st.binary(min_size=1, max_size=8))
        whole[position : position + data.draw(st.integers(0, 8))] = junk
    path.write_bytes(whole)
    with contextlib.suppress(CheckpointError):
        Checkpointer(tmp_path / "run").newest_counters()
        Checkpointer(tmp_path / "run").restore(make_state(0.0))
