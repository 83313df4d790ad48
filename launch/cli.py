"""The command line: `vantage COMMAND ...`. Flags are derived from the config's dataclasses."""

import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import tyro

from benchmarks.profile_request import ProfileRequest
from launch import config as config_lib
from launch import isolate
from launch.config import Config, PresetName
from launch.engine import EngineName, HostsOptions, load_engine
from launch.errors import ExitCode, InputError
from launch.host import HostRequest, run_host
from launch.run_dir import RunDir
from launch.slurm.options import SlurmOptions
from launch.suite_plan import SuiteRequest
from launch.train import TrainRequest, config_to_resume, train
from tabular.setting import BadSettingError, Setting

_DEFAULT_PRESET: PresetName = "cpu"
_DESCRIPTION = "Trains Atari agents with VA-learning and its relatives, on one machine or many."


@dataclasses.dataclass(frozen=True)
class _TrainFlags:
    """Trains an agent. Flags beside --preset override what the preset says."""

    request: TrainRequest
    config: Config
    hosts: HostsOptions
    slurm: SlurmOptions
    preset: PresetName = _DEFAULT_PRESET
    """Where defaults come from: `cpu` learns Pong on two cores, `paper` is the paper's setting."""


@dataclasses.dataclass(frozen=True)
class _TabularFlags:
    """Reproduces the paper's tabular study: five figures, their numbers, and a page."""

    setting: Setting
    out: pathlib.Path = pathlib.Path("out/tabular")
    """Folder to write to."""


@dataclasses.dataclass(frozen=True)
class _ProfileFlags:
    """Measures every stage and the whole program, and names the bottleneck."""

    request: ProfileRequest
    config: Config
    preset: PresetName = _DEFAULT_PRESET
    """Where defaults come from."""


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
class _ScaleFlags:
    """Adds or drops actor hosts of a run on Slurm while it trains."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """The run directory."""
    actor_hosts: int
    """How many there are to be; hosts that failed are replaced."""


@dataclasses.dataclass(frozen=True)
class _DoctorFlags:
    """Checks this machine: Python, packages, devices, memory, ROMs."""


@dataclasses.dataclass(frozen=True)
class _SuiteFlags:
    """Trains a grid of games, algorithms and seeds; what follows a bare -- goes to every train."""

    request: SuiteRequest
    slurm: SlurmOptions


@dataclasses.dataclass(frozen=True)
class _ReportFlags:
    """Writes a page on all runs of a folder: scores, intervals, curves, beside the paper's."""

    folder: Annotated[pathlib.Path, tyro.conf.Positional]
    """A suite, a folder of runs, or one run."""
    out: pathlib.Path = pathlib.Path("report")
    """Folder to write to."""
    resamples: int = 2000
    """Bootstrap resamples behind each interval."""


@dataclasses.dataclass(frozen=True)
class _CompareFlags:
    """Draws the learning curves of runs, in the terminal and as PNG."""

    runs: Annotated[tuple[pathlib.Path, ...], tyro.conf.Positional]
    """Run directories."""
    out: pathlib.Path = pathlib.Path("compare.png")
    """Where the PNG goes."""


@dataclasses.dataclass(frozen=True)
class _EvalFlags:
    """Scores the newest checkpoint of a run over whole episodes."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """The run directory."""
    episodes: int = 100
    """Episodes to play."""
    epsilon: float | None = None
    """Exploration rate; by default that of the run's own evaluations."""
    seed: int = 0
    """Seed of the games."""
    json: bool = False
    """Print one JSON object."""


@dataclasses.dataclass(frozen=True)
class _WatchFlags:
    """Plays the newest checkpoint of a run, to a video or a window."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """The run directory."""
    out: pathlib.Path | None = None
    """Video to write, .mp4 or .gif; by default a window opens."""
    overlay: bool = False
    """Show V(x), A(x, .), mu(.|x) and the chosen action beside the screen."""
    epsilon: float | None = None
    """Exploration rate; by default that of the run's own evaluations."""
    seed: int = 0
    """Seed of the game."""
    max_seconds: float = 120.0
    """Seconds of play after which to stop, if the episode has not ended."""


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
    flags = _parse(_TrainFlags, args, "train", default=_train_defaults(args))
    _check_engine_flags(flags.request.engine, args)
    if flags.request.engine == "local":
        if flags.request.isolate and not isolate.is_isolated():
            isolate.restart_isolated(["train", *args])
        return train(flags.config, flags.request)
    from launch.many_hosts import train_on_hosts

    return train_on_hosts(flags.config, flags.request, flags.hosts, flags.slurm)


def _train_defaults(args: Sequence[str]) -> _TrainFlags:
    """Defaults of the other flags depend on --preset and --resume, so these are read first."""
    early = _Early.read(args)
    config = config_to_resume(early.run_dir) if early.resume else early.preset_config
    former = load_engine(RunDir(early.run_dir)) if early.resume and early.run_dir else None
    if former is None:
        return _TrainFlags(TrainRequest(), config, HostsOptions(), SlurmOptions())
    return _TrainFlags(TrainRequest(engine=former.engine), config, former.hosts, former.slurm)


@dataclasses.dataclass(frozen=True)
class _Early:
    """The flags that decide what the others default to."""

    preset_config: Config
    resume: bool
    run_dir: pathlib.Path | None

    @classmethod
    def read(cls, args: Sequence[str]) -> "_Early":
        run_dir = _value_of("--run-dir", args)
        preset = _value_of("--preset", args) or _DEFAULT_PRESET
        return cls(
            # The parser will refuse a name that is unknown.
            preset_config=config_lib.PRESETS.get(preset, config_lib.PRESETS[_DEFAULT_PRESET]),
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

    flags = _parse(_TabularFlags, args, "tabular", default=_TabularFlags(Setting()))
    try:
        with progress_bar() as report:
            run_study(flags.setting, flags.out, report)
    except BadSettingError as error:
        raise InputError(str(error)) from error
    print(f"Read {flags.out / PAGE}")
    return ExitCode.DONE


def _profile(args: Sequence[str]) -> ExitCode:
    from benchmarks.profile import profile

    default = _ProfileFlags(request=ProfileRequest(), config=_Early.read(args).preset_config)
    flags = _parse(_ProfileFlags, args, "profile", default=default)
    return profile(flags.config, flags.request)


def _status(args: Sequence[str]) -> ExitCode:
    from launch.status import status

    flags = _parse(_StatusFlags, args, "status")
    return status(RunDir(flags.run), as_json=flags.json)


def _stop(args: Sequence[str]) -> ExitCode:
    from launch.status import stop

    flags = _parse(_StopFlags, args, "stop")
    return stop(RunDir(flags.run), timeout_seconds=flags.timeout)


def _scale(args: Sequence[str]) -> ExitCode:
    from launch.slurm.control import scale

    flags = _parse(_ScaleFlags, args, "scale")
    return scale(RunDir(flags.run.absolute()), actor_hosts=flags.actor_hosts)


def _host(args: Sequence[str]) -> ExitCode:
    return run_host(_parse(HostRequest, args, "host"))


def _doctor(args: Sequence[str]) -> int:
    from launch.doctor import run_doctor

    _parse(_DoctorFlags, args, "doctor")
    return run_doctor()


def _suite(args: Sequence[str]) -> ExitCode:
    from launch.suite import suite

    # What follows a bare -- is for every `vantage train` of the suite.
    end = args.index("--") if "--" in args else len(args)
    own = _attach("--sbatch-extra", args[:end])
    flags = _parse(_SuiteFlags, own, "suite", default=_SuiteFlags(SuiteRequest(), SlurmOptions()))
    _check_engine_flags(flags.request.engine, own)
    for flag in ("--actor-partition", "--actor-mem"):
        if _value_of(flag, own) is not None:
            raise InputError(f"{flag}: a run of a suite has one host, which --learner-* describe")
    return suite(flags.request, flags.slurm, args[end + 1 :], _train_config)


def _train_config(args: Sequence[str]) -> Config:
    return _parse(_TrainFlags, args, "train", default=_train_defaults(args)).config


def _report(args: Sequence[str]) -> ExitCode:
    from launch.report_command import report

    flags = _parse(_ReportFlags, args, "report")
    return report(flags.folder, flags.out, resamples=flags.resamples)


def _compare(args: Sequence[str]) -> ExitCode:
    from launch.report_command import compare

    flags = _parse(_CompareFlags, args, "compare")
    return compare(flags.runs, flags.out)


def _eval(args: Sequence[str]) -> ExitCode:
    from launch.evaluation import evaluate

    flags = _parse(_EvalFlags, args, "eval")
    return evaluate(
        RunDir(flags.run),
        episodes=flags.episodes,
        epsilon=flags.epsilon,
        seed=flags.seed,
        as_json=flags.json,
    )


def _watch(args: Sequence[str]) -> ExitCode:
    from launch.watch import watch

    flags = _parse(_WatchFlags, args, "watch")
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
    "train": _Command(_train, _TrainFlags),
    "tabular": _Command(_tabular, _TabularFlags),
    "profile": _Command(_profile, _ProfileFlags),
    "status": _Command(_status, _StatusFlags),
    "stop": _Command(_stop, _StopFlags),
    "scale": _Command(_scale, _ScaleFlags),
    "host": _Command(_host, HostRequest),
    "doctor": _Command(_doctor, _DoctorFlags),
    "suite": _Command(_suite, _SuiteFlags),
    "report": _Command(_report, _ReportFlags),
    "compare": _Command(_compare, _CompareFlags),
    "eval": _Command(_eval, _EvalFlags),
    "watch": _Command(_watch, _WatchFlags),
}


def _usage() -> str:
    lines = [f"usage: vantage {{{','.join(_COMMANDS)}}} ...", "", _DESCRIPTION, ""]
    for name, command in _COMMANDS.items():
        lines.append(f"  {name:8} {(command.flags.__doc__ or '').splitlines()[0]}")
    return "\n".join([*lines, "", "vantage COMMAND --help lists its flags."])
