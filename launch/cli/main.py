"""The command line: `vantage COMMAND ...`. The flags of a command are in `launch.cli.flags`."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from launch.cli import flags as flags_lib
from launch.cli.argv import (
    attach_value,
    check_engine_flags,
    isolation_of,
    parse,
    parse_train,
    preset_config,
    value_of,
    with_config_file,
)
from launch.engines.isolate import move_to_own_network
from launch.engines.options import HostRequest, SlurmOptions
from launch.errors import ExitCode, InputError
from launch.nearest import did_you_mean
from launch.profile.request import PlanRequest, ProfileRequest
from launch.suite.plan import SuiteRequest
from launch.terminal import complain
from launch.tune.plan import TuneRequest
from tabular.setting import TabularFlags

_DESCRIPTION = "Trains Atari agents with VA-learning and its relatives, on one machine or many."


class Command(NamedTuple):
    """The function of a command, imported only when it is called, and the flags it takes."""

    function: str  # module:name
    flags: type[Any]
    read: Callable[[Sequence[str]], dict[str, Any]] | None = None  # where flags are not enough
    own_network: bool = False  # it has a server in its own process's network

    def run(self, name: str, args: Sequence[str], *, may_restart: bool = False) -> int:
        """Reads the flags, then calls the function with them."""
        if self.read is not None:
            arguments = self.read(args)
        else:
            arguments = vars(parse(self.flags, args, name))
        if self.own_network and may_restart:
            move_to_own_network()
        module, _, function = self.function.partition(":")
        return int(getattr(importlib.import_module(module), function)(**arguments))


def run(args: Sequence[str], *, may_restart: bool = False) -> int:
    """Runs one command; returns its exit code.

    The process `may_restart` if it was started for the command and for nothing else.
    """
    if args and args[0] == "help":
        # `vantage help train` is `vantage train --help`.
        args = [*args[1:], "--help"]
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
        return ExitCode.DONE if args else ExitCode.BAD_INPUT
    name, *rest = args
    try:
        return _command(name).run(name, rest, may_restart=may_restart)
    except InputError as error:
        complain(str(error))
        return ExitCode.BAD_INPUT
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _command(name: str) -> Command:
    if name.startswith("-"):
        raise InputError(f"{name} stands before any command; write vantage COMMAND {name}")
    if name not in COMMANDS:
        near = did_you_mean(name, list(COMMANDS)) or f"choose from {', '.join(COMMANDS)}"
        raise InputError(f"unknown command '{name}'; {near}")
    return COMMANDS[name]


def _read_train(args: Sequence[str]) -> dict[str, Any]:
    args = attach_value("--sbatch-extra", args)
    given = with_config_file(args, flags_lib.TrainFlags, parse_train)
    flags = parse_train(given)
    check_engine_flags(flags.request.engine, given)
    return {
        "config": flags.config,
        "request": flags.request,
        "hosts": flags.hosts,
        "slurm": flags.slurm,
        "kubernetes": flags.kubernetes,
        "isolation": isolation_of(flags.request, given),
    }


def _read_profile(args: Sequence[str]) -> dict[str, Any]:
    def parse_profile(given: Sequence[str]) -> flags_lib.ProfileFlags:
        default = flags_lib.ProfileFlags(ProfileRequest(), PlanRequest(), preset_config(given))
        return parse(flags_lib.ProfileFlags, given, "profile", default=default)

    flags = parse_profile(with_config_file(args, flags_lib.ProfileFlags, parse_profile))
    return {"config": flags.config, "request": flags.request, "plan": flags.plan}


def _read_host(args: Sequence[str]) -> dict[str, Any]:
    return {"request": parse(HostRequest, args, "host")}


def _read_suite(args: Sequence[str]) -> dict[str, Any]:
    default = flags_lib.SuiteFlags(SuiteRequest(), SlurmOptions())
    return _read_grid("suite", flags_lib.SuiteFlags, default, args)


def _read_tune(args: Sequence[str]) -> dict[str, Any]:
    default = flags_lib.TuneFlags(TuneRequest(), SlurmOptions())
    return _read_grid("tune", flags_lib.TuneFlags, default, args)


def _read_grid(
    command: str, flags_class: type[Any], default: Any, args: Sequence[str]
) -> dict[str, Any]:
    """The flags of a command that runs many `vantage train`."""
    # What follows a bare -- is for every one of them.
    end = args.index("--") if "--" in args else len(args)
    own = attach_value("--sbatch-extra", args[:end])
    flags = parse(flags_class, own, command, default=default)
    check_engine_flags(flags.request.engine, own)
    for flag in ("--actor-partition", "--actor-mem"):
        if value_of(flag, own) is not None:
            raise InputError(
                f"{flag}: a run of a {command} has one host, which --learner-* describe"
            )
    return {
        "request": flags.request,
        "slurm": flags.slurm,
        "extra_args": args[end + 1 :],
        "parse": lambda train_args: parse_train(train_args).config,
    }


def _read_completion(args: Sequence[str]) -> dict[str, Any]:
    flags = parse(flags_lib.CompletionFlags, args, "completion")
    return {
        "shell": flags.shell,
        "commands": {name: command.flags for name, command in COMMANDS.items()},
    }


COMMANDS = {
    "train": Command("launch.commands.train:train", flags_lib.TrainFlags, read=_read_train),
    "tabular": Command("launch.commands.tabular:tabular", TabularFlags),
    "profile": Command(
        "launch.profile.command:profile",
        flags_lib.ProfileFlags,
        read=_read_profile,
        own_network=True,
    ),
    "list": Command("launch.commands.list_runs:list_runs", flags_lib.ListFlags),
    "status": Command("launch.commands.status:status", flags_lib.StatusFlags),
    "stop": Command("launch.commands.stop:stop", flags_lib.StopFlags),
    "scale": Command("launch.commands.scale:scale", flags_lib.ScaleFlags),
    "logs": Command("launch.commands.logs:logs", flags_lib.LogsFlags),
    "fetch": Command("launch.commands.fetch:fetch", flags_lib.FetchFlags),
    "host": Command("launch.engines.host:run_host", HostRequest, read=_read_host),
    "doctor": Command("launch.commands.doctor.command:run_doctor", flags_lib.DoctorFlags),
    "suite": Command("launch.suite.run:suite", flags_lib.SuiteFlags, read=_read_suite),
    "tune": Command("launch.tune.run:tune", flags_lib.TuneFlags, read=_read_tune),
    "report": Command("launch.commands.report:report", flags_lib.ReportFlags),
    "compare": Command("launch.commands.compare:compare", flags_lib.CompareFlags),
    "eval": Command("launch.commands.evaluate:evaluate", flags_lib.EvalFlags),
    "watch": Command("launch.commands.watch.command:watch", flags_lib.WatchFlags),
    "completion": Command(
        "launch.cli.completion:completion", flags_lib.CompletionFlags, read=_read_completion
    ),
}


def _usage() -> str:
    lines = [f"usage: vantage {{{','.join(COMMANDS)}}} ...", "", _DESCRIPTION, ""]
    for name, command in COMMANDS.items():
        lines.append(f"  {name:10} {(command.flags.__doc__ or '').splitlines()[0]}")
    lines += [
        "",
        "vantage help COMMAND lists its flags; vantage --version says which version it is.",
    ]
    return "\n".join(lines)
