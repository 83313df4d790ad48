"""What the paper says of its figures, each sentence with how it is judged from a run's numbers.

One standard for every verdict: a difference counts when its mean over MDPs, pair by pair, is more
than two standard errors.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from tabular.summary import CLOSE_TO_ZERO, Summary

Verdict = Literal["Agrees", "Agrees in part", "Does not agree", "Cannot be judged"]
Figure = Literal[
    "control_curves", "performance_by_epsilon", "advantage_error", "q_error", "advantage_norms"
]
_STANDARD_ERRORS = 2.0


class Judged(NamedTuple):
    """A verdict, and the numbers it rests on."""

    verdict: Verdict
    measured: str


class Claim(NamedTuple):
    """One sentence of the paper, and how to judge it at a point of the curves."""

    figure: Figure
    topic: str
    paper: str
    part: Literal["control", "evaluation"]
    judge: Callable[[Summary, int], Judged]


def _beyond_noise(gap: Summary, point: int, condition: int | None = None) -> bool:
    """Whether a mean difference is more than two standard errors above zero."""
    mean, error = _of(gap, point, condition)
    return mean > _STANDARD_ERRORS * error


def _new_beats_old(control: Summary, point: int, condition: int) -> bool:
    """Whether both new algorithms are above both old ones."""
    pairs = ("va - dueling", "va - q", "behavior_dueling - dueling", "behavior_dueling - q")
    return all(_beyond_noise(control["gaps"][pair], point, condition) for pair in pairs)


def _curves(control: Summary, point: int) -> Judged:
    condition = control["epsilons"].index(control["epsilon"])
    shares = ", ".join(
        f"{name} {values['mean'][point][condition]:.3f}"
        for name, values in control["share_of_optimal"].items()
    )
    return Judged(
        _verdict(_new_beats_old(control, point, condition)),
        f"Share of the optimal performance: {shares}.",
    )


def _wide_range(control: Summary, point: int) -> Judged:
    epsilons = control["epsilons"]
    better = [_new_beats_old(control, point, i) for i in range(len(epsilons))]
    chosen = [f"{e:g}" for e, holds in zip(epsilons, better, strict=True) if holds]
    where = f"at ε = {', '.join(chosen)}" if chosen else "at no ε"
    return Judged(
        _verdict(sum(better) > len(better) / 2),
        f"Both are above dueling and Q-learning beyond noise {where}.",
    )


def _largest_gap(control: Summary, point: int) -> Judged:
    epsilons, contrast = control["epsilons"], control["gap_of_va_at_small_epsilons"]
    if contrast is None:
        return Judged("Cannot be judged", f"No ε on both sides of {CLOSE_TO_ZERO:g}.")
    gap = control["gaps"]["va - dueling"]["mean"][point]
    largest = max(range(len(gap)), key=lambda i: gap[i])
    close = _beyond_noise(contrast, point)
    at_zero = _beyond_noise(control["gaps"]["va - dueling"], point, 0)
    partly: Verdict = "Agrees in part" if close else "Does not agree"
    return Judged(
        "Agrees" if close and at_zero else partly,
        f"VA-learning is furthest ahead of dueling at ε = {epsilons[largest]:g} "
        f"({gap[largest]:+.3f}); at ε = {epsilons[0]:g} the gap is {gap[0]:+.3f}.",
    )


def _as_poor_as_q(control: Summary, point: int) -> Judged:
    gap, epsilons = control["gaps"]["dueling - q"], control["epsilons"]
    close = [i for i, epsilon in enumerate(epsilons) if epsilon <= CLOSE_TO_ZERO]
    if not close:
        return Judged("Cannot be judged", f"No ε up to {CLOSE_TO_ZERO:g}.")
    same = []
    for i in close:
        mean, error = _of(gap, point, i)
        same.append(abs(mean) <= _STANDARD_ERRORS * error)
    numbers = "; ".join(f"ε = {epsilons[i]:g}: {_plus_minus(gap, point, i)}" for i in close)
    return Judged(_of_several(same), f"Dueling minus Q-learning, {numbers}.")


def _dueling_at_one(control: Summary, point: int) -> Judged:
    gaps = [control["gaps"][f"{new} - dueling"] for new in ("behavior_dueling", "va")]
    if control["epsilons"][-1] != 1.0:
        return Judged("Cannot be judged", "ε = 1 was not run.")
    return Judged(
        _of_several([not _beyond_noise(gap, point, -1) for gap in gaps]),
        f"At ε = 1 behavior dueling is {_plus_minus(gaps[0], point, -1)} ahead of dueling, "
        f"VA-learning {_plus_minus(gaps[1], point, -1)}.",
    )


def _q_at_one(control: Summary, point: int) -> Judged:
    names = ("dueling", "behavior_dueling", "va")
    gaps = [control["gaps"][f"{name} - q"] for name in names]
    if control["epsilons"][-1] != 1.0:
        return Judged("Cannot be judged", "ε = 1 was not run.")
    numbers = ", ".join(
        f"{name} {_plus_minus(gap, point, -1)}" for name, gap in zip(names, gaps, strict=True)
    )
    return Judged(
        _of_several([_beyond_noise(gap, point, -1) for gap in gaps]),
        f"Ahead of Q-learning at ε = 1: {numbers}.",
    )


def _advantage(measure: str, gap: str) -> Callable[[Summary, int], Judged]:
    def judge(evaluation: Summary, point: int) -> Judged:
        va = evaluation["errors"]["va"][measure]["mean"]
        td = evaluation["errors"]["td"]["advantage"]["mean"]
        numbers = _by_budget(evaluation, va[point], td[point], ".2f")
        budgets = range(len(evaluation["budgets"]))
        better = [_beyond_noise(evaluation["gaps"][gap], point, i) for i in budgets]
        return Judged(
            _of_several(better),
            f"Error, VA-learning against TD, {numbers}; before any update {va[0][0]:.2f} against "
            f"{td[0][0]:.2f}.",
        )

    return judge


def _q_error(evaluation: Summary, point: int) -> Judged:
    va, td = (evaluation["errors"][name]["q"]["mean"] for name in ("va", "td"))
    budgets, gaps = range(len(evaluation["budgets"])), evaluation["gaps"]
    faster = all(_beyond_noise(gaps["q"], point, i) for i in budgets)
    slightly = all(_beyond_noise(gaps["slightly"], point, i) for i in budgets)
    partly: Verdict = "Agrees in part" if faster else "Does not agree"
    numbers = _by_budget(evaluation, va[point], td[point], ".1f")
    by_how_much = "less than twice as far" if slightly else "not less than twice as far"
    return Judged(
        "Agrees" if faster and slightly else partly,
        f"Error, VA-learning against TD, {numbers}; from {va[0][0]:.1f} at the start VA-learning "
        f"came {by_how_much} as TD.",
    )


def _norms(control: Summary, point: int) -> Judged:
    now = {name: values["mean"][point] for name, values in control["norms"].items()}
    return Judged(
        _verdict(_beyond_noise(control["norm_gap"], point)),
        f"Dueling under u {now['dueling_uniform']:.3f}, dueling under μ {now['dueling_mu']:.3f}, "
        f"behavior dueling under μ {now['behavior_dueling_mu']:.3f}.",
    )


def _verdict(agrees: bool) -> Verdict:
    return "Agrees" if agrees else "Does not agree"


def _of_several(agree: list[bool]) -> Verdict:
    partly: Verdict = "Agrees in part" if any(agree) else "Does not agree"
    return "Agrees" if all(agree) else partly


def _of(gap: Summary, point: int, condition: int | None) -> tuple[float, float]:
    mean, error = gap["mean"][point], gap["standard_error"][point]
    return (mean, error) if condition is None else (mean[condition], error[condition])


def _plus_minus(gap: Summary, point: int, condition: int) -> str:
    mean, error = _of(gap, point, condition)
    return f"{mean:+.4f} ± {error:.4f}"


def _by_budget(evaluation: Summary, va: list[float], td: list[float], digits: str) -> str:
    return "; ".join(
        f"{budget} trajectories: {ours:{digits}} against {theirs:{digits}}"
        for budget, ours, theirs in zip(evaluation["budgets"], va, td, strict=True)
    )


CLAIMS = (
    Claim(
        "control_curves",
        "new above old, one ε",
        "“New algorithmic variants significantly outperform prior methods.”",
        "control",
        _curves,
    ),
    Claim(
        "performance_by_epsilon",
        "new above old, many ε",
        "“For a wide range of values of ε, VA-learning and Q-learning with behavior dueling "
        "outperform other baselines significantly.”",
        "control",
        _wide_range,
    ),
    Claim(
        "performance_by_epsilon",
        "largest gap near ε = 0",
        "“The performance gap seems the most profound when ε ≈ 0 …”",
        "control",
        _largest_gap,
    ),
    Claim(
        "performance_by_epsilon",
        "dueling as poor as Q near ε = 0",
        "“… Q-learning with uniform dueling perform poorly as regular Q-learning.”",
        "control",
        _as_poor_as_q,
    ),
    Claim(
        "performance_by_epsilon",
        "dueling catches up at ε = 1",
        "“When ε → 1 and μ is close to a uniform policy, uniform dueling catches up with the two "
        "new algorithms.”",
        "control",
        _dueling_at_one,
    ),
    Claim(
        "performance_by_epsilon",
        "Q behind all others at ε = 1",
        "“However, there is still a statistically significant gap between regular Q-learning and "
        "other algorithms …”",
        "control",
        _q_at_one,
    ),
    Claim(
        "advantage_error",
        "A nearer to A^π, as printed",
        "“Given any data budget, VA-learning obtains more accurate approximations to the advantage "
        "function compared to Q-learning”: both measured against A^π, as printed.",
        "evaluation",
        _advantage("advantage", "advantage"),
    ),
    Claim(
        "advantage_error",
        "A nearer to its own limit A_μ^π",
        "“Given any data budget, VA-learning obtains more accurate approximations to the advantage "
        "function compared to Q-learning”: VA-learning's A measured against A_μ^π, its own limit.",
        "evaluation",
        _advantage("own_limit", "own_limit"),
    ),
    Claim(
        "q_error",
        "Q slightly faster",
        "“Given any data budget, VA-learning obtains a slightly faster rate of approximating the "
        "Q-function compared to Q-learning.”",
        "evaluation",
        _q_error,
    ),
    Claim(
        "advantage_norms",
        "norms lower than dueling's",
        "“… the behavior dueling parameterization obtains lower weighted advantage norm "
        "compared to the uniform dueling.”",
        "control",
        _norms,
    ),
)
