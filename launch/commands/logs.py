"""`vantage logs RUN [NODE]`: what nodes wrote last, wherever they run."""

import contextlib
import pathlib
import re
import subprocess
import time

from launch.engines.kubernetes import cluster, names
from launch.engines.options import LEARNER_GROUPS
from launch.engines.record import EngineRecord, load_engine
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir
from launch.supervise.log_echo import LogEcho
from launch.supervise.log_file import last_lines
from launch.terminal import warn
from report.plain_text import plain

_POLL_SECONDS = 0.5
_NODE = re.compile(r"([a-z]+)-(\d{1,7})")
_MAX_LINES = 100_000


def logs(run: pathlib.Path, node: str | None, lines: int, follow: bool) -> ExitCode:
    """Prints the end of the logs; with `follow` also what comes, until Ctrl-C."""
    run_dir = RunDir(run)
    run_dir.load_config()
    if not 0 <= lines <= _MAX_LINES:
        raise InputError(f"lines={lines} must be between 0 and {_MAX_LINES:,}")
    if node is not None and _NODE.fullmatch(node) is None:
        raise InputError(f"'{node}' is no node; they are called learner-0 or actor-3, say")
    record = load_engine(run_dir)
    with contextlib.suppress(KeyboardInterrupt):
        if record is not None and record.engine == "kubernetes":
            run_dir.check_own()  # it says what kubectl asks, with the rights of whoever called
            return _pod_logs(record, node, lines, follow)
        _file_logs(run_dir, node, lines, follow)
    return ExitCode.DONE


def _file_logs(run_dir: RunDir, node: str | None, lines: int, follow: bool) -> None:
    folder = run_dir.log_file("learner", 0).parent
    found = {}
    for path in sorted(folder.glob("*.log")):
        if path.is_file():
            found[plain(path.stem)] = path
        else:
            warn(f"{path}: not a plain file; passed over")
    if node is not None and node not in found:
        raise InputError(f"no log of '{node}' in '{folder}'; there is {', '.join(found) or 'none'}")
    chosen = found if node is None else {node: found[node]}
    echo = LogEcho(chosen, cut=False)
    for name, path in chosen.items():
        for line in last_lines(path, lines) if lines else []:
            print(f"{name} | {plain(line)}")
    while follow:
        echo.poll()
        time.sleep(_POLL_SECONDS)


def _pod_logs(record: EngineRecord, node: str | None, lines: int, follow: bool) -> ExitCode:
    """Pods print every line with the name of its node: those of the one asked for are kept."""
    command = [*cluster.kubectl(record.kubernetes), "logs", f"--container={names.CONTAINER}"]
    command += [f"--selector={_selector(record, node)}", f"--tail={lines}"]
    command += ["--ignore-errors", "--max-log-requests=1000", *(["--follow"] if follow else [])]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise InputError(cluster.NO_KUBECTL) from None
    with process:
        assert process.stdout is not None
        try:
            for data in process.stdout:
                line = plain(data.decode(errors="replace").rstrip("\n"))
                if node is None or line.startswith(f"{node} | "):
                    print(line, flush=True)
        finally:
            process.terminate()
    if process.returncode > 0:  # kubectl has said why
        return ExitCode.BAD_INPUT
    return ExitCode.DONE


def _selector(record: EngineRecord, node: str | None) -> str:
    """The pod or the pods to ask."""
    if node is None:
        return names.selector(record)
    role, _, index = node.partition("-")
    if role in (*LEARNER_GROUPS, "gate"):
        return names.selector(record, "learner")
    host = int(index) if role == "tunnel" else int(index) // record.hosts.actors_per_host
    return f"{names.selector(record, 'actor')},{names.INDEX}={host}"
