"""`vantage train`: gives the run to the engine that was asked for."""

from launch.config import Config
from launch.engines.local import train_locally
from launch.engines.many_hosts import train_on_hosts
from launch.engines.options import HostsOptions, Isolation, SlurmOptions, TrainRequest
from launch.errors import ExitCode


def train(
    config: Config,
    request: TrainRequest,
    hosts: HostsOptions,
    slurm: SlurmOptions,
    isolation: Isolation,
) -> ExitCode:
    """Trains here, or starts the run elsewhere."""
    if request.engine != "local":
        return train_on_hosts(config, request, hosts, slurm, isolation)
    return train_locally(config, request, isolation)
