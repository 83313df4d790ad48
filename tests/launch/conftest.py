"""Run directories, and commands called in this process."""

import signal

import pytest

from launch import build
from launch.cli import main as cli
from launch.config import PRESETS
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord
from launch.run_dir import RunDir
from launch.stored.learner_state import save
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.step_counter import StepCounter
from tests.launch.tiny_run import tiny_config


@pytest.fixture
def refuse(capsys):
    """Runs a command that must be refused; returns its one line."""

    def run_refused(*args: str) -> str:
        assert cli.run(args) == 2
        message = capsys.readouterr().err
        assert message.startswith("vantage: error: ")
        assert message.count("\n") == 1
        return message

    return run_refused


@pytest.fixture
def restored_signals():
    """Puts back the handlers that a run or a suite takes over."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def local_run(tmp_path):
    """The folder of a local run that was never started."""
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(PRESETS["cpu"])
    return run_dir


@pytest.fixture
def hosts_run(tmp_path, monkeypatch):
    """The folder of a run of two actor hosts, as --engine hosts makes it."""
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(PRESETS["cpu"])
    EngineRecord("hosts", "c0ffee", HostsOptions(2, 3), SlurmOptions()).start(run_dir)
    return run_dir


@pytest.fixture(scope="module")
def scored_run(tmp_path_factory):
    """A run directory with a checkpoint of untrained parameters."""
    run_dir = RunDir(tmp_path_factory.mktemp("runs") / "run")
    config = tiny_config()
    run_dir.create(config)
    state, _ = build.make_learner(config)
    steps = StepCounter(total=400, last_inserts=400)
    save(Checkpointer(run_dir.checkpoints), FiniteGuard(), state, steps)
    return run_dir.root
