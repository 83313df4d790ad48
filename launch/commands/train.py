"""`vantage train`: gives the run to the engine that was asked for."""

from collections.abc import Sequence

from launch.config import Config
from launch.engines import isolate
from launch.engines.local import train_locally
from launch.engines.many_hosts import train_on_hosts
from launch.engines.options import HostsOptions, SlurmOptions, TrainRequest
from launch.errors import ExitCode


def train(
    config: Config,
    request: TrainRequest,
    hosts: HostsOptions,
    slurm: SlurmOptions,
    args: Sequence[str],
) -> ExitCode:
    """Trains here, or starts the run elsewhere; `args` are the command's own, to start it anew."""
    if request.engine != "local":
        return train_on_hosts(config, request, hosts, slurm)
    if request.isolate and not request.dry_run and not isolate.is_isolated():
        isolate.restart_isolated(["train", *args])
    return train_locally(config, request)
