"""`python -m tabular`: the study where `vantage` cannot be installed, as on a current Python."""

import sys

import tyro

from tabular.progress import progress_bar
from tabular.setting import BadSettingError, TabularFlags
from tabular.study import run_study


def main() -> int:
    """Entry point."""
    config = (tyro.conf.OmitArgPrefixes,)
    flags = tyro.cli(TabularFlags, prog="tabular", config=config)
    try:
        with progress_bar() as report:
            run_study(flags.setting, flags.out, report)
    except BadSettingError as error:
        print(f"tabular: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
