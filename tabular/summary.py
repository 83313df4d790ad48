"""`summary.json`: the numbers behind the figures, one part for each reading of the gradient.

Values are lists over points [P], or over points and conditions [P][G] (epsilons in `control`, data
budgets in `evaluation`): means and standard deviations over MDPs. A gap is the mean difference of
two learners, MDP by MDP, with its standard error; positive is better for the first.
"""

import dataclasses
from typing import Any

import numpy as np

from tabular.control import NORMS, ControlResult
from tabular.curves import Curves
from tabular.evaluation import EvaluationResult
from tabular.setting import Setting

Summary = dict[str, Any]

# A share of the optimal performance; how many updates it takes says who is faster.
GOOD_SHARE = 0.95
# Where epsilon counts as close to 0.
CLOSE_TO_ZERO = 0.2


def summarize(setting: Setting, control: ControlResult, evaluation: EvaluationResult) -> Summary:
    """One reading of the gradient as plain numbers and lists."""
    return {
        "setting": dataclasses.asdict(setting),
        "budget_updates": setting.budget_updates,
        "control": _control(setting, control),
        "evaluation": _evaluation(evaluation),
    }


def _control(setting: Setting, result: ControlResult) -> Summary:
    curve = result.epsilons.tolist().index(setting.epsilon)
    shares = {
        name: curves.measured["performance"] / result.optimal
        for name, curves in result.curves.items()
    }
    norms = {
        line: result.curves[algorithm].measured[measure][:, curve]
        for line, (algorithm, measure) in NORMS.items()
    }
    updates = next(iter(result.curves.values())).updates
    pairs = [(new, old) for new in ("va", "behavior_dueling") for old in ("dueling", "q")]
    pairs.append(("dueling", "q"))
    return {
        "updates": updates.tolist(),
        "epsilons": result.epsilons.tolist(),
        "shown_epsilons": sorted(setting.epsilons),
        "epsilon": setting.epsilon,
        "share_of_optimal": {name: spread(values) for name, values in shares.items()},
        "gaps": {f"{new} - {old}": gap(shares[new] - shares[old]) for new, old in pairs},
        "gap_of_va_at_small_epsilons": _contrast(result.epsilons, shares["va"] - shares["dueling"]),
        "updates_to_good_share": {
            name: median_updates_to(GOOD_SHARE, values, updates) for name, values in shares.items()
        },
        "norms": {line: spread(values) for line, values in norms.items()},
        "norm_gap": gap(norms["dueling_mu"] - norms["behavior_dueling_mu"]),
        "rest": {name: _rest(curves) for name, curves in result.curves.items()},
    }


def _evaluation(result: EvaluationResult) -> Summary:
    va, td = (result.curves[name].measured for name in ("va", "td"))
    start = va["q"][:1]
    return {
        "updates": result.curves["va"].updates.tolist(),
        "budgets": result.budgets.tolist(),
        "errors": {
            name: {measure: spread(values) for measure, values in curves.measured.items()}
            for name, curves in result.curves.items()
        },
        "gaps": {
            "advantage": gap(td["advantage"] - va["advantage"]),
            "own_limit": gap(td["advantage"] - va["own_limit"]),
            "q": gap(td["q"] - va["q"]),
            # Twice TD's way from the start against VA-learning's: positive if less than twice.
            "slightly": gap(2.0 * (start - td["q"]) - (start - va["q"])),
        },
        "floor_of_va": spread(result.floor),
        "rest": {name: _rest(curves) for name, curves in result.curves.items()},
    }


def spread(values: np.ndarray) -> Summary:
    """Mean and standard deviation over the last axis, the MDPs."""
    deviation = values.std(axis=-1, ddof=1) if values.shape[-1] > 1 else 0.0 * values[..., 0]
    return {"mean": values.mean(axis=-1).tolist(), "std": deviation.tolist()}


def gap(differences: np.ndarray) -> Summary:
    """Mean over the last axis, the MDPs, and its standard error."""
    seen = spread(differences)
    error = np.asarray(seen["std"]) / differences.shape[-1] ** 0.5
    return {"mean": seen["mean"], "standard_error": error.tolist()}


def _contrast(epsilons: np.ndarray, gaps: np.ndarray) -> Summary | None:
    """How much larger the largest gap close to epsilon 0 is than the largest one elsewhere."""
    close = epsilons <= CLOSE_TO_ZERO
    if close.all() or not close.any():
        return None
    rows = np.arange(len(gaps))
    means = gaps.mean(axis=-1)
    near, far = (np.argmax(np.where(side, means, -np.inf), axis=1) for side in (close, ~close))
    return gap(gaps[rows, near] - gaps[rows, far])


def median_updates_to(share: float, values: np.ndarray, updates: np.ndarray) -> list[int | None]:
    """Per condition: from which update on the median run stays above a share; None: it never is."""
    below = values < share
    stays = ~np.flip(np.logical_or.accumulate(np.flip(below, 0), axis=0), 0)  # [P, G, S]
    first = np.where(stays.any(axis=0), updates[np.argmax(stays, axis=0)], np.inf)
    medians = np.median(first, axis=1)
    return [int(m) if np.isfinite(m) else None for m in medians]


def _rest(curves: Curves) -> Summary:
    """How many runs came to rest, and when: per condition."""
    last = np.where(curves.converged_at > 0, curves.converged_at, np.inf)
    medians = np.median(last, axis=1)
    return {
        "converged": (curves.converged_at > 0).sum(axis=1).tolist(),
        "diverged": (curves.diverged_at > 0).sum(axis=1).tolist(),
        "median_updates": [int(m) if np.isfinite(m) else None for m in medians],
    }
