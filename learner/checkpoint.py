"""Atomic learner checkpoints: one `.npz` a checkpoint, the last k kept.

Arrays are stored by their path in the state's tree and read back into a tree of the same shape, so
nothing is ever unpickled. Named arrays, whose shapes may differ each time, are stored with it. A
file appears under its final name only when it is whole on disk; sizes are compared with what is
expected before anything is read, and checksums before anything is believed.
"""

import dataclasses
import json
import logging
import os
import pathlib
import re
import tempfile
import types
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from learner.archive import DAMAGE, Archive, ArrayKind

FORMAT = 1
_NAME = re.compile(r"^checkpoint-(\d{12})\.npz$")
_META = "__meta__"
_NAMED_PREFIX = "beside:"  # the prefix in files written so far
# The counters of a learner, and what it says of its format, take a hundred bytes.
_MAX_META_BYTES = 1 << 16
_MAX_COUNT = 2**62


class CheckpointError(Exception):
    """A checkpoint that cannot be used, and why."""


@dataclasses.dataclass(frozen=True)
class Restored:
    """A checkpoint read back: the tree, and the counters and named arrays saved with it."""

    path: pathlib.Path
    tree: Any
    counters: dict[str, Any]
    named_arrays: dict[str, np.ndarray]


class Checkpointer:
    """Saves to and restores from one folder."""

    def __init__(self, directory: pathlib.Path, *, keep: int = 3):
        if keep < 1:
            raise ValueError(f"keep={keep}: at least one checkpoint must be kept")
        self._directory = directory
        self._keep = keep

    def save(
        self,
        step: int,
        tree: Any,
        counters: Mapping[str, Any],
        named_arrays: Mapping[str, np.ndarray] = types.MappingProxyType({}),
    ) -> pathlib.Path:
        """Writes one checkpoint; returns its path once it is durable."""
        path = self._directory / f"checkpoint-{step:012d}.npz"
        write_checkpoint(path, tree, counters, named_arrays)
        self._remove_others(path)
        return path

    def restore(
        self, like: Any, *, named_arrays: bool = False, step: int | None = None
    ) -> Restored | None:
        """Reads the newest usable checkpoint into a tree shaped as `like`; None if there is none.

        With `step` that of this step and no other; it is an error if it is not there.
        Named arrays are read only when asked for: nothing says how large they may be.
        A damaged file is passed over, loudly, for the one before it. If all are damaged there is
        nothing sensible to continue from and that is an error; so is a whole file of another
        configuration, which an older one would hide.
        """
        paths = self._paths() if step is None else [self._path_of(step)]
        for path in reversed(paths):
            try:
                return read_checkpoint(path, like, named_arrays=named_arrays)
            except DAMAGE as error:
                logging.error("checkpoint %s is damaged (%r); trying an older one", path, error)
        if paths:
            what = f"none of its {len(paths)} checkpoints" if len(paths) > 1 else "its checkpoint"
            raise CheckpointError(
                f"{self._directory}: {what} can{'' if len(paths) > 1 else 'not'} be read; "
                "restore a copy or start a new run"
            )
        return None

    def _path_of(self, step: int) -> pathlib.Path:
        by_step = {_step_of(path): path for path in self._paths()}
        if step not in by_step:
            kept = ", ".join(map(str, by_step)) or "none"
            raise CheckpointError(f"{self._directory} has no checkpoint {step}; it has {kept}")
        return by_step[step]

    def newest_counters(self) -> dict[str, Any] | None:
        """The counters of the newest readable checkpoint, without its arrays; None if none is.

        Raises CheckpointError if it is of another version.
        """
        for path in reversed(self._paths()):
            try:
                with Archive(path) as stored:
                    meta = _read_meta(stored)
                _check_format(path, meta)
                return meta["counters"]
            except DAMAGE:
                continue  # `restore` passes it over too, and says so
        return None

    def _paths(self) -> list[pathlib.Path]:
        if not self._directory.is_dir():
            return []
        return sorted(p for p in self._directory.iterdir() if _NAME.match(p.name))

    def _remove_others(self, saved: pathlib.Path) -> None:
        """Keeps `saved` and the ones before it.

        One with a higher number was damaged, and training went on from an older one: it must not
        pass for the newest.
        """
        paths = self._paths()
        newest = paths.index(saved)
        for path in paths[: max(newest + 1 - self._keep, 0)] + paths[newest + 1 :]:
            path.unlink()
        remove_unfinished(self._directory)


def write_checkpoint(
    path: pathlib.Path,
    tree: Any,
    counters: Mapping[str, Any],
    named_arrays: Mapping[str, np.ndarray] = types.MappingProxyType({}),
) -> None:
    """Writes one file, which appears under its name when it is durable."""
    # Not its parents: a run directory that was deleted must not come back, half of it.
    path.parent.mkdir(exist_ok=True)
    arrays = {_key(key): np.asarray(leaf) for key, leaf in _leaves(tree)}
    arrays |= {_NAMED_PREFIX + name: array for name, array in named_arrays.items()}
    meta = json.dumps({"format": FORMAT, "counters": dict(counters)})
    arrays[_META] = np.frombuffer(meta.encode(), np.uint8)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as f:
        try:
            np.savez(f, **arrays)
            f.flush()
            os.fsync(f.fileno())
        except BaseException:
            os.unlink(f.name)
            raise
    os.replace(f.name, path)
    _sync_folder(path.parent)


def remove_unfinished(directory: pathlib.Path) -> None:
    """Removes what a writer that was killed left; a folder has one writer."""
    for leftover in directory.glob("*.tmp"):
        leftover.unlink()


def read_checkpoint(path: pathlib.Path, like: Any, *, named_arrays: bool = False) -> Restored:
    """Reads one file into a tree shaped as `like`; raises one of `archive.DAMAGE` for a torn one,
    and CheckpointError for that of another version or configuration."""
    with Archive(path) as stored:
        meta = _read_meta(stored)
        _check_format(path, meta)
        expected = {_key(p): leaf for p, leaf in _leaves(like)}
        named = {key for key in stored.names if key.startswith(_NAMED_PREFIX)}
        different = expected.keys() ^ (stored.names - named - {_META})
        if different:
            for name in different & stored.names:
                stored.verify(name)  # a damaged name must not pass for that of another part
            raise CheckpointError(
                f"{path}: {min(different)} is in only one of checkpoint and configuration; "
                "continue with the configuration that wrote it"
            )
        for key, leaf in expected.items():
            _check_kind(path, stored, key, leaf)
        leaves = [stored.read(key) for key in expected]
        wanted = named if named_arrays else ()
        arrays = {key.removeprefix(_NAMED_PREFIX): stored.read(key) for key in wanted}
    tree = jax.tree.unflatten(jax.tree.structure(like), leaves)
    return Restored(path, tree, meta["counters"], arrays)


def _step_of(path: pathlib.Path) -> int:
    name = _NAME.match(path.name)
    assert name is not None  # of a path that was found by it
    return int(name[1])


def _read_meta(stored: Archive) -> dict[str, Any]:
    """Format and counters; raises ValueError for what no version has written."""
    if stored.size_bytes(_META) > _MAX_META_BYTES:
        raise ValueError("it says more of itself than any checkpoint does")
    meta = json.loads(stored.read(_META).tobytes())
    if not isinstance(meta, dict) or not isinstance(meta["counters"], dict):
        raise ValueError("it has no counters")
    for name, count in meta["counters"].items():
        if not isinstance(count, int) or not 0 <= count <= _MAX_COUNT:
            raise ValueError(f"{name} is no count")
    return meta


def _check_format(path: pathlib.Path, meta: Mapping[str, Any]) -> None:
    if meta["format"] != FORMAT:
        raise CheckpointError(
            f"{path}: format {meta['format']!r:.20}, this version reads {FORMAT}; "
            "use the version that wrote it"
        )


def _check_kind(path: pathlib.Path, stored: Archive, key: str, leaf: Any) -> None:
    found, expected = stored.kind(key), ArrayKind(np.shape(leaf), np.asarray(leaf).dtype)
    if found != expected:
        # A damaged header must not pass for that of another configuration.
        stored.verify(key)
        raise CheckpointError(
            f"{path}: {key} is {found} in the checkpoint but {expected} in this configuration; "
            "continue with the configuration that wrote it"
        )


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def _key(path: Any) -> str:
    return jax.tree_util.keystr(path)


def _sync_folder(directory: pathlib.Path) -> None:
    # The rename itself must survive a power cut, not just the file's bytes.
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
