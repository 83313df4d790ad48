"""`vantage train`: checks the input, makes the run directory, supervises the nodes of the run."""

import dataclasses
import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable

import portpicker

from launch import checks
from launch import config as config_lib
from launch.config import Config
from launch.errors import ExitCode, InputError
from launch.layout import RESTART_VARIABLE, NodeName, node_names
from launch.monitor.follow import MetricsFollower
from launch.monitor.terminal import View, make_view
from launch.monitor.view import RunView
from launch.run_dir import RunDir
from launch.supervisor import NodeSpec, Outcome, StopStep, Supervisor

# Actors first, so that the learner's last checkpoint and then replay's see everything they wrote.
_STOP_STEPS = (
    StopStep(frozenset({"actor", "evaluator"}), 20.0),
    StopStep(frozenset({"learner"}), 60.0),
    StopStep(frozenset({"monitor"}), 20.0),
    StopStep(frozenset({"replay"}), 120.0),
)
# The evaluator ends by itself, once it has scored the final parameters.
_FINISH_STEPS = (
    StopStep(frozenset({"actor"}), 20.0),
    StopStep(frozenset({"evaluator"}), 1800.0, ask=False),
    *_STOP_STEPS[2:],
)

_FREE_TO_CHANGE_ON_RESUME = frozenset(
    {
        "frames",
        "actors",
        "envs_per_actor",
        "stale_params_seconds",
        "port",
        "report_seconds",
        "checkpoint_seconds",
        "replay_checkpoint_seconds",
        "keep_checkpoints",
        "publish_period_updates",
        "eval_period_frames",
        "eval_episodes",
        "eval_epsilon",
    }
)


@dataclasses.dataclass(frozen=True)
class TrainRequest:
    """What the command line asks for beside the config itself."""

    run_dir: pathlib.Path | None = None
    """Where the run lives; by default a new folder under runs/."""
    resume: bool = False
    """Continue the run in --run-dir from its checkpoints."""
    serial: bool = False
    """Everything in one process, deterministic for a seed: for debugging."""


def train(config: Config, request: TrainRequest) -> ExitCode:
    """Runs a training run to its end."""
    checks.check_config(config)
    run_dir = _prepare(config, request)
    if request.serial:
        from launch.serial import train_serially  # JAX is not needed to supervise

        return train_serially(config, run_dir)
    return _train_in_processes(config, run_dir)


def config_to_resume(run_dir: pathlib.Path | None) -> Config:
    """The stored config, from which a resumed run's flags start."""
    if run_dir is None:
        raise InputError("--resume needs --run-dir: which run is to be continued?")
    return RunDir(run_dir).load_config()


def _prepare(config: Config, request: TrainRequest) -> RunDir:
    if request.resume:
        stored = config_to_resume(request.run_dir)
        for name, before, now in config_lib.fields_that_differ(stored, config):
            if name not in _FREE_TO_CHANGE_ON_RESUME:
                raise InputError(
                    f"cannot resume with {name}={now}: the run was started with {name}={before}; "
                    "drop the flag, or start a new run"
                )
    stamp = time.strftime("%Y%m%d-%H%M%S")
    run_dir = RunDir(request.run_dir or config_lib.default_run_dir(config, stamp))
    if not request.resume:
        checks.check_new_run_dir(run_dir.root)
    elif _is_running(run_dir):
        raise InputError(f"run directory '{run_dir.root}' is in use by a run that is still alive")
    if config.replay.port:
        checks.check_port(config.replay.port)
    try:
        run_dir.create(config)
    except OSError as error:
        raise InputError(f"cannot write run directory '{run_dir.root}': {error.strerror}") from None
    return run_dir


def _is_running(run_dir: RunDir) -> bool:
    from launch.status import read_status  # status is a command of its own

    status = read_status(run_dir)
    return status is not None and status.alive


def _train_in_processes(config: Config, run_dir: RunDir) -> ExitCode:
    port = config.replay.port or portpicker.pick_unused_port()
    run_dir.publish_address(f"localhost:{port}")
    run_dir.stop_file.unlink(missing_ok=True)
    view = make_view()
    _introduce(config, run_dir, port)
    stop = _StopSignals()
    supervisor = Supervisor(
        [_node_spec(run_dir, name) for name in node_names(config)],
        finishing_role="learner",
        stop_steps=_STOP_STEPS,
        finish_steps=_FINISH_STEPS,
        restart_variable=RESTART_VARIABLE,
        status_file=run_dir.status_file,
        stop_requested=lambda: stop.requested or run_dir.stop_file.exists(),
        on_tick=_make_display(config, run_dir, view),
        on_event=_note,
    )
    stop.install(supervisor.kill)
    try:
        outcome = supervisor.run()
    finally:
        view.close()
    return _conclude(outcome, run_dir, interrupted=stop.requested)


def _introduce(config: Config, run_dir: RunDir, port: int) -> None:
    estimate = checks.replay_bytes_estimate(config) / 2**30
    _note(
        f"{config.learner.algorithm} on {config.environment.game}: {config.frames:,} frames, "
        f"{config.actor.actors} actors x {config.actor.envs_per_actor} games, seed {config.seed}"
    )
    _note(f"run directory {run_dir.root}, Reverb on port {port}, replay up to {estimate:.1f} GiB")


def _note(message: str) -> None:
    """A line for the user; a live view lets it scroll by above itself."""
    print(message, flush=True)


def _conclude(outcome: Outcome, run_dir: RunDir, *, interrupted: bool) -> ExitCode:
    resume = f"continue with: vantage train --run-dir {run_dir.root} --resume"
    if outcome is Outcome.FAILED:
        print(f"vantage: error: the run failed; {resume}", file=sys.stderr)
        return ExitCode.FAILED
    if outcome is Outcome.STOPPED:
        print(f"stopped; {resume}")
        return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE
    print(f"finished; see {run_dir.root}")
    return ExitCode.DONE


def _make_display(config: Config, run_dir: RunDir, view: View) -> Callable[[], None]:
    follower = MetricsFollower(run_dir.metrics_file)
    state = RunView(
        total_frames=config.frames, target_samples_per_insert=config.replay.samples_per_insert
    )

    said: set[str] = set()

    def display() -> None:
        try:
            state.add(follower.poll())
        except (OSError, ValueError) as error:
            # A picture is not worth a run: say once what is wrong with the file.
            if str(error) not in said:
                _note(f"cannot show progress: {error}")
            said.add(str(error))
        view.update(state.snapshot())

    return display


def _node_spec(run_dir: RunDir, name: NodeName) -> NodeSpec:
    return NodeSpec(
        name=name,
        command=[
            sys.executable,
            "-m",
            "launch.node_entry",
            str(run_dir.root.resolve()),
            name.role,
            str(name.index),
        ],
        environment=_node_environment(name.role),
        log_file=run_dir.log_file(name.role, name.index),
    )


def _node_environment(role: str) -> dict[str, str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}
    if role == "learner":
        return environment
    # The accelerator is the learner's alone, and so are all threads but one each.
    one_thread = {
        "OMP_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    flags = f"{environment.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    cpu_only = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "XLA_FLAGS": flags}
    return {**environment, **one_thread, **cpu_only}


class _StopSignals:
    """Ctrl-C or SIGTERM once: stop in order. Ctrl-C again: kill."""

    def __init__(self) -> None:
        self.requested = False

    def install(self, kill: Callable[[], None]) -> None:
        def handle(number: int, frame: object) -> None:
            del number, frame
            if self.requested:
                _note("killing the run")
                kill()
            else:
                _note("stopping: draining and writing checkpoints (Ctrl-C again to kill)")
            self.requested = True

        signal.signal(signal.SIGINT, handle)
        signal.signal(signal.SIGTERM, handle)
