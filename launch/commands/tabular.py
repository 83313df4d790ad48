"""`vantage tabular`: the paper's tabular study, from its setting to its page."""

import pathlib

from launch.errors import ExitCode, InputError
from launch.terminal import say
from tabular.progress import progress_bar
from tabular.setting import BadSettingError, Setting
from tabular.study import PAGE, run_study


def tabular(setting: Setting, out: pathlib.Path) -> ExitCode:
    """Runs the study and says what to read."""
    try:
        with progress_bar() as report:
            run_study(setting, out, report)
    except BadSettingError as error:
        raise InputError(str(error)) from error
    say(f"Read {out / PAGE}")
    return ExitCode.DONE
