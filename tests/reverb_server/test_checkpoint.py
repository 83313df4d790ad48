"""Replay checkpoints whose writing is interrupted, at every step that changes the disk."""

import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import reverb

from reverb_server.checkpoint import CheckpointFolder
from reverb_server.client import read_counts
from tests.reverb_server.episodes import SINGLE, layout_of
from tests.reverb_server.test_server import insert

# Remove an older one, remove a file, set aside, write, remove what was set aside.
NUM_STEPS, FIRST_AFTER_WRITING = 5, 5


class Steps:
    """Counts the steps that change the disk; the one of that number is a KeyboardInterrupt."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, interrupted: int | None = None):
        self.interrupted, self.number = interrupted, 0
        for owner, name in (
            (shutil, "rmtree"),
            (pathlib.Path, "rename"),
            (pathlib.Path, "unlink"),
            (reverb.Client, "checkpoint"),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            self.number += 1
            if self.number == self.interrupted:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        return step


class Replay:
    """A server with three items in its checkpoint, and an older checkpoint beside that one."""

    def __init__(self, make_tables: Any, directory: pathlib.Path):
        self.directory, self._make_tables = directory, make_tables
        self.folder = CheckpointFolder(directory, SINGLE)
        self.server = reverb.Server(make_tables(), checkpointer=self.folder.make_checkpointer())
        self.client = reverb.Client(f"localhost:{self.server.port}")
        insert(self.client, 1)
        self.folder.write(self.client)
        [older] = directory.iterdir()
        shutil.copytree(older, directory.with_name("older"))
        insert(self.client, 2)
        self.folder.write(self.client)
        directory.with_name("older").rename(directory / "1999-older")
        (directory / "left-over").touch()

    def restored_size(self) -> int:
        """What a new process would find: in a copy, so that this one goes on with its own."""
        copied = self.directory.parent / "copied"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(self.directory, copied / "replay")
        aside = self.directory.with_name("replay.previous")
        if aside.exists():
            shutil.copytree(aside, copied / "replay.previous")
        checkpointer = CheckpointFolder(copied / "replay", SINGLE).make_checkpointer()
        server = reverb.Server(self._make_tables(), checkpointer=checkpointer)
        try:
            return read_counts(reverb.Client(f"localhost:{server.port}"), SINGLE).size
        finally:
            server.stop()


@pytest.fixture
def replay(make_tables: Any, tmp_path: pathlib.Path) -> Iterator[Replay]:
    made = Replay(make_tables, tmp_path / "replay")
    yield made
    made.server.stop()


def test_a_write_has_as_many_steps_as_are_interrupted_below(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    assert replay.folder.write(replay.client) is not None
    assert steps.number == NUM_STEPS


@pytest.mark.parametrize("interrupted", range(1, NUM_STEPS + 1))
def test_a_write_interrupted_at_any_step_costs_neither_the_old_one_nor_the_next(
    replay: Replay, monkeypatch: pytest.MonkeyPatch, interrupted: int
) -> None:
    insert(replay.client, 5)
    with monkeypatch.context() as patch:
        Steps(patch, interrupted)
        with pytest.raises(KeyboardInterrupt):
            replay.folder.write(replay.client)
    assert replay.restored_size() == (8 if interrupted == FIRST_AFTER_WRITING else 3)
    assert replay.folder.write(replay.client) is not None
    assert not replay.directory.with_name("replay.previous").exists()
    assert replay.restored_size() == 8


def test_a_failed_write_interrupted_while_it_puts_the_old_one_back_loses_nothing(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(client: reverb.Client) -> str:
        raise RuntimeError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(reverb.Client, "checkpoint", full_disk)
        Steps(patch, NUM_STEPS)
        with pytest.raises(KeyboardInterrupt):
            replay.folder.write(replay.client)
    assert replay.restored_size() == 3
    insert(replay.client, 2)
    assert replay.folder.write(replay.client) is not None
    assert replay.restored_size() == 5


def test_a_checkpoint_of_another_layout_is_set_aside_and_replay_starts_empty(
    replay: Replay, make_tables: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder = CheckpointFolder(replay.directory, layout_of(2, 4))
    server = reverb.Server(
        make_tables(n_step=2, transitions=4), checkpointer=folder.make_checkpointer()
    )
    try:
        client = reverb.Client(f"localhost:{server.port}")
        assert read_counts(client, layout_of(2, 4)).size == 0
    finally:
        server.stop()
    assert "holds items of another layout: moved to" in caplog.text
    assert (replay.directory.with_name("replay.other_layout") / "DONE").exists()
