"""Makes a run directory this process's own: a new folder, or one to resume with this config."""

import pathlib
import time
from typing import IO

from launch.config import Config, default_run_dir
from launch.config_json import fields_that_differ
from launch.engines.options import TrainRequest
from launch.errors import InputError
from launch.names import check_printable
from launch.run_dir import RunDir
from launch.supervise.status_file import read_status
from launch.supervise.supervisor import Outcome
from report.config_fields import OPERATIONAL_FIELDS

# How it is scored may change too: nothing that was learned depends on it.
FREE_TO_CHANGE_ON_RESUME = OPERATIONAL_FIELDS | {"eval_episodes", "eval_epsilon", "eval_frames"}


def config_to_resume(run_dir: pathlib.Path | None) -> Config:
    """The stored config, from which a resumed run's flags start.

    Its schedules are spelled out: they stay what they are when the run is lengthened.
    """
    if run_dir is None:
        raise InputError("--resume needs --run-dir: which run is to be continued?")
    run = RunDir(run_dir)
    run.check_own()
    return run.load_config().with_schedule()


def run_dir_of(config: Config, request: TrainRequest) -> RunDir:
    """The run directory asked for, or a new one."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    root = request.run_dir or default_run_dir(config, stamp)
    check_printable("run_dir", str(root.absolute()))
    return RunDir(root)


def claim(run_dir: RunDir, config: Config, *, resume: bool) -> IO[bytes]:
    """Writes the config into the folder, which is ours alone while the result is open.

    Refuses a folder that holds something else, and a run that cannot go on with this config.
    """
    check_claim(run_dir, config, resume=resume)
    try:
        held = run_dir.lock()
        run_dir.create(config)
    except OSError as error:
        raise InputError(f"cannot write run directory '{run_dir.root}': {error.strerror}") from None
    return held


def check_claim(run_dir: RunDir, config: Config, *, resume: bool) -> None:
    """Refuses what `claim` refuses, and writes nothing."""
    if resume:
        _check_resumable(run_dir, config)
        return
    if run_dir.config_file.exists():
        raise InputError(f"run directory '{run_dir.root}' holds a run already{_way_on(run_dir)}")
    if run_dir.root.exists() and (not run_dir.root.is_dir() or any(run_dir.root.iterdir())):
        raise InputError(
            f"run directory '{run_dir.root}' exists and is not an empty folder; choose another"
        )


def _way_on(run_dir: RunDir) -> str:
    """What may be done about a folder that holds a run: no way is named that would be refused."""
    another = "choose another with --run-dir"
    try:
        config_to_resume(run_dir.root)
    except InputError:
        return f"; {another}"
    status = read_status(run_dir)
    if status is not None and status.alive:
        return f", which is alive; look at it with vantage status, or {another}"
    state = None if status is None else status.state
    if state == Outcome.HOPELESS.value:
        return f", which failed for good; {another}"
    if state == Outcome.FINISHED.value:
        return f", which is over; train it longer with --resume --frames, or {another}"
    return f"; continue it with --resume, or {another}"


def _check_resumable(run_dir: RunDir, config: Config) -> None:
    stored = config_to_resume(run_dir.root)
    check_same_run(stored, config)
    status = read_status(run_dir)
    if status is not None and status.alive:
        raise InputError(f"run directory '{run_dir.root}' is in use by a run that is still alive")
    done = _frames_done(run_dir, config)
    if config.frames < min(done, stored.frames):
        raise InputError(
            f"cannot resume with frames={config.frames}: the run has trained for {done:,} frames "
            "already; give it more, or drop the flag"
        )


def _frames_done(run_dir: RunDir, config: Config) -> int:
    """Frames of the newest checkpoint; refuses one of another version."""
    from launch.stored.learner_state import saved_steps  # JAX, and only to resume
    from learner.checkpoint import Checkpointer, CheckpointError

    try:
        return config.frames_of(saved_steps(Checkpointer(run_dir.checkpoints)))
    except CheckpointError as error:
        raise InputError(str(error)) from None


def check_same_run(stored: Config, config: Config) -> None:
    """Refuses a config with which the run of another cannot go on."""
    for name, before, now in fields_that_differ(stored, config):
        if name not in FREE_TO_CHANGE_ON_RESUME:
            raise InputError(
                f"cannot resume with {name}={now}: the run was started with {name}={before}; "
                "drop the flag, or start a new run"
            )
