"""The evaluator node: when it takes training for finished, and when it does not."""

import dataclasses
import threading

import jax
import launchpad as lp
import numpy as np
import pytest
import reverb

from launch import build
from launch.nodes.evaluator import run_evaluator_node
from launch.nodes.tables import replay_tables
from launch.replay import replay_limit
from launch.run_dir import RunDir
from launch.stored.best_params import load_best
from launch.stored.candidate import CandidateWriter
from launch.stored.learner_state import save
from learner import acting
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.step_counter import StepCounter
from reverb_server.params import ParamsPublisher
from reverb_server.telemetry import TelemetryReader
from tests.launch.tiny_run import tiny_config

WAIT_SECONDS = 120.0  # bounds a hang
CONFIG = dataclasses.replace(tiny_config(), frames=400_000)


@pytest.fixture
def client():
    server = reverb.Server(replay_tables(CONFIG, replay_limit(CONFIG)))
    yield reverb.Client(f"localhost:{server.port}")
    server.stop()


def publish(client: reverb.Client, *, version: int, steps: int, finished: bool) -> None:
    values = np.zeros(acting.num_acting_values(build.network_of(CONFIG)), np.float32)
    publisher = ParamsPublisher(client)
    publisher.publish(lambda: values, version=version, steps=steps, finished=finished)
    publisher.close(WAIT_SECONDS)


def test_only_the_learners_own_checkpoint_confirms_that_training_is_over(
    tmp_path, client, monkeypatch
):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(CONFIG)
    asked, stop = threading.Event(), threading.Event()

    class Checkpoints(Checkpointer):
        def newest_counters(self):
            asked.set()
            return super().newest_counters()

    monkeypatch.setattr(lp, "stop_event", lambda: stop)
    monkeypatch.setattr("launch.nodes.evaluator.Checkpointer", Checkpoints)
    evaluator = threading.Thread(
        target=run_evaluator_node, args=(CONFIG, run_dir.root, client), daemon=True
    )
    total = CONFIG.total_steps
    checkpoints = Checkpointer(run_dir.checkpoints)
    state, _ = build.make_learner(CONFIG)
    save(checkpoints, FiniteGuard(), state, StepCounter(total=total - 1))
    publish(client, version=9, steps=total, finished=True)
    evaluator.start()
    try:
        # Asked again and again, and not convinced.
        for _ in range(3):
            asked.clear()
            assert asked.wait(WAIT_SECONDS)
        assert evaluator.is_alive()
        assert TelemetryReader(client).drain() == []
        save(checkpoints, FiniteGuard(), state, StepCounter(total=total))
        evaluator.join(WAIT_SECONDS)
        assert not evaluator.is_alive()
    finally:
        stop.set()
    [row] = TelemetryReader(client).drain()
    assert row["role"] == "evaluator" and row["frames"] == CONFIG.frames
    # What acts alone was scored, and not kept.
    assert not run_dir.best.exists()


def test_the_learners_candidate_is_scored_and_kept_with_all_its_heads(
    tmp_path, client, monkeypatch
):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(CONFIG)
    monkeypatch.setattr(lp, "stop_event", threading.Event)
    state, _ = build.make_learner(CONFIG)
    total = CONFIG.total_steps
    save(Checkpointer(run_dir.checkpoints), FiniteGuard(), state, StepCounter(total=total))
    candidates = CandidateWriter(run_dir.candidate, period_frames=1000)
    candidates.write(jax.device_get(state.params), CONFIG.frames)
    publish(client, version=9, steps=total, finished=True)
    run_evaluator_node(CONFIG, run_dir.root, client)
    [row] = TelemetryReader(client).drain()
    best = load_best(run_dir.best, build.empty_params(CONFIG))
    assert best is not None and (best.frames, best.score) == (CONFIG.frames, row["eval_return"])
    jax.tree.map(np.testing.assert_array_equal, best.params, dict(state.params))
