"""Which engine runs a run, over how many hosts: stored in the run directory as engine.json.

A run without that file is a local one.
"""

import dataclasses
import json
import re
import secrets
from typing import Annotated

from launch.config_json import dataclass_from_json
from launch.engines.options import (
    EngineName,
    HostSizes,
    HostsOptions,
    Isolation,
    KubernetesOptions,
    SlurmOptions,
)
from launch.errors import InputError
from launch.gate.keys import make_keys
from launch.run_dir import RunDir
from report.atomic_file import write_atomically
from report.json_file import read_json

_NO_OPTIONS = KubernetesOptions()


@dataclasses.dataclass(frozen=True)
class EngineRecord:
    """How a run over several hosts was started."""

    engine: EngineName
    # Tells this run directory from another of the same path on another disk; a part of jobs' names.
    run_id: Annotated[str, re.compile(r"[0-9a-z]{1,32}")]
    hosts: HostsOptions
    slurm: SlurmOptions
    isolation: Isolation = "auto"  # of replay on the learner's host
    kubernetes: KubernetesOptions = _NO_OPTIONS
    # What its objects are called in a Kubernetes cluster, over all its resumptions.
    cluster_name: Annotated[str | None, re.compile(r"[0-9a-z-]{1,40}")] = None

    @property
    def sizes(self) -> HostSizes:
        """What hosts are asked for; the file keeps it among Slurm's options."""
        return self.slurm.host_sizes

    @property
    def learner_devices(self) -> str:
        """What the scheduler was asked to give the learner's host, in its own words; or nothing."""
        return self.slurm.learner_gres or self.kubernetes.learner_resources or ""

    def start(self, run_dir: RunDir) -> None:
        """Writes the record of a run that is started or resumed, with new keys for its hosts."""
        # A new authority each time: what hosts of before were given opens nothing any more.
        make_keys(run_dir.keys, self.run_id, self.hosts.actor_hosts)
        self.save(run_dir)

    def save(self, run_dir: RunDir) -> None:
        """Writes the record into the run directory."""
        text = json.dumps(dataclasses.asdict(self), indent=2) + "\n"
        write_atomically(run_dir.engine_file, text)


def new_run_id() -> str:
    """A name no other run has, short enough for a job's name."""
    return secrets.token_hex(4)


def load_engine(run_dir: RunDir) -> EngineRecord | None:
    """The record of a run; None for a local one."""
    try:
        stored = read_json(run_dir.engine_file)
        if isinstance(stored, dict):  # earlier versions knew no Kubernetes
            stored.setdefault("kubernetes", {})
        return dataclass_from_json(EngineRecord, stored, "engine")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{run_dir.engine_file} cannot be read: {error}") from None
