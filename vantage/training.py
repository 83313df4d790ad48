"""Training from a script: the engine of `vantage train`, and the program for other launchers."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import warnings
from collections.abc import Iterator
from typing import Any

from launch.config import Config
from launch.config_checks import check_config
from launch.engines.claim import config_to_resume, run_dir_of
from launch.engines.local import train_locally
from launch.engines.options import TrainRequest
from launch.errors import ExitCode

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class TrainingError(RuntimeError):
    """A run that ended before its time; what it said, and the logs in its folder, tell why."""


def train(
    config: Config,
    run_dir: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    serial: bool = False,
) -> pathlib.Path:
    """Trains to the end, as `vantage train` does on this machine; returns the run directory.

    Without one it makes a new folder under runs/. `resume` continues the run in it, `serial` keeps
    everything in this process. Ctrl-C stops the run after a checkpoint and raises
    KeyboardInterrupt then. To be called in the main thread, as all that handles signals.
    """
    asked = None if run_dir is None else pathlib.Path(run_dir)
    if resume and config.schedule_frames is None:
        # A run that is made longer keeps the schedules it began with.
        schedule = config_to_resume(asked).schedule_frames
        config = dataclasses.replace(config, schedule_frames=schedule)
    request = TrainRequest(run_dir=asked, resume=resume, serial=serial)
    root = run_dir_of(config, request).root
    with _restored_signals(), warnings.catch_warnings():
        # JAX, if the script has used it, warns of any fork; these only run programs.
        warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
        code = train_locally(config, dataclasses.replace(request, run_dir=root), "auto")
    if code is ExitCode.INTERRUPTED:
        raise KeyboardInterrupt(f"stopped after a checkpoint; continue '{root}' with resume=True")
    if code is not ExitCode.DONE:
        raise TrainingError(f"run '{root}' ended with exit code {int(code)}; see '{root}/logs'")
    return root


def make_program(config: Config, run_dir: str | os.PathLike[str]) -> Any:
    """The run as a `launchpad.Program`, to be launched by other means than ours.

    Makes the run directory, in which learner, evaluator and monitor write, unless the run is there.
    """
    # Here, because it imports TensorFlow, which nothing else in this package needs.
    from launch.engines.claim import claim
    from launch.program import make_program as program_of
    from launch.run_dir import RunDir

    check_config(config)
    run = RunDir(pathlib.Path(run_dir))
    claim(run, config, resume=run.config_file.exists()).close()
    return program_of(config, run.root)


@contextlib.contextmanager
def _restored_signals() -> Iterator[None]:
    """A run takes over the signals of its process; afterwards they are the caller's again."""
    handlers = [signal.getsignal(number) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            signal.signal(number, handler)
