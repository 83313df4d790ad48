"""The command line: `vantage COMMAND ...`. Every command has its flags in `launch.cli.flags`."""

import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tyro

from launch import config as config_lib
from launch.cli.flags import (
    DEFAULT_PRESET,
    CompareFlags,
    DoctorFlags,
    EvalFlags,
    ProfileFlags,
    ReportFlags,
    ScaleFlags,
    StatusFlags,
    StopFlags,
    SuiteFlags,
    TabularFlags,
    TrainFlags,
    WatchFlags,
)
from launch.config import Config
from launch.engines import isolate
from launch.engines.host import HostRequest, run_host
from launch.engines.local import TrainRequest, config_to_resume, train
from launch.engines.record import EngineName, HostsOptions, load_engine
from launch.engines.slurm.options import SlurmOptions
from launch.errors import ExitCode, InputError
from launch.profile.request import ProfileRequest
from launch.run_dir import RunDir
from launch.suite.plan import SuiteRequest
from tabular.setting import BadSettingError, Setting

_DESCRIPTION = "Trains Atari agents with VA-learning and its relatives, on one machine or many."


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
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _train(args: Sequence[str]) -> ExitCode:
    args = _attach("--sbatch-extra", args)
    flags = _parse(TrainFlags, args, "train", default=_train_defaults(args))
    _check_engine_flags(flags.request.engine, args)
    if flags.request.engine == "local":
        if flags.request.isolate and not isolate.is_isolated():
            isolate.restart_isolated(["train", *args])
        return train(flags.config, flags.request)
    from launch.engines.hosts import train_on_hosts

    return train_on_hosts(flags.config, flags.request, flags.hosts, flags.slurm)


def _train_defaults(args: Sequence[str]) -> TrainFlags:
    """Defaults of the other flags depend on --preset and --resume, so these are read first."""
    early = _Early.read(args)
    config = config_to_resume(early.run_dir) if early.resume else early.preset_config
    former = load_engine(RunDir(early.run_dir)) if early.resume and early.run_dir else None
    if former is None:
        return TrainFlags(TrainRequest(), config, HostsOptions(), SlurmOptions())
    return TrainFlags(TrainRequest(engine=former.engine), config, former.hosts, former.slurm)


@dataclasses.dataclass(frozen=True)
class _Early:
    """The flags that decide what the others default to."""

    preset_config: Config
    resume: bool
    run_dir: pathlib.Path | None

    @classmethod
    def read(cls, args: Sequence[str]) -> "_Early":
        run_dir = _value_of("--run-dir", args)
        preset = _value_of("--preset", args) or DEFAULT_PRESET
        return cls(
            # The parser will refuse a name that is unknown.
            preset_config=config_lib.PRESETS.get(preset, config_lib.PRESETS[DEFAULT_PRESET]),
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


def _check_engine_flags(engine: EngineName, args: Sequence[str]) -> None:
    """Refuses flags that the engine would ignore."""
    if engine != "local" and _value_of("--actors", args) is not None:
        raise InputError(
            f"--actors is for one machine; with --engine {engine} give --actor-hosts and "
            "--actors-per-host"
        )
    for options, engines in ((HostsOptions, ("slurm", "hosts")), (SlurmOptions, ("slurm",))):
        for field in dataclasses.fields(options):
            flag = f"--{field.name.replace('_', '-')}"
            if engine not in engines and _value_of(flag, args) is not None:
                raise InputError(f"{flag} needs --engine {' or '.join(engines)}, not {engine}")


def _attach(flag: str, args: Sequence[str]) -> list[str]:
    """Writes `flag value` as `flag=value`: the parser takes a value with dashes only so."""
    attached = list(args)
    for position in reversed(range(len(attached) - 1)):
        if attached[position].replace("_", "-") == flag:
            attached[position : position + 2] = [f"{flag}={attached[position + 1]}"]
    return attached


def _tabular(args: Sequence[str]) -> ExitCode:
    from tabular.progress import progress_bar
    from tabular.study import PAGE, run_study

    flags = _parse(TabularFlags, args, "tabular", default=TabularFlags(Setting()))
    try:
        with progress_bar() as report:
            run_study(flags.setting, flags.out, report)
    except BadSettingError as error:
        raise InputError(str(error)) from error
    print(f"Read {flags.out / PAGE}")
    return ExitCode.DONE


def _profile(args: Sequence[str]) -> ExitCode:
    from launch.profile.command import profile

    default = ProfileFlags(request=ProfileRequest(), config=_Early.read(args).preset_config)
    flags = _parse(ProfileFlags, args, "profile", default=default)
    return profile(flags.config, flags.request)


def _status(args: Sequence[str]) -> ExitCode:
    from launch.commands.status import status

    flags = _parse(StatusFlags, args, "status")
    return status(RunDir(flags.run), as_json=flags.json)


def _stop(args: Sequence[str]) -> ExitCode:
    from launch.commands.status import stop

    flags = _parse(StopFlags, args, "stop")
    return stop(RunDir(flags.run), timeout_seconds=flags.timeout)


def _scale(args: Sequence[str]) -> ExitCode:
    from launch.engines.slurm.control import scale

    flags = _parse(ScaleFlags, args, "scale")
    return scale(RunDir(flags.run.absolute()), actor_hosts=flags.actor_hosts)


def _host(args: Sequence[str]) -> ExitCode:
    return run_host(_parse(HostRequest, args, "host"))


def _doctor(args: Sequence[str]) -> int:
    from launch.commands.doctor import run_doctor

    _parse(DoctorFlags, args, "doctor")
    return run_doctor()


def _suite(args: Sequence[str]) -> ExitCode:
    from launch.suite.run import suite

    # What follows a bare -- is for every `vantage train` of the suite.
    end = args.index("--") if "--" in args else len(args)
    own = _attach("--sbatch-extra", args[:end])
    flags = _parse(SuiteFlags, own, "suite", default=SuiteFlags(SuiteRequest(), SlurmOptions()))
    _check_engine_flags(flags.request.engine, own)
    for flag in ("--actor-partition", "--actor-mem"):
        if _value_of(flag, own) is not None:
            raise InputError(f"{flag}: a run of a suite has one host, which --learner-* describe")
    return suite(flags.request, flags.slurm, args[end + 1 :], _train_config)


def _train_config(args: Sequence[str]) -> Config:
    return _parse(TrainFlags, args, "train", default=_train_defaults(args)).config


def _report(args: Sequence[str]) -> ExitCode:
    from launch.commands.report import report

    flags = _parse(ReportFlags, args, "report")
    return report(flags.folder, flags.out, resamples=flags.resamples)


def _compare(args: Sequence[str]) -> ExitCode:
    from launch.commands.report import compare

    flags = _parse(CompareFlags, args, "compare")
    return compare(flags.runs, flags.out)


def _eval(args: Sequence[str]) -> ExitCode:
    from launch.commands.evaluate import evaluate

    flags = _parse(EvalFlags, args, "eval")
    return evaluate(
        RunDir(flags.run),
        episodes=flags.episodes,
        epsilon=flags.epsilon,
        seed=flags.seed,
        as_json=flags.json,
    )


def _watch(args: Sequence[str]) -> ExitCode:
    from launch.commands.watch.command import watch

    flags = _parse(WatchFlags, args, "watch")
    return watch(
        RunDir(flags.run),
        out=flags.out,
        overlay=flags.overlay,
        epsilon=flags.epsilon,
        seed=flags.seed,
        max_seconds=flags.max_seconds,
    )


def _parse(flags: type[Any], args: Sequence[str], command: str, default: Any = None) -> Any:
    return tyro.cli(
        flags,
        args=list(args),
        prog=f"vantage {command}",
        default=default,
        # Every switch has its `--no-` form too: a preset or a resumed run may have it on already.
        config=(tyro.conf.OmitArgPrefixes,),
    )


class _Command(NamedTuple):
    """What a command runs, and the flags it takes."""

    run: Callable[[Sequence[str]], int]
    flags: type[Any]


_COMMANDS = {
    "train": _Command(_train, TrainFlags),
    "tabular": _Command(_tabular, TabularFlags),
    "profile": _Command(_profile, ProfileFlags),
    "status": _Command(_status, StatusFlags),
    "stop": _Command(_stop, StopFlags),
    "scale": _Command(_scale, ScaleFlags),
    "host": _Command(_host, HostRequest),
    "doctor": _Command(_doctor, DoctorFlags),
    "suite": _Command(_suite, SuiteFlags),
    "report": _Command(_report, ReportFlags),
    "compare": _Command(_compare, CompareFlags),
    "eval": _Command(_eval, EvalFlags),
    "watch": _Command(_watch, WatchFlags),
}


def _usage() -> str:
    lines = [f"usage: vantage {{{','.join(_COMMANDS)}}} ...", "", _DESCRIPTION, ""]
    for name, command in _COMMANDS.items():
        lines.append(f"  {name:8} {(command.flags.__doc__ or '').splitlines()[0]}")
    return "\n".join([*lines, "", "vantage COMMAND --help lists its flags."])
