"""What `vantage train` and `vantage host` are asked beside the config: flags, and nothing else."""

import dataclasses
import pathlib
import re
from typing import Annotated, Literal, NamedTuple

from launch.bounds import COUNT, Bounds
from launch.errors import InputError
from report.plain_text import plain

EngineName = Literal["local", "slurm", "hosts", "kubernetes"]
# Whether a run gets a network namespace of its own: where there can be one, or it is refused.
Isolation = Literal["auto", "yes", "no"]
GroupName = Literal["replay", "learner", "evaluator", "monitor", "actor"]
LEARNER_GROUPS: tuple[GroupName, ...] = ("replay", "learner", "evaluator", "monitor")
ACTOR_GROUPS: tuple[GroupName, ...] = ("actor",)
_HOSTS = Bounds(1, 10_000)
_ADDRESS = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.%]{1,60}\]")


@dataclasses.dataclass(frozen=True)
class TrainRequest:
    """What the command line asks for beside the config itself."""

    run_dir: pathlib.Path | None = None
    """Where the run lives; by default a new folder under runs/."""
    resume: bool = False
    """Continue the run in --run-dir from its checkpoints."""
    serial: bool = False
    """Everything in one process, deterministic for a seed: for debugging."""
    isolate: bool = True
    """Keep replay's port in a network namespace of the run's own, where there can be one; given,
    the run is refused where there cannot."""
    engine: EngineName = "local"
    """Who starts the processes: this machine, Slurm, Kubernetes, or you on each of your `hosts`."""
    dry_run: bool = False
    """Print the resolved config, and what other hosts would start; start and write nothing."""


@dataclasses.dataclass(frozen=True)
class HostsOptions:
    """Not on this machine alone: the actors' hosts, beside the learner's."""

    actor_hosts: Annotated[int, _HOSTS] = 1
    """Hosts that play."""
    actors_per_host: Annotated[int, _HOSTS] = 2
    """Actor processes on each of them (a core each)."""
    learner_address: str | None = None
    """Name or address by which actor hosts reach the learner's. With --engine hosts and --port they
    then need no shared file system: one small file each is all they are given."""

    @property
    def num_actors(self) -> int:
        """Actors of the whole run."""
        return self.actor_hosts * self.actors_per_host

    def check(self) -> None:
        """Raises InputError for numbers no run can have."""
        _HOSTS.check(actor_hosts=self.actor_hosts, actors_per_host=self.actors_per_host)
        if self.learner_address is not None and not _ADDRESS.fullmatch(self.learner_address):
            raise InputError(
                f"learner_address={plain(self.learner_address)} is no name or address of a host"
            )


class HostSizes(NamedTuple):
    """How large hosts are and how long they drain: asked of both schedulers, by the same flags."""

    learner_cpus: int
    learner_mem: str | None
    actor_mem: str | None
    drain_seconds: int


@dataclasses.dataclass(frozen=True)
class SlurmOptions:
    """Only with --engine slurm."""

    learner_partition: str | None = None
    """Partition of the learner's host; None is the cluster's default."""
    learner_gres: str | None = None
    """Generic resources of the learner's host, such as gpu:1."""
    learner_cpus: Annotated[int, COUNT] = 4
    """Cores of the learner's host: learner, replay, evaluator and monitor share them."""
    learner_mem: str | None = None
    """Memory of the learner's host, as for sbatch --mem; None: replay's need and 6 GiB."""
    actor_partition: str | None = None
    """Partition of the actors' hosts; None is the cluster's default."""
    actor_mem: str | None = None
    """Memory of an actor host, as for sbatch --mem; None: 1.5 GiB per actor."""
    account: str | None = None
    """Account to charge."""
    time: str | None = None
    """Time limit of one stretch (2-00:00:00); the run goes on in a next one."""
    drain_seconds: Annotated[int, COUNT] = 300
    """How long before the time limit hosts begin to drain and write checkpoints."""
    sbatch_extra: str = ""
    """More sbatch options for both jobs, such as "--qos=high --exclude=n13"; they win."""

    @property
    def host_sizes(self) -> HostSizes:
        """Those of these options that Kubernetes has too."""
        return HostSizes(*(getattr(self, name) for name in HostSizes._fields))


@dataclasses.dataclass(frozen=True)
class KubernetesOptions:
    """Only with --engine kubernetes; --learner-cpus, --*-mem and --drain-seconds hold there too."""

    image: str | None = None
    """Image of learner and actors, as the Dockerfile builds it: its entry point is `vantage`."""
    namespace: str | None = None
    """Namespace of the run; None is that of the context."""
    context: str | None = None
    """Context of kubectl: which cluster, and as whom; None is the current one."""
    learner_resources: str | None = None
    """Devices of the learner's pod, such as nvidia.com/gpu=1 or google.com/tpu=4."""
    learner_node_selector: str | None = None
    """Labels that the learner's node must have, as key=value,key=value."""
    actor_node_selector: str | None = None
    """The same of the actors' nodes: spot nodes, say."""
    learner_tolerations: str | None = None
    """Taints that the learner's pod puts up with, as key=value:NoSchedule,key:NoExecute."""
    actor_tolerations: str | None = None
    """The same of the actors' pods."""
    learner_priority_class: str | None = None
    """Priority class of the learner's pod: above the actors', so that it never gives way."""
    actor_priority_class: str | None = None
    """Priority class of the actors' pods."""
    storage_class: str | None = None
    """Storage class of the run directory's volume; None is the cluster's default."""
    storage: str = "20Gi"
    """Size of that volume: checkpoints of learner and replay."""
    queue: str | None = None
    """Kueue's local queue, if the cluster has Kueue."""
    image_pull_secret: str | None = None
    """Secret with the password of the image's registry."""


@dataclasses.dataclass(frozen=True)
class HostRequest:
    """Runs one host's share of a run: the learner's groups, or a few actors."""

    run_dir: pathlib.Path | None = None
    """The run directory. Without a file system that all hosts share, an actor host needs none, but
    --bundle, or --config and --key."""
    groups: tuple[GroupName, ...] = ()
    """`replay learner evaluator monitor` for the learner's host, `actor` for an actor host."""
    bundle: str | None = None
    """All that an actor host needs, in one file that `vantage train` wrote; - is standard input."""
    config: pathlib.Path | None = None
    """The config of the run and of its engine, for a host without a shared run directory."""
    key: pathlib.Path | None = None
    """The key of this host, with --config."""
    index: int = 0
    """Which of the actor hosts this is, from 0."""
    address: str | None = None
    """Name or address under which other hosts reach this one; None: what Slurm or the host says."""
    run_id: str | None = None
    """Refuse a run directory that is not this run's."""
    print_logs: bool = False
    """Print what nodes write to their logs, as an actor host without a run directory does."""
    come_back: bool = False
    """SIGTERM makes room and ends with code 75, as SIGUSR1 does: a scheduler starts it again."""
