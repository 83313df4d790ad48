"""`vantage fetch RUN DIR`: copies a run out of its cluster, for report, watch and eval."""

import os
import pathlib
import shutil
import tarfile
import tempfile
from typing import IO

from launch.engines.kubernetes import names
from launch.engines.kubernetes.inside import output_of, pod_with_volume
from launch.engines.record import load_engine
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir
from launch.terminal import say
from report.counted import counted

# Replay is left where it is: it is large, and a run goes on without it.
_FETCHED = ("config.json", "metrics.jsonl", "checkpoints", "best", "logs")
_EVENTS = "events.out."
# Files that a run writes meanwhile may change or go: what is read of them is whole lines or whole
# checkpoints all the same, and tar ends with 1.
_SCRIPT = (
    f'cd "$0" && tar --create --ignore-failed-read $(ls -d {" ".join(_FETCHED)} {_EVENTS}* '
    "2>/dev/null); test $? -le 1"
)


def fetch(run: pathlib.Path, folder: pathlib.Path) -> ExitCode:
    """Copies config, metrics, events, logs and checkpoints into `folder`."""
    run_dir = RunDir(run)
    run_dir.check_own()
    run_dir.load_config()
    record = load_engine(run_dir)
    if record is None or record.engine != "kubernetes":
        raise InputError(f"'{run}' is not in a Kubernetes cluster; all of it is there already")
    _check_target(run_dir, RunDir(folder))
    with pod_with_volume(record) as pod:
        command = ["sh", "-c", _SCRIPT, names.RUN_DIR]
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as new:
                with output_of(record, pod, command) as stream:
                    count = unpack(stream, pathlib.Path(new))
                _put(pathlib.Path(new), folder)
        except OSError as error:
            raise InputError(f"cannot write '{folder}': {error.strerror}") from None
    say(f"{folder}: {counted(count, 'file')} of {run}")
    return ExitCode.DONE


def _check_target(run_dir: RunDir, target: RunDir) -> None:
    """Refuses a folder with anything in it but an earlier copy."""
    if not target.root.exists() or not any(target.root.iterdir()):
        return
    target.check_own()
    if target.engine_file.exists():
        raise InputError(f"'{target.root}' is no copy of a run; choose a new folder")
    # A run that was scaled or lengthened is still the same.
    if target.load_config().seed != run_dir.load_config().seed:
        raise InputError(f"'{target.root}' holds another run; choose a new folder")


def unpack(stream: IO[bytes], folder: pathlib.Path) -> int:
    """Writes what a tar stream holds of a run, and nothing else; returns the number of files."""
    count = 0
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if _is_wanted(member) else None
                if content is None:
                    continue
                path = folder / member.name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                with open(path, "xb", opener=_private) as file:
                    shutil.copyfileobj(content, file)
                count += 1
    except tarfile.TarError as error:
        raise InputError(f"the copy of the run was cut short: {error}") from None
    return count


def _is_wanted(member: tarfile.TarInfo) -> bool:
    """Whether it is a plain file where a run has one: an archive may name any path."""
    first, *rest = pathlib.PurePosixPath(member.name).parts or ("",)
    known = first in _FETCHED or (first.startswith(_EVENTS) and not rest)
    return member.isfile() and known and len(rest) < 2 and ".." not in rest


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _put(new: pathlib.Path, folder: pathlib.Path) -> None:
    """Replaces what an earlier copy left."""
    for path in new.iterdir():
        target = folder / path.name
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(path, target)
