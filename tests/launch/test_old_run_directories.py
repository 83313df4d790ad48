"""Run directories of earlier versions, and of the other Python's stack: scored and continued."""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import reverb

from actors.n_step import NStepStream, Row
from actors.observation import FRAME_SHAPE
from launch.cli import main as cli
from launch.engines.claim import claim, config_to_resume
from launch.invocation import vantage_command
from launch.nodes.tables import item_layout, replay_tables
from launch.replay import replay_limit
from launch.run_dir import RunDir
from launch.versions import installed_versions, stack_difference
from report.metrics_file import read_rows
from reverb_server.checkpoint import CheckpointFolder
from reverb_server.client import read_counts
from reverb_server.sampler import BatchSampler
from reverb_server.writer import ExperienceWriter
from tests.launch.test_program import counters, launch, newest_checkpoint

ROOT = pathlib.Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
WAIT_SECONDS = 400.0  # bounds a hang
# Of Reverb 0.7.2 on Python 3.10, and of Reverb 0.14.0 on 3.11: items of before, and those of today.
OF_ANOTHER_LAYOUT = ("run_of_0.1.0", "older_run_on_3.11")
OF_EACH_STACK = ("run_on_3.10", "run_on_3.11")
OF_THE_OTHER_STACK = OF_EACH_STACK[sys.version_info < (3, 11)]


@pytest.fixture
def copy_of(tmp_path):
    """A stored run, copied to where it may be continued."""

    def copy(name: str) -> RunDir:
        run = tmp_path / name
        shutil.copytree(FIXTURES / name, run)
        run.chmod(0o700)
        return RunDir(run)

    return copy


@pytest.fixture
def serve():
    """A bare Reverb server with what it restored of a run's replay; stopped after the test."""
    servers = []

    def start(run: RunDir) -> reverb.Server:
        config = run.load_config()
        folder = CheckpointFolder(run.replay, item_layout(config))
        servers.append(
            reverb.Server(
                replay_tables(config, replay_limit(config)), checkpointer=folder.make_checkpointer()
            )
        )
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def rows_of(run: RunDir, role: str, since: int = 0) -> list[dict]:
    return [row for row in list(read_rows(run.metrics_file))[since:] if row["role"] == role]


@pytest.mark.parametrize("name", OF_EACH_STACK)
def test_replay_of_either_stack_is_restored_sampled_and_added_to(copy_of, serve, name):
    run = copy_of(name)
    layout = item_layout(run.load_config())
    address = f"localhost:{serve(run).port}"
    client = reverb.Client(address)
    restored, stored = read_counts(client, layout), rows_of(run, "replay")[-1]
    assert (restored.inserts, restored.size) == (stored["inserts"], stored["size"])
    assert restored.samples > 0

    sampler = BatchSampler(address, layout, batch_size=32, prioritization=None, num_actions=6)
    batches = [sampler() for _ in range(4)]
    assert sampler.rejected_items == 0
    assert all(batch.frames.any(axis=(1, 2, 3)).all() for batch in batches)

    stream = NStepStream(run.load_config().learner.n_step, layout.transitions)
    row = Row(np.zeros(FRAME_SHAPE, np.uint8), 0, 0.0, 1.0, 1.0, 0)
    with ExperienceWriter(client, layout, num_streams=1, should_stop=lambda: False) as writer:
        for _ in range(30):
            writer.write(0, *stream.step(row))
    counts = read_counts(client, layout)
    assert counts.inserts > restored.inserts and counts.size == restored.size
    assert counts.samples >= restored.samples + 4 * 32


def test_a_run_of_the_other_stack_is_continued_with_its_counters_and_its_replay(copy_of):
    run = copy_of(OF_THE_OTHER_STACK)
    made_with = json.loads(run.config_file.read_text())["versions"]
    assert "dm-reverb" in stack_difference(made_with, installed_versions())
    before = newest_checkpoint(run)
    num_rows, filled = len(list(read_rows(run.metrics_file))), rows_of(run, "replay")[-1]
    done = subprocess.run(
        vantage_command("train", "--run-dir", str(run.root), "--resume", "--frames=2400"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    # Replay was never emptier than it had been, nor counted from zero again.
    replay = rows_of(run, "replay", num_rows)
    assert {row["size"] for row in replay} == {filled["size"]}
    assert replay[0]["inserts"] >= filled["inserts"]
    after = newest_checkpoint(run)
    was, now = counters(before), counters(after)
    assert now["steps"] == now["last_inserts"] == replay[-1]["inserts"] >= 600 > was["steps"]
    learner = rows_of(run, "learner", num_rows)
    assert learner[-1]["updates"] > rows_of(run, "learner")[0]["updates"]
    assert sum(row["rejected_items"] for row in learner) == 0
    assert {name: array.shape for name, array in after.items() if name != "__meta__"} == {
        name: array.shape for name, array in before.items() if name != "__meta__"
    }


@pytest.mark.parametrize("name", OF_ANOTHER_LAYOUT)
def test_a_replay_of_another_layout_is_set_aside_whichever_stack_wrote_it(
    copy_of, serve, caplog, name
):
    run = copy_of(name)
    client = reverb.Client(f"localhost:{serve(run).port}")
    counts = read_counts(client, item_layout(run.load_config()))
    assert (counts.inserts, counts.size) == (0, 0)
    assert "holds items of another layout: moved to" in caplog.text
    assert (run.root / "replay.other_layout" / "DONE").exists()


def test_a_run_with_replay_of_another_layout_is_continued_with_its_counters(copy_of):
    run = copy_of("run_of_0.1.0")
    num_rows, before = len(list(read_rows(run.metrics_file))), counters(newest_checkpoint(run))
    config = dataclasses.replace(config_to_resume(run.root), frames=7000)
    with claim(run, config, resume=True):
        launch(config, run)

    # Replay counts from zero. The run's own count goes on where it was, neither back nor ahead of
    # what was played.
    learner = rows_of(run, "learner", num_rows)
    frames = [row["frames"] for row in learner]
    assert frames == sorted(frames)
    assert frames[0] >= 4 * before["steps"] and frames[-1] >= 7000
    assert learner[-1]["updates"] > 200
    after = counters(newest_checkpoint(run))
    assert after["steps"] == before["steps"] + after["last_inserts"]


def test_a_stored_run_is_scored(copy_of, capsys):
    run = copy_of("run_of_0.1.0")
    updates = rows_of(run, "learner")[-1]["updates"]
    assert cli.run(["eval", str(run.root), "--episodes=1", "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["updates"] == updates
    assert len(scored["returns"]) == 1


def test_an_old_serial_run_is_continued_where_it_was(copy_of):
    run = copy_of("serial_run_of_0.1.0").root
    (before,) = (run / "checkpoints").iterdir()
    assert cli.run(["train", "--serial", "--run-dir", str(run), "--resume", "--frames=4000"]) == 0
    (after,) = (run / "checkpoints").iterdir()
    assert after.name > before.name
