"""`vantage train`: gives the run to the engine that was asked for."""

from launch.config import Config
from launch.engines.local import train_locally
from launch.engines.many_hosts import train_on_hosts
from launch.engines.options import (
    HostsOptions,
    Isolation,
    KubernetesOptions,
    SlurmOptions,
    TrainRequest,
)
from launch.engines.record import load_engine
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir


def train(
    config: Config,
    request: TrainRequest,
    hosts: HostsOptions,
    slurm: SlurmOptions,
    isolation: Isolation,
    kubernetes: KubernetesOptions,
) -> ExitCode:
    """Trains here, or starts the run elsewhere."""
    if request.resume and request.run_dir is not None:
        _check_place(RunDir(request.run_dir), into_cluster=request.engine == "kubernetes")
    if request.engine != "local":
        return train_on_hosts(config, request, hosts, slurm, isolation, kubernetes)
    return train_locally(config, request, isolation)


def _check_place(run_dir: RunDir, *, into_cluster: bool) -> None:
    """Refuses to continue a run where its checkpoints are not."""
    record = load_engine(run_dir)
    in_cluster = record is not None and record.engine == "kubernetes"
    if in_cluster and not into_cluster:
        raise InputError(
            f"the checkpoints of '{run_dir.root}' are in a Kubernetes cluster; bring them here "
            f"with vantage fetch {run_dir.root} DIR, and resume DIR"
        )
    if into_cluster and not in_cluster:
        raise InputError(
            f"the checkpoints of '{run_dir.root}' are here, not in a Kubernetes cluster; resume it "
            "with another --engine, or start a new run"
        )
