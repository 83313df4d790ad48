"""`vantage scale` of a run in a cluster: more or fewer indices of the actors' job."""

from launch.config import Config
from launch.engines.kubernetes import cluster, manifests, names
from launch.engines.record import EngineRecord
from launch.errors import InputError
from launch.run_dir import RunDir
from launch.terminal import say


def check_running(record: EngineRecord, run_dir: RunDir) -> None:
    """Refuses a run that has nobody to play for, and one whose actors' job has ended for good."""
    states = {job.component: job.state for job in cluster.jobs(record)}
    for component, name in (("learner", "learner's"), ("actor", "actors'")):
        if states.get(component) != "active":
            raise InputError(
                f"'{run_dir.root}' has no {name} job at work in the cluster "
                f"({states.get(component, 'none')}); stop it, and continue it with: vantage train "
                f"--run-dir {run_dir.root} --resume --actor-hosts {record.hosts.actor_hosts}"
            )


def match(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    """Gives the cluster what new hosts need, then changes their number."""
    actor_keys = manifests.secrets(record, run_dir)[1]
    cluster.apply(record, [manifests.config_map(record, config), actor_keys])
    hosts = record.hosts.actor_hosts
    # Together: one alone is refused.
    change = {"spec": {"completions": hosts, "parallelism": hosts}}
    cluster.patch(record, "job", names.actor(record), change)
    say(f"{run_dir.root}: {hosts} actor hosts")
