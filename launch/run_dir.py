"""The run directory: where everything of a run is, and how its files are written."""

import dataclasses
import fcntl
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Any, TypeVar

import psutil

from launch import config_json, trust
from launch.config import Config
from launch.errors import InputError
from launch.versions import installed_versions, stack_difference
from report.atomic_file import write_atomically
from report.json_file import open_plain_file, read_json
from report.plain_text import plain

_Read = TypeVar("_Read")
_MAX_ADDRESS_BYTES = 1024
_FOLDERS = (
    *("checkpoints", "best", "candidate", "replay", "logs", "compiled", "address", "hosts"),
    *("slurm", "keys", "bundles"),
)
_FILES = (
    *("config.json", "metrics.jsonl", "status.json", "engine.json", "lock", "stop"),
    "address/replay",
)


class InUseError(InputError):
    """Another process runs the run."""


@dataclasses.dataclass(frozen=True)
class RunDir:
    """Paths of one run."""

    root: pathlib.Path

    @property
    def config_file(self) -> pathlib.Path:
        """The resolved config, with versions, hardware and commit."""
        return self.root / "config.json"

    @property
    def metrics_file(self) -> pathlib.Path:
        """One JSON object a line, from every role."""
        return self.root / "metrics.jsonl"

    @property
    def checkpoints(self) -> pathlib.Path:
        """Learner checkpoints."""
        return self.root / "checkpoints"

    @property
    def best(self) -> pathlib.Path:
        """The parameters that scored best."""
        return self.root / "best"

    @property
    def candidate(self) -> pathlib.Path:
        """The parameters that are scored next."""
        return self.root / "candidate"

    @property
    def replay(self) -> pathlib.Path:
        """Reverb checkpoints."""
        return self.root / "replay"

    @property
    def compiled(self) -> pathlib.Path:
        """What the learner compiled since the run was last started."""
        return self.root / "compiled"

    @property
    def address_file(self) -> pathlib.Path:
        """host:port at which replay is reached: of its gate, if the run has one."""
        return self.root / "address" / "replay"

    @property
    def keys(self) -> pathlib.Path:
        """Keys of the hosts of a run, for its gate."""
        return self.root / "keys"

    def bundle(self, index: int) -> pathlib.Path:
        """All that an actor host needs where it does not see this directory."""
        return self.root / "bundles" / f"actor-{index}.json"

    @property
    def status_file(self) -> pathlib.Path:
        """The supervisor's view of its nodes."""
        return self.root / "status.json"

    @property
    def engine_file(self) -> pathlib.Path:
        """How many hosts the run has and who starts them; a local run has no such file."""
        return self.root / "engine.json"

    @property
    def scripts(self) -> pathlib.Path:
        """The scripts given to Slurm."""
        return self.root / "slurm"

    def host_file(self, index: int) -> pathlib.Path:
        """What the supervisor of one actor host sees; the learner's host writes `status_file`."""
        return self.root / "hosts" / f"actor-{index}.json"

    @property
    def stop_file(self) -> pathlib.Path:
        """Exists when someone asked the run to stop."""
        return self.root / "stop"

    def log_file(self, role: str, index: int) -> pathlib.Path:
        """Output of one node, over all its restarts."""
        return self.root / "logs" / f"{role}-{index}.log"

    def create(self, config: Config) -> None:
        """Makes the folder of a new run, readable by its owner only."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        write_atomically(self.config_file, json.dumps(describe(config), indent=2) + "\n")

    def is_there(self) -> bool:
        """Whether the folder still holds the run; a file system that hesitates does not say no."""
        try:
            self.config_file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def load_config(self) -> Config:
        """The config the run was started with."""
        return self._read_stored(lambda stored: config_json.from_json(stored["config"]))

    def _read_stored(self, read: Callable[[dict[str, Any]], _Read]) -> _Read:
        try:
            return read(read_json(self.config_file))
        except FileNotFoundError:
            raise InputError(
                f"'{self.root}' is not a run directory: no config.json in it"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self.config_file} cannot be read: {error}") from None

    def check_stack(self) -> None:
        """Refuses to let an environment take part that has another stack than the run's hosts."""
        difference = stack_difference(
            self._read_stored(lambda stored: dict(stored.get("versions", {}))), installed_versions()
        )
        if difference is not None:
            raise InputError(
                f"{sys.executable} has {difference}; use the environment it was started with, or "
                "resume the run from this one"
            )

    def check_trusted(self) -> None:
        """Refuses a folder that someone else could have put something into."""
        trust.check_folder(self.root)

    def check_own(self) -> None:
        """As `check_trusted`, and refuses a folder with something else in it than its own run."""
        trust.check_folder(self.root)
        trust.check_contents(self.root, folders=_FOLDERS, files=_FILES)

    def lock(self) -> IO[bytes]:
        """Makes this process the only one that runs the run, for as long as the file is open."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = (self.root / "lock").open("ab")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
            raise InUseError(
                f"run directory '{self.root}' is in use by a run that is still alive"
            ) from None
        except OSError:
            pass  # a file system without locks; the status of whoever runs it has to do
        return held

    def read_address(self) -> str | None:
        """host:port at which replay is reached; None before anyone said so."""
        return read_address(self.address_file)

    def publish_address(self, address: str) -> None:
        """Tells who listens where; for the owner's eyes."""
        self.address_file.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(self.address_file, address, mode=0o600)


def read_address(path: pathlib.Path) -> str | None:
    """host:port in a file; None before anyone wrote it."""
    try:
        with open_plain_file(path) as file:
            return plain(file.read(_MAX_ADDRESS_BYTES).decode(errors="replace").strip())
    except FileNotFoundError:
        return None


def describe(config: Config) -> dict[str, Any]:
    """A config, with the versions, hardware and commit its results come from."""
    return {
        "config": config_json.to_json(config),
        "versions": installed_versions(),
        "hardware": {
            "machine": platform.machine(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
        },
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _commit() -> str | None:
    """The checkout's commit, or None where the package is not in one."""
    here = pathlib.Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
