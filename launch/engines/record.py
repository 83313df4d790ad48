"""Which engine runs a run, over how many hosts: stored in the run directory as engine.json.

A run without that file is a local one.
"""

import dataclasses
import json
import secrets

from launch.engines.options import EngineName, HostsOptions, SlurmOptions
from launch.errors import InputError
from launch.run_dir import RunDir, write_atomically


@dataclasses.dataclass(frozen=True)
class EngineRecord:
    """How a run over several hosts was started."""

    engine: EngineName
    run_id: str  # tells this run directory from another of the same path on another disk
    hosts: HostsOptions
    slurm: SlurmOptions

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
        stored = json.loads(run_dir.engine_file.read_text())
        return EngineRecord(
            engine=stored["engine"],
            run_id=stored["run_id"],
            hosts=HostsOptions(**stored["hosts"]),
            slurm=SlurmOptions(**stored["slurm"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{run_dir.engine_file} cannot be read: {error}") from None
