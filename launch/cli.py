"""The command line: `vantage COMMAND ...`. Flags are derived from the config's dataclasses."""

import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import tyro

from launch import config as config_lib
from launch.config import Config, PresetName
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir
from launch.train import TrainRequest, config_to_resume, train
from tabular.setting import BadSettingError, Setting

_DEFAULT_PRESET: PresetName = "cpu"
_DESCRIPTION = "Trains Atari agents with VA-learning and its relatives, on one machine or many."


@dataclasses.dataclass(frozen=True)
class _TrainFlags:
    """Trains an agent. Flags beside --preset override what the preset says."""

    request: TrainRequest
    config: Config
    preset: PresetName = _DEFAULT_PRESET
    """Where defaults come from: `cpu` learns Pong on two cores, `paper` is the paper's setting."""


@dataclasses.dataclass(frozen=True)
class _TabularFlags:
    """Reproduces the paper's tabular study: five figures, their numbers, and a page."""

    setting: Setting
    out: pathlib.Path = pathlib.Path("out/tabular")
    """Folder to write to."""


@dataclasses.dataclass(frozen=True)
class _StatusFlags:
    """Shows the nodes of a run, its rates and its last evaluation."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """The run directory."""
    json: bool = False
    """Print one JSON object."""


@dataclasses.dataclass(frozen=True)
class _StopFlags:
    """Drains, checkpoints and stops a run."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """The run directory."""
    timeout: float = 300.0
    """Seconds to wait for it."""


@dataclasses.dataclass(frozen=True)
class _DoctorFlags:
    """Checks this machine: Python, packages, devices, memory, ROMs."""


def main() -> None:
    """Entry point of the `vantage` command."""
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Runs one command; returns its exit code."""
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
        return ExitCode.DONE if args else ExitCode.BAD_INPUT
    command, *rest = args
    try:
        if command not in _COMMANDS:
            raise InputError(f"unknown command '{command}'; choose from {', '.join(_COMMANDS)}")
        return int(_COMMANDS[command].run(rest))
    except InputError as error:
        print(f"vantage: error: {error}", file=sys.stderr)
        return ExitCode.BAD_INPUT


def _train(args: Sequence[str]) -> ExitCode:
    flags = _parse(_TrainFlags, args, "train", default=_train_defaults(args))
    return train(flags.config, flags.request)


def _train_defaults(args: Sequence[str]) -> _TrainFlags:
    """Defaults of the other flags depend on --preset and --resume, so these are read first."""
    early = _Early.read(args)
    if early.resume:
        config = config_to_resume(early.run_dir)
    else:
        config = config_lib.PRESETS.get(early.preset, config_lib.PRESETS[_DEFAULT_PRESET])
    return _TrainFlags(request=TrainRequest(), config=config)


@dataclasses.dataclass(frozen=True)
class _Early:
    """The flags that decide what the others default to."""

    preset: str
    resume: bool
    run_dir: pathlib.Path | None

    @classmethod
    def read(cls, args: Sequence[str]) -> "_Early":
        run_dir = _value_of("--run-dir", args)
        return cls(
            preset=_value_of("--preset", args) or _DEFAULT_PRESET,
            resume="--resume" in args,
            run_dir=None if run_dir is None else pathlib.Path(run_dir),
        )


def _value_of(flag: str, args: Sequence[str]) -> str | None:
    """The last value of a flag, written `--flag value` or `--flag=value`."""
    value = None
    for arg, following in itertools.zip_longest(args, args[1:]):
        # Both spellings work on the command line, so both must here.
        name, equals, attached = arg.partition("=")
        if name.replace("_", "-") == flag:
            value = attached if equals else following
    return value


def _tabular(args: Sequence[str]) -> ExitCode:
    from tabular.progress import progress_bar
    from tabular.study import PAGE, run_study

    flags = _parse(_TabularFlags, args, "tabular", default=_TabularFlags(Setting()))
    try:
        with progress_bar() as report:
            run_study(flags.setting, flags.out, report)
    except BadSettingError as error:
        raise InputError(str(error)) from error
    print(f"Read {flags.out / PAGE}")
    return ExitCode.DONE


def _status(args: Sequence[str]) -> ExitCode:
    from launch.status import status

    flags = _parse(_StatusFlags, args, "status")
    return status(RunDir(flags.run), as_json=flags.json)


def _stop(args: Sequence[str]) -> ExitCode:
    from launch.status import stop

    flags = _parse(_StopFlags, args, "stop")
    return stop(RunDir(flags.run), timeout_seconds=flags.timeout)


def _doctor(args: Sequence[str]) -> int:
    from launch.doctor import run_doctor

    _parse(_DoctorFlags, args, "doctor")
    return run_doctor()


def _parse(flags: type[Any], args: Sequence[str], command: str, default: Any = None) -> Any:
    return tyro.cli(
        flags,
        args=list(args),
        prog=f"vantage {command}",
        default=default,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff),
    )


class _Command(NamedTuple):
    """What a command runs, and the flags it takes."""

    run: Callable[[Sequence[str]], int]
    flags: type[Any]


_COMMANDS = {
    "train": _Command(_train, _TrainFlags),
    "tabular": _Command(_tabular, _TabularFlags),
    "status": _Command(_status, _StatusFlags),
    "stop": _Command(_stop, _StopFlags),
    "doctor": _Command(_doctor, _DoctorFlags),
}


def _usage() -> str:
    lines = [f"usage: vantage {{{','.join(_COMMANDS)}}} ...", "", _DESCRIPTION, ""]
    for name, command in _COMMANDS.items():
        lines.append(f"  {name:8} {(command.flags.__doc__ or '').splitlines()[0]}")
    return "\n".join([*lines, "", "vantage COMMAND --help lists its flags."])
