"""The local engine: all nodes of a run on this machine, supervised until training is over."""

import contextlib

from launch import config_checks
from launch.config import Config
from launch.engines.claim import check_claim, claim, run_dir_of
from launch.engines.dry_run import show_resolved
from launch.engines.ending import conclude
from launch.engines.isolate import namespace_for
from launch.engines.options import Isolation, TrainRequest
from launch.errors import ExitCode
from launch.layout import node_names
from launch.machine.device import Device, DeviceName, find_device, unused_accelerator
from launch.replay import replay_bytes_estimate
from launch.run_dir import RunDir
from launch.supervise.namespace import Namespace
from launch.supervise.nodes_on_host import NODE_MODULE, replay_port, supervise_nodes
from launch.supervise.stop_signals import StopSignals
from launch.terminal import say, warn
from report.counted import counted


def train_locally(
    config: Config,
    request: TrainRequest,
    isolation: Isolation,
    *,
    node_module: str = NODE_MODULE,
) -> ExitCode:
    """Runs a training run to its end, on this machine."""
    config_checks.check_config(config)
    if request.serial:
        config_checks.check_serial(config)
    names = node_names(config)
    # In one process there are no actors, and nobody shares a core.
    alone = [name for name in names if name.role == "learner"]
    config_checks.check_machine(config, alone if request.serial else names)
    device = find_device(config.learner.device)
    run_dir = run_dir_of(config, request)
    if request.dry_run:
        check_claim(run_dir, config, resume=request.resume)
        show_resolved(config, run_dir, engine="serial" if request.serial else "local")
        return ExitCode.DONE
    port = replay_port(config)
    # One process has no port to close.
    namespace = None if request.serial else namespace_for(isolation, port)
    with namespace or contextlib.nullcontext(), claim(run_dir, config, resume=request.resume):
        run_dir.engine_file.unlink(missing_ok=True)
        _announce(device, config.learner.device)
        if request.serial:
            _introduce(config, run_dir, "replay in this process")
            # Here, because JAX is not needed to supervise.
            from launch.engines.serial.run import train_serially

            return train_serially(config, run_dir)
        return _train_in_processes(config, run_dir, port, namespace, node_module)


def _announce(device: Device, asked: DeviceName) -> None:
    say(f"the learner computes on {device}")
    unused = unused_accelerator(device) if asked == "auto" else None
    if unused is not None:
        warn(f"{unused.found}; {unused.fix}, or choose --device cpu")


def _train_in_processes(
    config: Config, run_dir: RunDir, port: int, namespace: Namespace | None, node_module: str
) -> ExitCode:
    address = f"localhost:{port}"
    run_dir.publish_address(address)
    run_dir.stop_file.unlink(missing_ok=True)
    where = f"port {port}{' of its own network' if namespace else ''}"
    _introduce(config, run_dir, f"Reverb on {where}, replay")
    names = node_names(config)
    crowded = config_checks.crowd_warning(names)
    if crowded is not None:
        warn(crowded)
    stop = StopSignals()
    outcome = supervise_nodes(
        config,
        run_dir,
        names,
        replay_address=address,
        status_file=run_dir.status_file,
        stop=stop,
        namespace=namespace,
        node_module=node_module,
    )
    return conclude(outcome, run_dir.root, stop)


def _introduce(config: Config, run_dir: RunDir, replay: str) -> None:
    estimate = replay_bytes_estimate(config) / 2**30
    say(
        f"{config.learner.algorithm} on {config.environment.game}: {config.frames:,} frames, "
        f"{counted(config.actor.actors, 'actor')} x "
        f"{counted(config.actor.envs_per_actor, 'game')}, seed {config.seed}"
    )
    say(f"run directory {run_dir.root}, {replay} up to {estimate:.1f} GiB")
