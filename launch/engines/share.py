"""What a host is given where no file system is shared: config, key, and the gate's address.

The config says what run it is and, with --learner-address, where its gate is. The key proves that
the host belongs to it. A bundle is both in one file, for one actor host. From these a host makes a
run directory of its own, and does in it what hosts that share one do there.
"""

import dataclasses
import json
import pathlib
import sys
import time
from typing import Any

from launch import config_json
from launch.config import Config
from launch.engines.claim import check_same_run
from launch.engines.record import EngineRecord, load_engine
from launch.errors import InputError
from launch.gate import keys
from launch.monitor.host_rows import forget_hosts
from launch.run_dir import RunDir, describe
from report.atomic_file import write_atomically
from report.json_file import parse_json, read_json

_MAX_BYTES = 1 << 20
_FILES_SECONDS, _FILES_POLL_SECONDS = 180.0, 1.0


@dataclasses.dataclass(frozen=True)
class Share:
    """What a host was given."""

    stored: dict[str, Any]  # as config.json, with the record of the engine in it
    key: str  # PEM
    index: int | None  # of the actor host whose bundle this is


def config_text(config: Config, record: EngineRecord) -> str:
    """The file that --config of a host takes.

    It says nothing of this machine: hosts that are started from one image have its versions.
    """
    given = {"config": config_json.to_json(config), "engine": dataclasses.asdict(record)}
    return json.dumps(given, indent=2) + "\n"


def write_bundles(run_dir: RunDir, config: Config, record: EngineRecord) -> None:
    """Writes a file for each actor host, for its owner's eyes: its key is in it."""
    # With the versions of this environment, which a host must have too.
    stored = {**describe(config), "engine": dataclasses.asdict(record)}
    folder = run_dir.bundle(0).parent
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()  # their keys are of before
    for index in range(record.hosts.actor_hosts):
        key = (run_dir.keys / keys.actor_key(index)).read_text()
        bundle = {**stored, "key": key, "index": index}
        write_atomically(run_dir.bundle(index), json.dumps(bundle, indent=2) + "\n", mode=0o600)


def read_bundle(name: str) -> Share:
    """The bundle of that name, or from standard input."""
    try:
        if name == "-":
            # As it was written: the lines of a key must stay lines.
            text = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            text = pathlib.Path(name).read_bytes()[: _MAX_BYTES + 1]
        if len(text) > _MAX_BYTES:
            raise ValueError("is larger than any bundle")
        key = json.loads(text)["key"]
        stored = parse_json(text)
        index = stored["index"]
        if not isinstance(key, str) or not isinstance(index, int):
            raise ValueError("has a key or an index that is none")
    except OSError as error:
        raise InputError(f"bundle '{name}' cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"bundle '{name}' is none that vantage train wrote: {error}") from None
    return Share(stored, key, index)


def read_files(config: pathlib.Path, key: pathlib.Path) -> Share:
    """What a config and a key say that lie in a file each, as a Secret or a ConfigMap has them."""
    try:
        return Share(read_json(config), key.read_text(), None)
    except OSError as error:
        raise InputError(f"'{error.filename}' cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"'{config}' is no config of a run: {error}") from None


def wait_for_files(config: pathlib.Path, key: pathlib.Path, index: int) -> Share:
    """The same of an actor host that a cluster started.

    Files that a cluster hands out may be older than the host, where the run has just been given
    more of them: they are waited for.
    """
    deadline = time.monotonic() + _FILES_SECONDS
    while True:
        try:
            share = read_files(config, key)
            if share.stored["engine"]["hosts"]["actor_hosts"] > index:
                return share
            problem = InputError(f"index={index} is none of the run's, says '{config}'")
        except InputError as error:
            problem = error
        except (KeyError, TypeError):
            return share  # it says nothing of hosts, which is found out in its turn
        if time.monotonic() > deadline:
            raise problem
        time.sleep(_FILES_POLL_SECONDS)


def unpack(share: Share, run_dir: RunDir, key_name: str) -> None:
    """Makes a run directory of what was given, or brings one up to date with it."""
    try:
        config = config_json.from_json(share.stored["config"])
        record = share.stored["engine"]
        run_id = record["run_id"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"what this host was given is no run's config: {error}") from None
    try:
        if run_dir.config_file.exists():
            check_same_run(run_dir.load_config().with_schedule(), config.with_schedule())
        former = load_engine(run_dir)
        if former is None or former.run_id != run_id:
            # It was started anew: that it was to stop, and what hosts said, is of before.
            run_dir.stop_file.unlink(missing_ok=True)
            forget_hosts(run_dir)
        run_dir.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        run_dir.keys.mkdir(mode=0o700, exist_ok=True)
        given = {name: value for name, value in share.stored.items() if name in _OF_A_RUN}
        stored = {**describe(config), **given}
        write_atomically(run_dir.config_file, json.dumps(stored, indent=2) + "\n")
        write_atomically(run_dir.engine_file, json.dumps(record, indent=2) + "\n")
        write_atomically(run_dir.keys / key_name, share.key, mode=0o600)
    except OSError as error:
        raise InputError(f"cannot write '{run_dir.root}': {error.strerror}") from None


_OF_A_RUN = ("config", "versions", "hardware", "commit")


def gate_address(config: Config, record: EngineRecord) -> str:
    """host:port of the gate, known before there is one; refused where it is not."""
    name, port = record.hosts.learner_address, config.replay.port
    if name is None or not port:
        raise InputError(
            "actor hosts without a shared file system must know the gate beforehand: start the "
            "run with --learner-address and --port"
        )
    return f"{name}:{port}"
