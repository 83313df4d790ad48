"""`vantage train`: checks the input, makes the run directory, supervises the nodes of the run."""

import dataclasses
import pathlib
import sys
import time
from typing import IO

from launch import config as config_lib
from launch import config_checks
from launch.config import Config
from launch.engines.record import EngineName
from launch.errors import ExitCode, InputError
from launch.layout import node_names
from launch.run_dir import RunDir
from launch.supervise.nodes_on_host import StopSignals, note, replay_port, supervise_nodes
from launch.supervise.supervisor import Outcome
from report.operational_fields import OPERATIONAL_FIELDS

# How it is scored may change too: nothing that was learned depends on it.
FREE_TO_CHANGE_ON_RESUME = OPERATIONAL_FIELDS | {"eval_episodes", "eval_epsilon"}


@dataclasses.dataclass(frozen=True)
class TrainRequest:
    """What the command line asks for beside the config itself."""

    run_dir: pathlib.Path | None = None
    """Where the run lives; by default a new folder under runs/."""
    resume: bool = False
    """Continue the run in --run-dir from its checkpoints."""
    serial: bool = False
    """Everything in one process, deterministic for a seed: for debugging."""
    isolate: bool = False
    """Run in a network namespace of its own: nothing outside can reach the run's port."""
    engine: EngineName = "local"
    """Who starts the processes: this machine, Slurm, or you on each of your `hosts`."""
    dry_run: bool = False
    """Print what --engine slurm or hosts would start, and start nothing."""


def train(config: Config, request: TrainRequest) -> ExitCode:
    """Runs a training run to its end, on this machine."""
    if request.dry_run:
        raise InputError("--dry-run shows what --engine slurm or hosts would start; add --engine")
    config_checks.check_config(config)
    config_checks.check_machine(config)
    run_dir = checked_run_dir(config, request)
    with taken(run_dir, config):
        run_dir.engine_file.unlink(missing_ok=True)
        if request.serial:
            from launch.engines.serial.system import (
                train_serially,  # JAX is not needed to supervise
            )

            return train_serially(config, run_dir)
        return _train_in_processes(config, run_dir)


def config_to_resume(run_dir: pathlib.Path | None) -> Config:
    """The stored config, from which a resumed run's flags start."""
    if run_dir is None:
        raise InputError("--resume needs --run-dir: which run is to be continued?")
    run = RunDir(run_dir)
    run.check_trusted()
    run.check_layout()
    return run.load_config()


def run_dir_of(config: Config, request: TrainRequest) -> RunDir:
    """The run directory asked for, or a new one."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return RunDir(request.run_dir or config_lib.default_run_dir(config, stamp))


def checked_run_dir(config: Config, request: TrainRequest) -> RunDir:
    """The run directory: one that can be made, or continued with this config."""
    if request.resume:
        stored = config_to_resume(request.run_dir)
        for name, before, now in config_lib.fields_that_differ(stored, config):
            if name not in FREE_TO_CHANGE_ON_RESUME:
                raise InputError(
                    f"cannot resume with {name}={now}: the run was started with {name}={before}; "
                    "drop the flag, or start a new run"
                )
    run_dir = run_dir_of(config, request)
    if not request.resume:
        config_checks.check_new_run_dir(run_dir.root)
    elif _is_running(run_dir):
        raise InputError(f"run directory '{run_dir.root}' is in use by a run that is still alive")
    else:
        _check_checkpoints(run_dir)
    return run_dir


def taken(run_dir: RunDir, config: Config) -> IO[bytes]:
    """Writes the config into the folder, which is ours alone while the result is open."""
    try:
        held = run_dir.lock()
        run_dir.create(config)
    except OSError as error:
        raise InputError(f"cannot write run directory '{run_dir.root}': {error.strerror}") from None
    return held


def _check_checkpoints(run_dir: RunDir) -> None:
    from learner.checkpoint import Checkpointer, CheckpointError  # JAX, and only to resume

    try:
        Checkpointer(run_dir.checkpoints).check_format()
    except CheckpointError as error:
        raise InputError(str(error)) from None


def _is_running(run_dir: RunDir) -> bool:
    from launch.commands.status import read_status  # status is a command of its own

    status = read_status(run_dir)
    return status is not None and status.alive


def _train_in_processes(config: Config, run_dir: RunDir) -> ExitCode:
    port = replay_port(config)
    run_dir.publish_address(f"localhost:{port}")
    run_dir.stop_file.unlink(missing_ok=True)
    _introduce(config, run_dir, port)
    stop = StopSignals()
    outcome = supervise_nodes(
        config, run_dir, node_names(config), status_file=run_dir.status_file, stop=stop
    )
    return _conclude(outcome, run_dir, stop)


def _introduce(config: Config, run_dir: RunDir, port: int) -> None:
    estimate = config_checks.replay_bytes_estimate(config) / 2**30
    note(
        f"{config.learner.algorithm} on {config.environment.game}: {config.frames:,} frames, "
        f"{config.actor.actors} actors x {config.actor.envs_per_actor} games, seed {config.seed}"
    )
    note(f"run directory {run_dir.root}, Reverb on port {port}, replay up to {estimate:.1f} GiB")


def _conclude(outcome: Outcome, run_dir: RunDir, stop: StopSignals) -> ExitCode:
    resume = f"continue with: vantage train --run-dir {run_dir.root} --resume"
    if outcome is Outcome.FAILED:
        print(f"vantage: error: the run failed; {resume}", file=sys.stderr)
        return ExitCode.FAILED
    if outcome is Outcome.STOPPED:
        print(f"stopped; {resume}")
        return stop.exit_code if stop.requested else ExitCode.DONE
    print(f"finished; see {run_dir.root}")
    return ExitCode.DONE
