"""Checks of one host before it joins a run.

`python -m launch.engines.preflight RUN_DIR ROLE DEVICES KEY_FILE` is a process of its own, because
importing is what may fail or hang. It ends with code 0, with `COME_BACK` if there is no learner's
host to join, or with 1; its last line then says why.
"""

import pathlib
import sys
import time

from launch import config_checks
from launch.errors import ExitCode, InputError
from launch.gate.tunnel import OpenTunnel
from launch.machine.device import DeviceName, find_device
from launch.quick_imports import import_for_good
from launch.run_dir import RunDir
from launch.supervise.status_file import SILENT_SECONDS

_IMPORTS = ("launchpad", "reverb", "jax", "haiku", "ale_py")
_REPLAY_SECONDS = 600.0  # for a learner's host that is up to restore its replay and answer
_LEARNER_SECONDS = 3600.0  # for a learner's host to come up at all
_ASK_SECONDS = 5
_POLL_SECONDS = 1.0


class PreflightError(Exception):
    """Why this host cannot join."""


class NoLearnerError(Exception):
    """There is nobody to join, and this host is no use."""


def check_imports() -> None:
    """The environment must be whole on this host, not only where the run was started."""
    for name in _IMPORTS:
        try:
            import_for_good([name])
        except Exception as error:
            raise PreflightError(
                f"{sys.executable} cannot import {name}: {_first_line(error)}"
            ) from error


def check_device(asked: DeviceName, given: str) -> None:
    """A learner that was given a device must not train on the CPU in silence, unless told to.

    `given` is what the scheduler was asked for: gpu:1, or google.com/tpu=4.
    """
    kinds: tuple[DeviceName, ...] = ("gpu", "tpu")
    meant = next((kind for kind in kinds if kind in given), None) if asked == "auto" else None
    try:
        find_device(meant or asked)
    except InputError as error:
        where = f"this host was given {given}: " if meant else ""
        raise PreflightError(f"{where}{error}") from None


def wait_for_replay(run_dir: RunDir, key_file: pathlib.Path) -> None:
    """Returns when replay answers through its gate.

    Raises when a learner's host is up and replay still does not.
    """
    learner = _LearnerHost(run_dir)
    started = time.monotonic()
    while (problem := _ask_replay(run_dir, key_file)) is not None:
        if learner.seconds_up() > _REPLAY_SECONDS:
            raise PreflightError(f"{problem}; can this host reach that port?")
        if time.monotonic() - started > _LEARNER_SECONDS:
            raise NoLearnerError(f"no learner's host for {_LEARNER_SECONDS:.0f} s ({problem})")
        time.sleep(_POLL_SECONDS)


def _ask_replay(run_dir: RunDir, key_file: pathlib.Path) -> str | None:
    """Why replay does not answer; None if it does."""
    import reverb

    from reverb_server.client import SERVER_AWAY

    address = run_dir.read_address()
    if address is None:
        return f"no address in {run_dir.address_file}"
    with OpenTunnel(key_file, run_dir.address_file, on_over=run_dir.stop_file.touch) as tunnel:
        try:
            reverb.Client(tunnel.address).server_info(timeout=_ASK_SECONDS)
        except SERVER_AWAY as error:
            return f"replay at {address} does not answer: {tunnel.problem or _first_line(error)}"
    return None


class _LearnerHost:
    """How long the supervisor of the learner's host has been seen to write its status."""

    def __init__(self, run_dir: RunDir):
        self._file = run_dir.status_file
        self._written = self._read()
        self._up_since: float | None = None
        self._changed_at = time.monotonic()

    def seconds_up(self) -> float:
        # By its changes, not by the time in it: clocks of hosts differ.
        now, written = time.monotonic(), self._read()
        if written != self._written:
            self._written, self._changed_at = written, now
            self._up_since = now if self._up_since is None else self._up_since
        elif now - self._changed_at > SILENT_SECONDS:
            self._up_since = None
        return 0.0 if self._up_since is None else now - self._up_since

    def _read(self) -> bytes | None:
        try:
            return self._file.read_bytes()
        except FileNotFoundError:
            return None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def main(argv: list[str]) -> ExitCode:
    """Entry point of the process."""
    _, root, role, devices, key_file = argv
    run_dir = RunDir(pathlib.Path(root))
    try:
        run_dir.check_stack()
        check_imports()
        # A module of the user's own must be here too.
        config = run_dir.load_config()
        config_checks.check_names(config)
        if role == "actor":
            wait_for_replay(run_dir, pathlib.Path(key_file))
        else:
            check_device(config.learner.device, devices)
    except NoLearnerError as error:
        print(error, file=sys.stderr)
        return ExitCode.COME_BACK
    except (PreflightError, InputError) as error:
        print(error, file=sys.stderr)
        return ExitCode.FAILED
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv))
