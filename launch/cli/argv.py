"""The command line before and after the parser: what it cannot express by itself.

Defaults of most flags depend on --preset, --config and --resume, so these are read first. Flags
that the chosen engine would ignore are refused afterwards.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from launch import config as config_lib
from launch.cli.config_file import read_config_file
from launch.cli.flags import DEFAULT_PRESET, TrainFlags
from launch.cli.numbers import REGISTRY
from launch.cli.refusal import refused_in_one_line
from launch.config import Config
from launch.engines.claim import config_to_resume
from launch.engines.options import (
    EngineName,
    HostSizes,
    HostsOptions,
    Isolation,
    KubernetesOptions,
    SlurmOptions,
    TrainRequest,
)
from launch.engines.record import EngineRecord, load_engine
from launch.errors import InputError
from launch.run_dir import RunDir


def parse(flags: type[Any], args: Sequence[str], command: str, default: Any = None) -> Any:
    """The flags of a command; the parser itself ends the process where help is asked for."""
    with refused_in_one_line(flags):
        return tyro.cli(
            flags,
            args=list(args),
            prog=f"vantage {command}",
            default=default,
            # Every switch has its `--no-` form too: a preset or a resumed run may have it on.
            config=(tyro.conf.OmitArgPrefixes,),
            registry=REGISTRY,
        )


def parse_train(args: Sequence[str]) -> TrainFlags:
    """The flags of `vantage train`: a preset's or a resumed run's, with what is given over them."""
    return _parse_train(with_config_file(args, TrainFlags, _parse_train))


def _parse_train(args: Sequence[str]) -> TrainFlags:
    return parse(TrainFlags, args, "train", default=_train_defaults(args))


def with_config_file(
    args: Sequence[str], flags: Any, parse_flags: Callable[[Sequence[str]], Any]
) -> list[str]:
    """The arguments with those that --config stands for, before the others, in its place."""
    given = value_of("--config", args)
    if given is None or "--help" in args:
        return list(args)
    path = pathlib.Path(given)
    rest = [arg for arg in attach_value("--config", args) if not arg.startswith("--config=")]
    found, is_run = read_config_file(path, flags)
    if is_run:
        found = _for_another_run(path, found, args)
    try:
        parse_flags(found)
    except InputError as error:
        raise InputError(f"--config '{path}': {error}") from None
    return [*found, *rest]


def _for_another_run(path: pathlib.Path, found: list[str], args: Sequence[str]) -> list[str]:
    """A run's settings, but for the number of its actors where an engine counts them by hosts."""
    if value_of("--preset", args) is not None:
        raise InputError(f"--preset has no effect: --config '{path}' is a run's, with all settings")
    other_engine = value_of("--engine", args) not in (None, "local")
    return [flag for flag in found if not (other_engine and flag.startswith("--actors="))]


def preset_config(args: Sequence[str]) -> Config:
    """The config of the --preset among the arguments."""
    name = value_of("--preset", args) or DEFAULT_PRESET
    # The parser will refuse a name that is unknown.
    return config_lib.PRESETS.get(name, config_lib.PRESETS[DEFAULT_PRESET])


def _train_defaults(args: Sequence[str]) -> TrainFlags:
    if "--resume" not in args or "--help" in args:
        return _defaults(preset_config(args))
    config = config_to_resume(_run_dir(args))
    former = _former(args)
    if former is None:
        return _defaults(config)
    request = TrainRequest(engine=former.engine, isolate=former.isolation != "no")
    return TrainFlags(request, config, former.hosts, former.slurm, former.kubernetes)


def _defaults(config: Config) -> TrainFlags:
    return TrainFlags(TrainRequest(), config, HostsOptions(), SlurmOptions(), KubernetesOptions())


def _run_dir(args: Sequence[str]) -> pathlib.Path | None:
    value = value_of("--run-dir", args)
    return None if value is None else pathlib.Path(value)


def _former(args: Sequence[str]) -> EngineRecord | None:
    """How the hosts of a run that is resumed were started before."""
    run_dir = _run_dir(args)
    return None if run_dir is None or "--resume" not in args else load_engine(RunDir(run_dir))


def value_of(flag: str, args: Sequence[str]) -> str | None:
    """The last value of a flag, written `--flag value` or `--flag=value`."""
    value = None
    for arg, following in itertools.zip_longest(args, args[1:]):
        # Both spellings work on the command line, so both must here.
        name, equals, attached = arg.partition("=")
        if name.replace("_", "-") == flag:
            value = attached if equals else following
    return value


def attach_value(flag: str, args: Sequence[str]) -> list[str]:
    """Writes `flag value` as `flag=value`, the only way the parser takes a value with dashes."""
    attached = list(args)
    for position in reversed(range(len(attached) - 1)):
        if attached[position].replace("_", "-") == flag:
            attached[position : position + 2] = [f"{flag}={attached[position + 1]}"]
    return attached


def isolation_of(request: TrainRequest, args: Sequence[str]) -> Isolation:
    """What is asked of isolation; a flag that is given is more than the same default.

    Over hosts it is as it was when the run was started, if nothing is said of it.
    """
    if not request.isolate:
        return "no"
    if "--isolate" in args:
        return "yes"
    former = _former(args)
    return "auto" if former is None else former.isolation


def check_engine_flags(engine: EngineName, args: Sequence[str]) -> None:
    """Refuses flags that the engine would ignore."""
    if engine != "local" and value_of("--actors", args) is not None:
        raise InputError(
            f"--actors is for one machine; with --engine {engine} give --actor-hosts and "
            "--actors-per-host"
        )
    for options, engines in (
        (HostsOptions, ("slurm", "hosts", "kubernetes")),
        (SlurmOptions, ("slurm",)),
        (KubernetesOptions, ("kubernetes",)),
    ):
        for field in dataclasses.fields(options):
            also = ("kubernetes",) if field.name in HostSizes._fields else ()
            fitting = (*engines, *also)
            flag = f"--{field.name.replace('_', '-')}"
            if engine not in fitting and value_of(flag, args) is not None:
                named = " or ".join(filter(None, (", ".join(fitting[:-1]), fitting[-1])))
                raise InputError(f"{flag} needs --engine {named}, not {engine}")
