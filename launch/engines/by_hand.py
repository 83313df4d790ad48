"""`--engine hosts`: you start each host, with the commands that are printed here."""

import shlex

from launch.config import Config
from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS
from launch.engines.record import EngineRecord
from launch.engines.share import gate_address, write_bundles
from launch.errors import ExitCode
from launch.invocation import host_command
from launch.monitor.host_rows import forget_hosts
from launch.run_dir import RunDir


def prepare(
    record: EngineRecord, config: Config, former: EngineRecord | None
) -> tuple[EngineRecord, Config]:
    """The run as it is asked for; refuses a gate that actor hosts could not know beforehand."""
    del former
    if _are_apart(record):
        gate_address(config, record)
    return record, config


def start_run(record: EngineRecord, config: Config, run_dir: RunDir) -> ExitCode:
    """Writes what hosts are given, and says what to start where."""
    if _are_apart(record):
        forget_hosts(run_dir)
        write_bundles(run_dir, config, record)
    show(record, config, run_dir)
    return ExitCode.DONE


def show(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    """Prints the commands."""
    del config
    print("# on the learner's host")
    print(host_command(run_dir.root, ["--groups", *LEARNER_GROUPS]))
    for index in range(record.hosts.actor_hosts):
        if _are_apart(record):
            bundle = shlex.quote(str(run_dir.bundle(index)))
            print(f"# actor host {index}, from here; it needs Vantage and no shared file system")
            print(f"ssh ACTOR_HOST_{index} vantage host --bundle - < {bundle}")
        else:
            print(f"# on actor host {index}")
            print(host_command(run_dir.root, ["--groups", *ACTOR_GROUPS, "--index", str(index)]))


def _are_apart(record: EngineRecord) -> bool:
    """Whether actor hosts get a file each, instead of sharing a file system."""
    return record.hosts.learner_address is not None
