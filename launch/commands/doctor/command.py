"""Collects the checks and prints them."""

import pathlib
import sys
from collections.abc import Sequence

from actors.games import reference_scores
from launch.commands.doctor.check import Check
from launch.commands.doctor.libraries import (
    check_device,
    check_import,
    check_launchpad,
    check_libpython,
    check_roms,
)
from launch.commands.doctor.machine import (
    check_cores,
    check_disk,
    check_memory,
    check_network,
    check_open_files,
)
from launch.commands.doctor.packages import (
    check_packages,
    check_python,
    installed_packages,
    required_packages,
)


def collect_checks() -> list[Check]:
    """Looks at everything, in the order in which one would fix it."""
    return [
        check_python(),
        check_packages(required_packages(), installed_packages()),
        check_libpython(),
        check_launchpad(),
        check_import("reverb", "import reverb"),
        check_device(),
        check_roms(list(reference_scores())),
        check_cores(),
        check_memory(),
        check_disk(pathlib.Path.cwd()),
        check_open_files(),
        check_network(),
    ]


def run_doctor(checks: Sequence[Check] | None = None) -> int:
    """Prints the checks; returns 1 if something needs fixing, else 0."""
    if checks is None:
        print("looking at this machine (imports take a few seconds)", file=sys.stderr)
        checks = collect_checks()
    print("\n".join(_lines(checks)))
    failed = [check.name for check in checks if check.ok is False]
    print(f"needs fixing: {', '.join(failed)}" if failed else "ready to train")
    return 1 if failed else 0


def _lines(checks: Sequence[Check]) -> list[str]:
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        word = {True: "ok", None: "note", False: "FIX"}[check.ok]
        lines.append(f"{word:<4}  {check.name:<{width}}  {check.found}")
        if check.fix:
            lines.append(f"{'':<6}{'':<{width}}  -> {check.fix}")
    return lines
