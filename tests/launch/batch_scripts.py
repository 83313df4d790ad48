"""What a batch script asks Slurm for, and what it runs."""

import pathlib
import shlex

from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord

RUN_DIR = pathlib.Path("/shared/my runs/100%")


def make_record(**slurm: object) -> EngineRecord:
    return EngineRecord("slurm", "c0ffee", HostsOptions(3, 4), SlurmOptions(**slurm))


def options_of(script: str) -> dict[str, str]:
    """The #SBATCH options by name; those without a value are empty."""
    found = {}
    for line in script.splitlines():
        if line.startswith("#SBATCH "):
            for word in shlex.split(line.removeprefix("#SBATCH ")):
                name, _, value = word.partition("=")
                found[name] = value
    return found


def command_line_of(script: str) -> str:
    [line] = [line for line in script.splitlines() if line.endswith(" &")]
    return line.removesuffix(" &")


def command_of(script: str) -> list[str]:
    return shlex.split(command_line_of(script))
