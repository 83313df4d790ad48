"""`summary.json`: the numbers behind the five figures.

For each figure: `x`, and per algorithm the mean and standard deviation over MDPs. Performance also
as a fraction of the optimal policy's on the same MDP, under `fraction_of_optimal`.
"""

import dataclasses
from typing import Any

import numpy as np

from tabular import theorems
from tabular.control import ControlResult
from tabular.evaluation import EvaluationResult
from tabular.setting import Setting
from tabular.theorems import TheoremResult

Summary = dict[str, Any]


def summarize(
    setting: Setting, control: ControlResult, evaluation: EvaluationResult, proofs: TheoremResult
) -> Summary:
    """Everything as plain numbers and lists."""
    curve = control.epsilons.tolist().index(setting.epsilon)
    sweep = [control.epsilons.tolist().index(epsilon) for epsilon in sorted(setting.epsilons)]
    return {
        "setting": dataclasses.asdict(setting),
        "figures": {
            "control_curves": {
                "epsilon": setting.epsilon,
                "x": control.updates.tolist(),
                "x_label": "updates",
                "algorithms": _performance(control, np.s_[:, curve]),
            },
            "performance_by_epsilon": {
                "x": control.epsilons[sweep].tolist(),
                "x_label": "epsilon",
                "algorithms": _performance(control, np.s_[-1, sweep]),
            },
            "advantage_error": {
                **_by_budget(evaluation, evaluation.advantage_error),
                "floor_of_va": spread(evaluation.advantage_floor),
            },
            "q_error": _by_budget(evaluation, evaluation.q_error),
            "advantage_norms": {
                "epsilon": setting.epsilon,
                "x": control.updates.tolist(),
                "x_label": "updates",
                "algorithms": {
                    name: spread(norm[:, curve]) for name, norm in control.norms.items()
                },
            },
        },
        "gaps": _gaps(control),
        **theorems.summarize(proofs),
    }


def spread(values: np.ndarray) -> Summary:
    """Mean and standard deviation over the last axis, the MDPs."""
    deviation = values.std(axis=-1, ddof=1) if values.shape[-1] > 1 else 0.0 * values[..., 0]
    return {"mean": values.mean(axis=-1).tolist(), "std": deviation.tolist()}


def _performance(control: ControlResult, where: Any) -> Summary:
    return {
        name: {
            **spread(values[where]),
            "fraction_of_optimal": spread(values[where] / control.optimal),
        }
        for name, values in control.performance.items()
    }


def _by_budget(evaluation: EvaluationResult, errors: dict[str, np.ndarray]) -> Summary:
    return {
        "x": evaluation.updates.tolist(),
        "x_label": "updates",
        "budgets": {
            str(budget): {name: spread(values[:, i]) for name, values in errors.items()}
            for i, budget in enumerate(evaluation.budgets)
        },
    }


def _gaps(control: ControlResult) -> Summary:
    """Final fractions of optimal, new against old algorithms, pair by pair on the same MDPs."""
    final = {name: values[-1] / control.optimal for name, values in control.performance.items()}
    num_seeds = len(control.optimal)
    gaps: Summary = {"x": control.epsilons.tolist(), "x_label": "epsilon", "pairs": {}}
    for new in ("va", "behavior_dueling"):
        for old in ("dueling", "q"):
            gap = spread(final[new] - final[old])
            error = [deviation / num_seeds**0.5 for deviation in gap["std"]]
            gaps["pairs"][f"{new} - {old}"] = {"mean": gap["mean"], "standard_error": error}
    return gaps
