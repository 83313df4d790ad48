"""Runs found in a folder, read for a report: what was run, its evaluations, its wall clock.

Reading never stops at a damaged file. What cannot be used is left out and said in one line that
names the file; the rest stays.
"""

import math
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from report.counted import counted
from report.metrics_file import Row, read_rows
from report.plain_text import plain
from report.run_config import DamagedConfigError, read_run_config

Warn = Callable[[str], None]
References = Mapping[str, tuple[float, float]]  # game -> scores of a random player and of a human

# A longer silence of the learner is a run that was stopped and resumed: no wall clock of training.
_STOPPED_SECONDS = 600.0
_MALFORMED_SHOWN = 3
_MAX_FRAMES = 2.0**62
_MAX_RETURN = 1e12  # no game gives so much


class Evaluations(NamedTuple):
    """The evaluations of a run, in the order of frames."""

    frames: np.ndarray  # float [points], never more than the run was to be trained for
    returns: np.ndarray  # float [points], mean true score
    normalized: np.ndarray  # float [points], 0 random, 1 human; NaN for a game without both scores


class Pace(NamedTuple):
    """How long a run trained, not counting the time it was stopped."""

    seconds: float
    frames: float  # gained in that time

    @property
    def frames_per_second(self) -> float:
        """NaN before there are two reports to measure between."""
        return self.frames / self.seconds if self.seconds > 0 else math.nan


class Run(NamedTuple):
    """One run directory."""

    path: pathlib.Path
    name: str  # its folder, as seen from the one that was searched
    game: str
    algorithm: str
    seed: int
    total_frames: int
    frames: int  # reached so far
    settings: Mapping[str, Any]  # all fields of its config, by name
    facts: Mapping[str, Any]  # versions, hardware and commit, as stored
    evaluations: Evaluations
    pace: Pace

    @property
    def finished(self) -> bool:
        """Whether the run reached its end and scored it."""
        # It ends at a whole agent step, which can be some frames early.
        repeat = self.settings.get("action_repeat", 1)
        scored = self.evaluations.frames[-1] if len(self.evaluations.frames) else 0
        return bool(scored >= self.total_frames // repeat * repeat)


def find_runs(folder: pathlib.Path, references: References, warn: Warn) -> list[Run]:
    """All runs at or below a folder, by path; a run without evaluations is one too."""
    runs = []
    for path in run_folders(folder):
        try:
            run = read_run(path, references, warn)
            name = plain(str(path.relative_to(folder))) if path != folder else run.name
            runs.append(run._replace(name=name))
        except DamagedConfigError as error:
            warn(f"{path / 'config.json'}: {error}; this run is left out")
    return runs


def run_folders(folder: pathlib.Path) -> list[pathlib.Path]:
    """What may be a run at or below a folder, by path: each has a config.json."""
    configs = [folder / "config.json", *sorted(folder.glob("*/**/config.json"))]
    return [config.parent for config in configs if config.is_file()]


def read_run(path: pathlib.Path, references: References, warn: Warn) -> Run:
    """One run; raises ValueError where its config.json does not say what was run."""
    config = read_run_config(path / "config.json")
    reference = references.get(config.game)
    if reference is None:
        warn(
            f"{path / 'config.json'}: game '{config.game}' has no random and human scores; "
            "its raw scores are shown, and it counts in no aggregate"
        )
    log = _Log(path / "metrics.jsonl", warn)
    for row in log.rows():
        log.add(row)
    log.say_what_was_left_out()
    return Run(
        path=path,
        name=plain(path.resolve().name),
        game=config.game,
        algorithm=config.algorithm,
        seed=config.seed,
        total_frames=config.total_frames,
        frames=log.frames,
        settings=config.settings,
        facts=config.facts,
        evaluations=_evaluations(log.scores, config.total_frames, reference),
        pace=Pace(log.seconds, log.frames_gained),
    )


class _Log:
    """Folds the rows of one metrics.jsonl."""

    def __init__(self, path: pathlib.Path, warn: Warn):
        self._path, self._warn = path, warn
        self.scores: list[tuple[float, float]] = []  # (frames, mean return)
        self.frames = 0
        self.seconds, self.frames_gained = 0.0, 0.0
        self._last: tuple[float, float] | None = None  # (time, frames) of the learner
        self._unusable, self._malformed = 0, 0

    def rows(self) -> Iterator[Row]:
        if not self._path.exists():
            self._warn(f"{self._path}: not there; the run has no evaluations")
            return
        try:
            yield from read_rows(self._path, on_malformed=self._leave_out)
        except OSError as error:
            self._warn(f"{self._path} cannot be read: {error.strerror}; the rest is left out")

    def _leave_out(self, error: ValueError) -> None:
        self._malformed += 1
        if self._malformed <= _MALFORMED_SHOWN:
            self._warn(f"{error}; the line is left out")

    def add(self, row: Row) -> None:
        frames = _number(row.get("frames"), bound=_MAX_FRAMES)
        time = _number(row.get("time"), bound=_MAX_FRAMES)
        if frames is None or frames < 0:
            return
        if row.get("role") == "evaluator" and "eval_return" in row:
            self._add_evaluation(frames, _number(row["eval_return"], bound=_MAX_RETURN))
        elif row.get("role") == "learner" and time is not None:
            self._add_progress(time, frames)
        # A learner that went back to its checkpoint has lost the frames after it.
        if row.get("role") in ("learner", "evaluator"):
            self.frames = int(frames)

    def _add_evaluation(self, frames: float, score: float | None) -> None:
        if score is None:
            self._unusable += 1
            return
        # After a step back to a checkpoint the evaluations beyond it are of a lost past.
        while self.scores and self.scores[-1][0] >= frames:
            self.scores.pop()
        self.scores.append((frames, score))

    def _add_progress(self, time: float, frames: float) -> None:
        if self._last is not None:
            seconds, gained = time - self._last[0], frames - self._last[1]
            if 0 < seconds < _STOPPED_SECONDS and gained >= 0:
                self.seconds += seconds
                self.frames_gained += gained
        self._last = (time, frames)

    def say_what_was_left_out(self) -> None:
        if self._malformed > _MALFORMED_SHOWN:
            more = self._malformed - _MALFORMED_SHOWN
            self._warn(f"{self._path}: {counted(more, 'more line')} like these left out")
        if self._unusable:
            self._warn(
                f"{self._path}: {counted(self._unusable, 'evaluation')} whose return is not a "
                "number left out"
            )


def _evaluations(
    scores: list[tuple[float, float]], total_frames: int, reference: tuple[float, float] | None
) -> Evaluations:
    frames, returns = np.array(scores, float).reshape(-1, 2).T
    random, human = (math.nan, math.nan) if reference is None else reference
    return Evaluations(
        # The last games go on a little beyond the end; all finished runs end at the same place.
        frames=np.minimum(frames, total_frames),
        returns=returns,
        normalized=(returns - random) / (human - random),
    )


def _number(value: Any, *, bound: float) -> float | None:
    """None for what is no number, or so far out that nothing can be drawn or computed with it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= bound else None
