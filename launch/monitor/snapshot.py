"""What a run looks like now: rows in, one typed snapshot out. Pure: no files, no clock.

Time is the time written in the rows, so a recorded run gives the same snapshots as a live one.
None means "not reported yet". A number that was reported but is not finite is NaN (a null in
metrics.jsonl), and stays visible as such: a diverged loss must not look like a missing one.
"""

import collections
import math
import numbers
import re
from collections.abc import Iterable
from typing import NamedTuple

from launch.monitor.rate import Progress
from launch.monitor.run_phase import RunPhase
from report.metrics_file import Row

NUM_RETURNS = 20
# A learner that reports is never silent for longer than this.
_MISSED_REPORTS = 3
_OLD_SECONDS = 30.0
_LEARNER_RATES = ("updates_per_second", "data_wait_fraction")
# All that is kept of a row. Strangers may send rows, of any role and with any keys.
_KEPT = {
    "learner": ("time", "updates", "loss", "samples_per_insert", "params_version", *_LEARNER_RATES),
    "replay": ("size", "bytes", "checkpoint_seconds", "checkpoint_bytes", "samples_per_insert"),
}
_KEPT_OF_ACTORS = ("frames_per_second", "params_age_seconds", "insert_wait_fraction", "epsilon")
_ACTOR = re.compile("actor/(0|[1-9][0-9]{0,3})")  # a picture of more of them is none


class Actor(NamedTuple):
    """One actor, as of its last rows."""

    name: str  # The <i> of "actor/<i>".
    frames_per_second: float | None
    params_age_seconds: float | None
    insert_wait_fraction: float | None
    epsilon: float | None
    silent_seconds: float  # How long the other roles have been reporting without it.


class Evaluation(NamedTuple):
    """The last evaluation, of the parameters of `frames`."""

    mean_return: float
    episodes: int | None
    human_normalized: float | None
    frames: int


class Replay(NamedTuple):
    """The replay table; the checkpoint is the last one, None before the first."""

    size: int | None
    bytes: int | None
    checkpoint_seconds: float | None
    checkpoint_bytes: int | None


class Snapshot(NamedTuple):
    """The whole run, ready to be shown."""

    time: float | None  # Of the newest row, unix seconds.
    frames: int
    total_frames: int
    frames_per_second: float | None
    eta_seconds: float | None
    updates: int | None
    updates_per_second: float | None
    loss: float | None
    data_wait_fraction: float | None
    samples_per_insert: float | None
    target_samples_per_insert: float
    params_version: int | None
    mean_return: float | None  # Over the last training episodes of all actors, at most NUM_RETURNS.
    num_episodes: int  # Training episodes seen so far.
    actors: tuple[Actor, ...]
    evaluation: Evaluation | None
    replay: Replay | None
    learner_time: float | None  # Of the learner's newest row, by the clock of its host.
    phase: RunPhase | None = None  # None where only rows are known.

    def in_phase(self, phase: RunPhase) -> "Snapshot":
        """The same run, of which more is known than its rows say."""
        if phase.trains:
            return self._replace(phase=phase)
        return self._replace(phase=phase, eta_seconds=None)

    def as_of(self, now: float, report_seconds: float) -> "Snapshot":
        """The same at a later moment, by the clock of the learner's host.

        A rate that the learner has not repeated for a while is the past's, and left out.
        """
        if self.learner_time is None:
            return self
        is_old = abs(now - self.learner_time) > max(_MISSED_REPORTS * report_seconds, _OLD_SECONDS)
        return self.without_rates() if is_old else self

    def without_rates(self) -> "Snapshot":
        """What was found so far, of a run that does not train at present."""
        return self._replace(
            frames_per_second=None,
            eta_seconds=_eta_seconds(self.frames, self.total_frames, rate=None),
            updates_per_second=None,
            data_wait_fraction=None,
            actors=tuple(
                actor._replace(frames_per_second=None, params_age_seconds=None)
                for actor in self.actors
            ),
        )


class RunState:
    """Folds rows into the state of the run.

    The learner owns the frame count, so once it has reported only its rows give progress and rate;
    until then any row does. One role means one clock: hosts need not agree on the time.
    """

    def __init__(self, *, total_frames: int, target_samples_per_insert: float):
        self._total_frames = total_frames
        self._target_samples_per_insert = target_samples_per_insert
        self._time: float | None = None
        self._progress = Progress()
        self._progress_is_learners = False
        self._latest: dict[str, dict[str, float]] = {}
        self._heard_at: dict[str, float] = {}
        self._returns: collections.deque[float] = collections.deque(maxlen=NUM_RETURNS)
        self._num_episodes = 0
        self._evaluation: Evaluation | None = None

    def add(self, rows: Iterable[Row]) -> None:
        """Takes rows in the order they were written."""
        for row in rows:
            self._add(row)

    def add_since(self, rows: Iterable[Row], started: float) -> None:
        """As `add`, of a run that was last started then, by the clock of the learner's host."""
        rows = list(rows)
        # Actors may be on other hosts, with other clocks; the order of rows is the same.
        earlier = [
            i for i, row in enumerate(rows) if not _is_actor(row["role"]) and row["time"] < started
        ]
        first = earlier[-1] + 1 if earlier else 0
        self.add(rows[:first])
        self.begin()
        self.add(rows[first:])

    def begin(self) -> None:
        """What follows is of a new start: rates, and the actors that had them, are of the past."""
        self.begin_rate()
        for role in filter(_is_actor, list(self._latest)):
            del self._latest[role], self._heard_at[role]
        for key in (*_LEARNER_RATES, "time"):
            self._latest.get("learner", {}).pop(key, None)

    def begin_rate(self) -> None:
        """Frames are counted on, but their rate is that from now on."""
        self._progress.begin_rate()

    def _add(self, row: Row) -> None:
        role, time, frames = row["role"], float(row["time"]), int(row["frames"])
        self._time = time if self._time is None else max(self._time, time)
        kept = _KEPT_OF_ACTORS if _ACTOR.fullmatch(role) else _KEPT.get(role)
        if kept is not None:
            # On the newest clock, not the sender's own: a host whose clock is behind is not silent.
            self._heard_at[role] = self._time
            self._latest.setdefault(role, {}).update(_numbers(row, kept))
        self._add_progress(role, time, frames)
        for value in _numbers(row, ("episode_return",)).values():
            self._returns.append(value)
            self._num_episodes += 1
        self._evaluation = _evaluation(row) or self._evaluation

    def _add_progress(self, role: str, time: float, frames: int) -> None:
        if role == "learner":
            if not self._progress_is_learners:
                self._progress = Progress()
                self._progress_is_learners = True
            self._progress.add(time, frames)
        elif not self._progress_is_learners:
            # Roles learn the count at different times: an older count is no step back.
            self._progress.add(time, max(frames, self._progress.frames))

    def snapshot(self) -> Snapshot:
        """The run as of the rows so far."""
        learner = self._latest.get("learner", {})
        replay = self._latest.get("replay", {})
        rate = self._progress.frames_per_second()
        return Snapshot(
            time=self._time,
            frames=self._progress.frames,
            total_frames=self._total_frames,
            frames_per_second=rate,
            eta_seconds=_eta_seconds(self._progress.frames, self._total_frames, rate),
            updates=_count(learner.get("updates")),
            updates_per_second=learner.get("updates_per_second"),
            loss=learner.get("loss"),
            data_wait_fraction=learner.get("data_wait_fraction"),
            samples_per_insert=learner.get("samples_per_insert", replay.get("samples_per_insert")),
            target_samples_per_insert=self._target_samples_per_insert,
            params_version=_count(learner.get("params_version")),
            mean_return=sum(self._returns) / len(self._returns) if self._returns else None,
            num_episodes=self._num_episodes,
            actors=self._actors(),
            evaluation=self._evaluation,
            replay=_replay(replay) if replay else None,
            learner_time=learner.get("time"),
        )

    def _actors(self) -> tuple[Actor, ...]:
        """All actors heard of, in the order of their numbers."""
        roles = filter(_is_actor, self._latest)
        # Shorter first puts actor/10 after actor/9.
        return tuple(self._actor(role) for role in sorted(roles, key=lambda r: (len(r), r)))

    def _actor(self, role: str) -> Actor:
        values = self._latest[role]
        assert self._time is not None  # A role in _latest has set it.
        return Actor(
            name=role.removeprefix("actor/"),
            frames_per_second=values.get("frames_per_second"),
            params_age_seconds=values.get("params_age_seconds"),
            insert_wait_fraction=values.get("insert_wait_fraction"),
            epsilon=values.get("epsilon"),
            silent_seconds=self._time - self._heard_at[role],
        )


def _eta_seconds(frames: int, total_frames: int, rate: float | None) -> float | None:
    if frames >= total_frames:
        return 0.0
    return (total_frames - frames) / rate if rate else None


def _replay(values: dict[str, float]) -> Replay:
    return Replay(
        size=_count(values.get("size")),
        bytes=_count(values.get("bytes")),
        checkpoint_seconds=values.get("checkpoint_seconds"),
        checkpoint_bytes=_count(values.get("checkpoint_bytes")),
    )


def _is_actor(role: str) -> bool:
    return role.startswith("actor/")


def _evaluation(row: Row) -> Evaluation | None:
    """The evaluation that a row tells of, if it does."""
    values = _numbers(row, ("eval_return", "eval_episodes", "human_normalized"))
    if "eval_return" not in values:
        return None
    return Evaluation(
        mean_return=values["eval_return"],
        episodes=_count(values.get("eval_episodes")),
        human_normalized=values.get("human_normalized"),
        frames=int(row["frames"]),
    )


def _numbers(row: Row, keys: Iterable[str]) -> dict[str, float]:
    """The numbers under these keys; one that is no number is NaN, and what is text is left out."""
    values = {key: row[key] for key in keys if key in row}
    return {
        key: math.nan if value is None else float(value)
        for key, value in values.items()
        if value is None or isinstance(value, numbers.Real)
    }


def _count(value: float | None) -> int | None:
    return None if value is None or not math.isfinite(value) else int(value)
