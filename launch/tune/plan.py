"""What `vantage tune` is asked, and the runs that a search needs next."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

from launch import names
from launch.bounds import Bounds
from launch.config import Config, PresetName
from launch.errors import InputError
from launch.flag_types import GameName, one_of
from launch.suite.plan import ALL_GAMES, PlannedRun, SuiteEngine, SuiteRequest, plan_suite
from launch.tune.search import rate_of

# Far beyond any rate that learns, so that no step of the search leaves the numbers there are.
_START, _MOVES = Bounds(1e-12, 1e3), Bounds(1, 20)


@dataclasses.dataclass(frozen=True)
class TuneRequest:
    """The search."""

    games: tuple[GameName, ...] = ("pong",)
    """Games whose human-normalized scores are averaged."""
    algorithms: Annotated[
        tuple[str, ...], one_of(names.algorithm_names, "NAME [NAME ...]", aliases=("--algorithm",))
    ] = ("va",)
    """Algorithms; each has a search of its own."""
    start: float = 2.5e-4
    """The rate to start from; a third and three times of it are tried beside it."""
    max_moves: int = 4
    """Moves to another rate after which a search ends, improving or not."""
    seeds: int = 1
    """Runs of each rate on each game, with seeds 1, 2, ..."""
    frames: int | None = None
    """Global frames of each run; by default the preset's."""
    preset: PresetName = "cpu"
    """Where the other settings come from."""
    full_action_set: bool = False
    """Use all 18 joystick actions."""
    out: pathlib.Path = pathlib.Path("runs/tune")
    """Folder of the search; each run has a folder of its own in it."""
    records: pathlib.Path | None = None
    """Folder for the table, the picture and all evaluations; None is OUT/records."""
    parallel: int | None = None
    """Runs at a time, each on its share of the cores; by default one here, and on Slurm as many as
    it has room for."""
    engine: SuiteEngine = "local"
    """Runs on this machine, or each as a job of Slurm."""

    def check(self) -> None:
        """Raises InputError for a search that cannot be made."""
        _START.check(start=self.start)
        _MOVES.check(max_moves=self.max_moves)
        if ALL_GAMES in self.games:
            raise InputError(f"games={ALL_GAMES}: a rate is tuned on a subset of games; name them")


class Trial(NamedTuple):
    """All runs of one algorithm with one rate."""

    algorithm: str
    exponent: int
    rate: float
    runs: Sequence[PlannedRun]


def plan_trials(
    request: TuneRequest,
    exponents: Mapping[str, Sequence[int]],
    extra_args: Sequence[str],
    parse: Callable[[Sequence[str]], Config],
) -> list[Trial]:
    """The runs of these exponents by algorithm; refuses what cannot work before any starts."""
    if any(arg.partition("=")[0] == "--learning-rate" for arg in extra_args):
        raise InputError("--learning-rate is what is tuned: give --start before the bare --")
    trials = []
    for algorithm, chosen in exponents.items():
        for exponent in chosen:
            rate = rate_of(request.start, exponent)
            suite = SuiteRequest(
                games=request.games,
                algorithms=(algorithm,),
                seeds=request.seeds,
                frames=request.frames,
                preset=request.preset,
                full_action_set=request.full_action_set,
                sweep=(f"learning_rate={rate!r}",),
                out=request.out,
                parallel=request.parallel,
                engine=request.engine,
            )
            runs = plan_suite(suite, extra_args, parse)
            trials.append(Trial(algorithm, exponent, rate, runs))
    return trials
