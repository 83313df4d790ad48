"""Entry point of the `vantage` command.

Imports the standard library only: where packages are missing, `vantage doctor` must still be able
to say so, and every other command must do better than a traceback.
"""

import sys
from collections.abc import Sequence

from launch.errors import ExitCode
from launch.version import VERSION

_OURS = {"actors", "benchmarks", "launch", "learner", "report", "reverb_server", "tabular"}


def main() -> None:
    """Runs the command of this process's arguments, and ends the process."""
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Runs one command; returns its exit code."""
    if args and args[0] == "--version":
        print(f"vantage {VERSION}")
        return ExitCode.DONE
    try:
        from launch.cli.main import run as run_command

        return run_command(args)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in _OURS:
            raise
        if args and args[0] == "doctor":
            from launch.commands.doctor.command import run_doctor

            return run_doctor()
        print(f"vantage: error: {error}; `vantage doctor` lists what is missing", file=sys.stderr)
        return ExitCode.FAILED
