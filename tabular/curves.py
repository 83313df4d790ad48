"""Learners followed until they settle: points of their curves, and when each came to rest.

Points lie four to a doubling of the updates. A run has converged when over the second half of its
updates no greedy action changed and no entry of its tables moved by more than a thousandth of the
largest one, in sum over the points. It has diverged when an entry is a thousand times what any
policy can be worth. Curves go on until every run has done one or the other, or to a cap.
"""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from learner.losses import Loss
from tabular import learning, mdps
from tabular.learning import Problem, Tables
from tabular.setting import Setting

POINTS_PER_DOUBLING = 4
SETTLED = 1e-3  # of the largest entry
DIVERGED = 1e3  # times the largest value of any policy

Advance = Callable[[str, int], None]  # what is running, and how many more points are done
Measured = Mapping[str, jax.Array]  # name -> [G, S]: G conditions, S MDPs
Measure = Callable[[Tables, Problem], Measured]
Step = Callable[[Tables, Problem, int], Tables]


class Curves(NamedTuple):
    """One learner on a grid of problems; the first point is before any update."""

    updates: np.ndarray  # [P]
    measured: dict[str, np.ndarray]  # name -> [P, G, S]; of a diverged run, what it last was
    converged_at: np.ndarray  # [G, S]: updates; 0 where it has not
    diverged_at: np.ndarray  # [G, S]: updates; 0 where it has not

    def extended(self, updates: np.ndarray) -> "Curves":
        """The same on more points: what has settled stays as it is."""
        last = len(self.updates) - 1
        where = np.minimum(np.arange(len(updates)), last)
        held = {name: values[where] for name, values in self.measured.items()}
        return self._replace(updates=updates, measured=held)


def points(setting: Setting) -> list[int]:
    """Where curves are measured, up to the cap; the fixed budget is one of them."""
    period = setting.target_period_updates
    chosen, i = {setting.budget_updates, setting.max_updates}, 0
    while (at := period * round(2.0 ** (i / POINTS_PER_DOUBLING))) < setting.max_updates:
        chosen.add(at)
        i += 1
    return sorted(chosen)


def follow(
    losses: Mapping[str, Loss],
    problems: Problem,
    measures: Mapping[str, Measure],
    setting: Setting,
    advance: Callable[[int], None],
) -> dict[str, Curves]:
    """Every learner on problems [G, S]; curves that end early are held up to the longest."""
    num_conditions = problems.mu.shape[0]
    rows: dict[str, list[Curves]] = {name: [] for name in losses}
    for name, loss in losses.items():
        step = make_step(loss, setting)
        for condition in range(num_conditions):
            # A condition at a time: those that settle late keep no others waiting.
            row = jax.tree.map(lambda part, i=condition: part[i : i + 1], problems)
            rows[name].append(_follow_row(step, row, measures[name], setting, advance))
    every = [curves.updates for row in rows.values() for curves in row]
    longest = max(every, key=len)
    return {name: _joined([row.extended(longest) for row in rows[name]]) for name in rows}


def _joined(rows: list[Curves]) -> Curves:
    measured = {
        name: np.concatenate([row.measured[name] for row in rows], axis=1)
        for name in rows[0].measured
    }
    return Curves(
        rows[0].updates,
        measured,
        np.concatenate([row.converged_at for row in rows]),
        np.concatenate([row.diverged_at for row in rows]),
    )


def make_step(loss: Loss, setting: Setting) -> Step:
    """One learner on a grid of problems [G, S], by a number of target periods."""
    learn = functools.partial(
        learning.learn,
        loss,
        learning_rate=setting.learning_rate,
        target_period_updates=setting.target_period_updates,
    )

    def step(tables: Tables, problems: Problem, target_copies: int) -> Tables:
        one = functools.partial(learn, target_copies=target_copies)
        return jax.vmap(jax.vmap(one))(tables, problems)

    return jax.jit(step)


def start_tables(problems: Problem) -> Tables:
    """Zeros on a grid of problems."""
    return Tables(jnp.zeros(problems.mu.shape[:-1]), jnp.zeros(problems.mu.shape))


def _follow_row(
    step: Step,
    problems: Problem,
    measure: Measure,
    setting: Setting,
    advance: Callable[[int], None],
) -> Curves:
    tables, rest = start_tables(problems), _Rest(setting, problems)
    recorded = [_numpy(measure(tables, problems))]
    todo = points(setting)
    for done, at in enumerate(todo, start=1):
        before = tables
        tables = step(tables, problems, (at - rest.updates[-1]) // setting.target_period_updates)
        diverged = rest.look(at, before, tables)
        now = _numpy(measure(tables, problems))
        last = recorded[-1]
        recorded.append({name: np.where(diverged, last[name], now[name]) for name in now})
        advance(1)
        if at >= setting.budget_updates and rest.everywhere():
            advance(len(todo) - done)
            break
    measured = {name: np.stack([point[name] for point in recorded]) for name in recorded[0]}
    return Curves(np.asarray(rest.updates), measured, *rest.when())


class _Rest:
    """Which runs have settled or diverged, point by point."""

    def __init__(self, setting: Setting, problems: Problem) -> None:
        self.updates = [0]
        self._bound = DIVERGED * np.max(np.abs(problems.model.return_t)) / (1.0 - setting.gamma)
        grid = problems.mu.shape[:2]
        self._moved: list[np.ndarray] = [np.full(grid, np.inf)]
        self._settled: list[np.ndarray] = [np.zeros(grid, bool)]
        self._diverged: list[np.ndarray] = [np.zeros(grid, bool)]

    def look(self, at: int, before: Tables, now: Tables) -> np.ndarray:
        """Takes one more point; returns which runs have diverged by now."""
        self.updates.append(at)
        moved, largest = (np.asarray(part) for part in _movement(before, now))
        self._moved.append(moved)
        with np.errstate(invalid="ignore"):
            self._diverged.append(self._diverged[-1] | ~(largest < self._bound))
        second_half = [i for i, updates in enumerate(self.updates) if updates > at / 2]
        path = np.sum([self._moved[i] for i in second_half], axis=0)
        self._settled.append((path <= SETTLED) & ~self._diverged[-1])
        return self._diverged[-1]

    def everywhere(self) -> bool:
        """Whether no run has anywhere to go."""
        return bool(np.all(self._settled[-1] | self._diverged[-1]))

    def when(self) -> tuple[np.ndarray, np.ndarray]:
        """From which update on each run had converged, and had diverged."""
        return self._since(self._settled), self._since(self._diverged)

    def _since(self, seen: list[np.ndarray]) -> np.ndarray:
        since = np.zeros(seen[0].shape, int)
        for at, holds in zip(self.updates, seen, strict=True):
            since = np.where(holds, np.where(since > 0, since, at), 0)
        return since


@jax.jit
def _movement(before: Tables, now: Tables) -> tuple[jax.Array, jax.Array]:
    """Per run, the largest move over the largest entry (infinite if greedy actions changed)."""

    def one(before: Tables, now: Tables) -> tuple[jax.Array, jax.Array]:
        pairs = zip(before, now, strict=True)
        move = jnp.max(jnp.stack([jnp.max(jnp.abs(b - a)) for a, b in pairs]))
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(table)) for table in now]))
        same = jnp.all(mdps.greedy(before.advantage) == mdps.greedy(now.advantage))
        relative = move / jnp.maximum(largest, jnp.finfo(move.dtype).tiny)
        return jnp.where(same, relative, jnp.inf), largest

    return jax.vmap(jax.vmap(one))(before, now)


def _numpy(measured: Measured) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in measured.items()}
