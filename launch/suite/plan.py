"""The runs of a suite: a grid of games, methods and seeds, each a `vantage train` of its own."""

import dataclasses
import pathlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import tyro

from actors.games import reference_scores
from launch import config_checks, names
from launch.bounds import COUNT
from launch.config import Config, PresetName
from launch.config_json import fields_that_differ
from launch.engines.claim import FREE_TO_CHANGE_ON_RESUME
from launch.errors import InputError
from launch.flag_types import GameName, one_of
from launch.invocation import vantage_command
from launch.run_dir import RunDir
from launch.suite.sweep import Variant, axes_of, variants_of

ALL_GAMES = "atari57"
SuiteEngine = Literal["local", "slurm"]
AblationName = Literal["full-actions", "restricted-actions", "final-epsilon-0.5"]
# The paper's, as flags of `vantage train`. Without a flag the action set is the restricted one.
ABLATIONS: Mapping[str, tuple[str, ...]] = types.MappingProxyType(
    {
        "full-actions": ("--full-action-set",),
        "restricted-actions": (),
        "final-epsilon-0.5": ("--final-epsilon", "0.5"),
    }
)


@dataclasses.dataclass(frozen=True)
class SuiteRequest:
    """The grid."""

    games: tuple[GameName, ...] = ("pong",)
    """Games, or atari57 for all of them."""
    algorithms: Annotated[
        tuple[str, ...] | None, one_of(names.algorithm_names, "NAME [NAME ...]")
    ] = None
    """What is compared; by default all that are registered."""
    seeds: int = 3
    """Runs of each algorithm on each game, with seeds 1, 2, ..."""
    first_seed: int = 1
    """The first of these seeds instead of 1: fresh ones, to confirm what others showed."""
    frames: int | None = None
    """Global frames of each run; by default the preset's."""
    preset: PresetName | None = None
    """Where the other settings come from; by default `cpu`, as of train."""
    sweep: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE,VALUE [...]")] = ()
    """Settings to run with several values, such as learning_rate=1e-4,3e-4; all are combined."""
    full_action_set: bool = False
    """Use all 18 joystick actions, as in the paper's Table 1."""
    learning_rates: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="NAME=RATE [NAME=RATE ...]")
    ] = ()
    """Learning rates by algorithm, as `vantage tune` finds them; the others keep the preset's."""
    ablation: AblationName | None = None
    """One of the paper's ablations."""
    out: pathlib.Path = pathlib.Path("runs/suite")
    """Folder of the suite; each run has a folder of its own in it."""
    records: pathlib.Path | None = None
    """Folder for the plan, all evaluations and settings, as runs end; None is OUT/records. Outside
    of OUT it keeps finished runs, and a suite whose OUT is lost takes them back."""
    parallel: int | None = None
    """Runs at a time, each on its share of the cores; by default one here, and on Slurm as many as
    it has room for."""
    engine: SuiteEngine = "local"
    """Runs on this machine, or each as a job of Slurm."""


class PlannedRun(NamedTuple):
    """One cell of the grid."""

    game: str
    algorithm: str
    seed: int
    run_dir: RunDir
    train_args: tuple[str, ...]  # of `vantage train`, but for --run-dir and --resume
    config: Config  # what they amount to
    variant: str = ""  # the values of what is swept

    @property
    def method(self) -> str:
        """The algorithm, with what is swept."""
        return f"{self.algorithm} ({self.variant})" if self.variant else self.algorithm

    @property
    def name(self) -> str:
        """The name of its folder and its log."""
        return self.run_dir.root.name

    @property
    def title(self) -> str:
        """What is run, for progress and error messages."""
        return f"{self.method} on {self.game}, seed {self.seed}"


def plan_suite(
    request: SuiteRequest,
    extra_args: Sequence[str],
    parse: Callable[[Sequence[str]], Config],
) -> list[PlannedRun]:
    """All runs, the first seed of everything first; refuses what cannot work before any starts.

    `extra_args` go to every `vantage train` as they are; `parse` reads its command line.
    """
    algorithms = names.algorithm_names() if request.algorithms is None else request.algorithms
    _check(request, algorithms, extra_args)
    rates = _learning_rates(request, algorithms, extra_args)
    common = _common_args(request, extra_args)
    own_args = {name: ("--algorithm", name, *rates.get(name, ()), *common) for name in algorithms}
    axes = axes_of(request.sweep, [arg for args in own_args.values() for arg in args])
    variants = [
        variant
        for algorithm in algorithms
        for variant in variants_of(axes, own_args[algorithm], parse)
    ]
    planned = [
        _planned(request.out, variant, game, seed)
        for seed in range(request.first_seed, request.first_seed + request.seeds)
        for game in _games(request)
        for variant in variants
    ]
    for run in planned:
        config_checks.check_config(run.config)
        _check_stored(run)
    return planned


def train_command(run: PlannedRun) -> list[str]:
    """The command that starts a run, or continues it where it has been started."""
    resume = ["--resume"] if run.run_dir.config_file.exists() else []
    train = ["train", *run.train_args, "--run-dir", str(run.run_dir.root), *resume]
    return vantage_command(*train)


def _check(request: SuiteRequest, algorithms: Sequence[str], extra_args: Sequence[str]) -> None:
    COUNT.check(seeds=request.seeds, first_seed=request.first_seed, parallel=request.parallel)
    names.check_printable("out", str(request.out.absolute()))
    if any(arg.partition("=")[0] == "--engine" for arg in extra_args):
        raise InputError("--engine is the suite's own: give it before the bare --")
    for name, values in (("games", request.games), ("algorithms", algorithms)):
        if len(set(values)) < len(values) or not values:
            raise InputError(f"{name}={' '.join(values)}: each is needed once")
    if request.full_action_set and request.ablation == "restricted-actions":
        raise InputError("--ablation restricted-actions and --full-action-set exclude each other")


def _learning_rates(
    request: SuiteRequest, algorithms: Sequence[str], extra_args: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """The flag with its value, by algorithm."""
    rates: dict[str, tuple[str, str]] = {}
    for given in request.learning_rates:
        name, _, rate = given.rpartition("=")
        if name not in algorithms or name in rates or not _is_number(rate):
            raise InputError(
                f"learning_rates: '{given}' is not NAME=RATE with one rate for one of "
                f"{', '.join(algorithms)}"
            )
        rates[name] = ("--learning-rate", rate)
    if rates and any(arg.partition("=")[0] == "--learning-rate" for arg in extra_args):
        raise InputError(
            "--learning-rates and --learning-rate after the bare -- exclude each other"
        )
    return rates


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _games(request: SuiteRequest) -> Sequence[str]:
    return list(reference_scores()) if request.games == (ALL_GAMES,) else request.games


def _common_args(request: SuiteRequest, extra_args: Sequence[str]) -> tuple[str, ...]:
    ablation = () if request.ablation is None else ABLATIONS[request.ablation]
    full = request.full_action_set and "--full-action-set" not in ablation
    return (
        *(() if request.preset is None else ("--preset", request.preset)),
        *(() if request.frames is None else ("--frames", str(request.frames))),
        *(("--full-action-set",) if full else ()),
        *ablation,
        *extra_args,
    )


def _planned(out: pathlib.Path, variant: Variant, game: str, seed: int) -> PlannedRun:
    config = variant.config
    algorithm = config.learner.algorithm
    folder = f"{game}-{names.file_name(algorithm)}{variant.label}-seed{seed}"
    return PlannedRun(
        game=game,
        algorithm=algorithm,
        seed=seed,
        run_dir=RunDir(out / folder),
        train_args=(*variant.args, "--game", game, "--seed", str(seed)),
        config=dataclasses.replace(
            config, environment=dataclasses.replace(config.environment, game=game), seed=seed
        ),
        variant=variant.text,
    )


def _check_stored(run: PlannedRun) -> None:
    """A folder that holds a run of other settings is not one of this suite."""
    if not run.run_dir.config_file.exists():
        return
    stored = run.run_dir.load_config().with_schedule()
    wanted = run.config
    if wanted.schedule_frames is None:  # then a run keeps the schedules it began with
        wanted = dataclasses.replace(wanted, schedule_frames=stored.schedule_frames)
    for name, before, now in fields_that_differ(stored, wanted):
        if name not in FREE_TO_CHANGE_ON_RESUME:
            raise InputError(
                f"'{run.run_dir.root}' holds a run with {name}={before}, and this suite has "
                f"{name}={now}; choose another --out"
            )
