"""`python -m tabular`: the study where `vantage` cannot be installed, as on a current Python."""

import dataclasses
import pathlib
import sys

import tyro

from tabular.progress import progress_bar
from tabular.setting import BadSettingError, Setting
from tabular.study import run_study


@dataclasses.dataclass(frozen=True)
class Flags:
    """Reproduces the paper's tabular study: five figures, their numbers, and a page."""

    setting: Setting
    out: pathlib.Path = pathlib.Path("out/tabular")
    """Folder to write to."""


def main() -> int:
    """Entry point."""
    config = (tyro.conf.OmitArgPrefixes,)
    flags = tyro.cli(Flags, prog="tabular", default=Flags(Setting()), config=config)
    try:
        with progress_bar() as report:
            run_study(flags.setting, flags.out, report)
    except BadSettingError as error:
        print(f"tabular: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
