"""The flags of every command, as dataclasses: names, types, defaults and help texts.

Fields are what the command's function takes.
"""

import dataclasses
import pathlib
from typing import Annotated

import tyro

from launch.cli.completion import Shell
from launch.config import Config, PresetName
from launch.engines.options import HostsOptions, KubernetesOptions, SlurmOptions, TrainRequest
from launch.profile.request import PlanRequest, ProfileRequest
from launch.suite.plan import SuiteRequest
from launch.tune.plan import TuneRequest

DEFAULT_PRESET: PresetName = "cpu"

_Run = Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
_ConfigFile = Annotated[pathlib.Path | None, tyro.conf.arg(name="config", metavar="FILE")]
_Checkpoint = Annotated[str, tyro.conf.arg(metavar="newest|best|N")]


@dataclasses.dataclass(frozen=True)
class TrainFlags:
    """Trains an agent. Flags beside --preset override what the preset says."""

    request: TrainRequest
    config: Config
    hosts: HostsOptions
    slurm: SlurmOptions
    kubernetes: KubernetesOptions
    preset: PresetName = DEFAULT_PRESET
    """Where defaults come from: `cpu` learns Pong on two cores, `paper` is the paper's setting."""
    config_file: _ConfigFile = None
    """A run's config.json, or a TOML file with names of flags as keys; flags override it."""


@dataclasses.dataclass(frozen=True)
class ProfileFlags:
    """Measures every stage and the whole program, and names the bottleneck."""

    request: ProfileRequest
    plan: PlanRequest
    config: Config
    preset: PresetName = DEFAULT_PRESET
    """Where defaults come from."""
    config_file: _ConfigFile = None
    """As of train."""


@dataclasses.dataclass(frozen=True)
class StatusFlags:
    """Shows the nodes of a run, its rates and its last evaluation."""

    run: _Run
    """The run directory."""
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False
    """Print one JSON object."""


@dataclasses.dataclass(frozen=True)
class ListFlags:
    """Lists the runs of a folder: state, game, algorithm, frames, last evaluation."""

    folder: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="[DIR]")] = (
        pathlib.Path("runs")
    )
    """A folder of runs."""
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False
    """Print a JSON list."""


@dataclasses.dataclass(frozen=True)
class StopFlags:
    """Drains, checkpoints and stops a run."""

    run: _Run
    """The run directory."""
    timeout_seconds: Annotated[float, tyro.conf.arg(name="timeout")] = 300.0
    """Seconds to wait for it."""


@dataclasses.dataclass(frozen=True)
class ScaleFlags:
    """Adds or drops actor hosts of a run on Slurm or Kubernetes while it trains."""

    run: _Run
    """The run directory."""
    actor_hosts: int
    """How many actor hosts the run is to have; those that failed are replaced."""


@dataclasses.dataclass(frozen=True)
class LogsFlags:
    """Prints what the nodes of a run wrote last."""

    run: _Run
    """The run directory."""
    node: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NODE]")] = None
    """One node, such as learner-0 or actor-3; by default all of them."""
    lines: int = 20
    """Last lines of each."""
    follow: bool = False
    """Go on with what they write, until Ctrl-C."""


@dataclasses.dataclass(frozen=True)
class FetchFlags:
    """Copies a run out of its Kubernetes cluster: config, metrics, checkpoints."""

    run: _Run
    """The run directory, as `vantage train` made it here."""
    folder: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Where to: a new folder, or one that holds an earlier copy of the run."""


@dataclasses.dataclass(frozen=True)
class DoctorFlags:
    """Checks this machine: Python, packages, devices, memory, ROMs."""


@dataclasses.dataclass(frozen=True)
class SuiteFlags:
    """Trains a grid of games, algorithms and seeds; what follows a bare -- goes to every train."""

    request: SuiteRequest
    slurm: SlurmOptions


@dataclasses.dataclass(frozen=True)
class TuneFlags:
    """Searches for learning rates as the paper did; what follows a bare -- goes to every train."""

    request: TuneRequest
    slurm: SlurmOptions


@dataclasses.dataclass(frozen=True)
class ReportFlags:
    """Writes a page on all runs of a folder: scores, intervals, curves, beside the paper's."""

    folder: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A suite, a folder of runs, or one run."""
    out: pathlib.Path = pathlib.Path("report")
    """Folder to write to."""
    resamples: int = 2000
    """Bootstrap resamples behind each interval."""


@dataclasses.dataclass(frozen=True)
class CompareFlags:
    """Draws the learning curves of runs in the terminal, and as PNG."""

    runs: Annotated[
        tuple[pathlib.Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN ...]")
    ] = ()
    """Run directories, or folders of them."""
    out: pathlib.Path | None = None
    """Draw to this PNG as well; without it nothing is written."""


@dataclasses.dataclass(frozen=True)
class EvalFlags:
    """Scores a checkpoint of a run over whole episodes."""

    run: _Run
    """The run directory."""
    checkpoint: _Checkpoint = "newest"
    """`newest`, `best` by the run's own evaluations, or the number of updates in a file's name."""
    episodes: int = 100
    """Episodes to play."""
    epsilon: float | None = None
    """Exploration rate; by default that of the run's own evaluations."""
    seed: int = 0
    """Seed of the games."""
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False
    """Print one JSON object."""


@dataclasses.dataclass(frozen=True)
class CompletionFlags:
    """Prints a script that completes commands and flags; docs/command_line.md says where to."""

    shell: Annotated[Shell, tyro.conf.Positional, tyro.conf.arg(metavar="{bash,zsh,fish}")]
    """The shell."""


@dataclasses.dataclass(frozen=True)
class WatchFlags:
    """Plays a checkpoint of a run, to a video or a window."""

    run: _Run
    """The run directory."""
    checkpoint: _Checkpoint = "newest"
    """As of eval."""
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
