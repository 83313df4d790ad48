"""Entry point of the `vantage` command.

Imports the standard library only: where packages are missing, `vantage doctor` must still be able
to say so, and every other command must do better than a traceback.
"""

import sys
from collections.abc import Sequence

from launch.errors import ExitCode
from launch.terminal import complain, lost_output, outlive_readers
from launch.versions import VERSION

_OURS = {
    "actors",
    "benchmarks",
    "launch",
    "learner",
    "report",
    "reverb_server",
    "tabular",
    "vantage",
}


def main() -> None:
    """Runs the command of this process's arguments, and ends the process."""
    outlive_readers()
    code = run(sys.argv[1:], may_restart=True)
    lost = lost_output()
    if lost is not None:
        complain(f"what was to be said is lost: {lost}")
    sys.exit(ExitCode.FAILED if lost is not None and code == ExitCode.DONE else code)


def run(args: Sequence[str], *, may_restart: bool = False) -> int:
    """Runs one command; returns its exit code."""
    if args and args[0] == "--version":
        print(f"vantage {VERSION}")
        return ExitCode.DONE
    try:
        from launch.cli.main import run as run_command

        return run_command(args, may_restart=may_restart)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in _OURS:
            raise
        if args and args[0] == "doctor":
            from launch.commands.doctor.command import run_doctor

            return run_doctor()
        complain(f"{error}; `vantage doctor` lists what is missing")
        return ExitCode.FAILED
