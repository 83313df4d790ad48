"""What the figures show against what the paper says, decided from the numbers of the run.

A reading quotes the paper, says what was measured, and whether the two agree. "Beyond noise" is a
mean difference, pair by pair on the same MDPs, larger than its standard error. "Caught up" is a
difference below a tenth of the largest one over epsilon.
"""

from typing import Literal, NamedTuple

from tabular.summary import Summary

Verdict = Literal["Agrees", "Agrees in part", "Does not agree"]

# Where epsilon counts as close to 0.
_CLOSE_TO_ZERO = 0.2
_CAUGHT_UP = 0.1


class Reading(NamedTuple):
    """One sentence of the paper beside what this run measured."""

    paper: str
    measured: str
    verdict: Verdict


def read_figures(summary: Summary) -> dict[str, list[Reading]]:
    """The readings of each figure, by its name in the summary."""
    return {
        "control_curves": [_curves(summary)],
        "performance_by_epsilon": _by_epsilon(summary),
        "advantage_error": [_advantage_error(summary)],
        "q_error": [_q_error(summary)],
        "advantage_norms": [_norms(summary)],
    }


def new_beats_old(summary: Summary, index: int) -> bool:
    """Whether both new algorithms end above both old ones, beyond noise, at one epsilon."""
    pairs = summary["gaps"]["pairs"].values()
    return all(pair["mean"][index] > pair["standard_error"][index] for pair in pairs)


def _curves(summary: Summary) -> Reading:
    figure = summary["figures"]["control_curves"]
    final = {
        name: values["fraction_of_optimal"]["mean"][-1]
        for name, values in figure["algorithms"].items()
    }
    shares = ", ".join(f"{name} {share:.3f}" for name, share in final.items())
    return Reading(
        "“New algorithmic variants significantly outperform prior methods.”",
        f"Final performance as a share of the optimal policy's: {shares}.",
        _verdict(new_beats_old(summary, summary["gaps"]["x"].index(figure["epsilon"]))),
    )


def _by_epsilon(summary: Summary) -> list[Reading]:
    epsilons = summary["gaps"]["x"]
    better = [new_beats_old(summary, i) for i in range(len(epsilons))]
    readings = [
        Reading(
            "“For a wide range of values of ε, VA-learning and Q-learning with behavior dueling "
            "outperform other baselines significantly.”",
            "Both end above dueling and Q-learning beyond noise at ε = "
            f"{_list(epsilons, better, True)}; not at ε = {_list(epsilons, better, False)}.",
            _verdict(sum(better) > len(better) / 2),
        ),
        _largest_gap(summary),
    ]
    if epsilons[-1] == 1.0:
        readings += [_dueling_at_one(summary), _q_at_one(summary)]
    return readings


def _largest_gap(summary: Summary) -> Reading:
    epsilons = summary["gaps"]["x"]
    gap = summary["gaps"]["pairs"]["va - dueling"]["mean"]
    largest = max(range(len(gap)), key=lambda i: gap[i])
    text = f"VA-learning is furthest ahead of dueling at ε = {epsilons[largest]:g}"
    close: Verdict = "Agrees in part" if epsilons[largest] <= _CLOSE_TO_ZERO else "Does not agree"
    return Reading(
        "“The performance gap seems the most profound when ε ≈ 0 …”",
        f"{text} ({gap[largest]:+.3f}); at ε = {epsilons[0]:g} the gap is {gap[0]:+.3f}.",
        "Agrees" if largest == 0 else close,
    )


def _dueling_at_one(summary: Summary) -> Reading:
    pairs = summary["gaps"]["pairs"]
    gap, error = _last(pairs["behavior_dueling - dueling"])
    va_gap, va_error = _last(pairs["va - dueling"])
    return Reading(
        "“When ε → 1 and μ is close to a uniform policy, uniform dueling catches up with the two "
        "new algorithms.”",
        f"At ε = 1 behavior dueling is {gap:+.4f} ± {error:.4f} ahead of dueling and VA-learning "
        f"{va_gap:+.4f} ± {va_error:.4f} (standard error).",
        _verdict(
            gap < _CAUGHT_UP * max(pairs["behavior_dueling - dueling"]["mean"])
            and va_gap < _CAUGHT_UP * max(pairs["va - dueling"]["mean"])
        ),
    )


def _q_at_one(summary: Summary) -> Reading:
    pairs = summary["gaps"]["pairs"]
    gap, error = _last(pairs["behavior_dueling - q"])
    va_gap, va_error = _last(pairs["va - q"])
    significant = [gap > 2 * error, va_gap > 2 * va_error]
    in_part: Verdict = "Agrees in part" if any(significant) else "Does not agree"
    return Reading(
        "“However, there is still a statistically significant gap between regular Q-learning and "
        "other algorithms …”",
        f"At ε = 1 Q-learning is {gap:.4f} ± {error:.4f} behind behavior dueling and "
        f"{va_gap:.4f} ± {va_error:.4f} behind VA-learning; significant here: more than two "
        "standard errors.",
        "Agrees" if all(significant) else in_part,
    )


def _advantage_error(summary: Summary) -> Reading:
    figure = summary["figures"]["advantage_error"]
    ends = {
        budget: [algorithms[name]["mean"][-1] for name in ("va", "td", "va_centered")]
        for budget, algorithms in figure["budgets"].items()
    }
    text = "; ".join(
        f"{budget} trajectories: {va:.2f} against {td:.2f} ({centered:.2f} centered by π)"
        for budget, (va, td, centered) in ends.items()
    )
    return Reading(
        "“Given any data budget, VA-learning obtains more accurate approximations to the advantage "
        "function compared to Q-learning.”",
        f"Final error, VA-learning's A against TD's Q − πQ: {text}. A tends to A_μ^π, which is "
        f"{figure['floor_of_va']['mean']:.2f} away from A^π on average.",
        _verdict(all(va < td for va, td, _ in ends.values())),
    )


def _q_error(summary: Summary) -> Reading:
    budgets = summary["figures"]["q_error"]["budgets"]
    ends = {
        budget: [algorithms[name]["mean"][-1] for name in ("va", "td")]
        for budget, algorithms in budgets.items()
    }
    text = "; ".join(f"{n} trajectories: {va:.1f} against {td:.1f}" for n, (va, td) in ends.items())
    start = next(iter(budgets.values()))["va"]["mean"][0]
    return Reading(
        "“Given any data budget, VA-learning obtains a slightly faster rate of approximating the "
        "Q-function compared to Q-learning.”",
        f"Final error, from {start:.1f} at the start: {text}.",
        _verdict(all(va < td for va, td in ends.values())),
    )


def _norms(summary: Summary) -> Reading:
    norms = summary["figures"]["advantage_norms"]["algorithms"]
    end = {name: values["mean"][-1] for name, values in norms.items()}
    return Reading(
        "“… the behavior dueling parameterization obtains lower weighted advantage norm "
        "compared to the uniform dueling.”",
        f"In the end: dueling under u {end['dueling_uniform']:.3f}, dueling under μ "
        f"{end['dueling_mu']:.3f}, behavior dueling under μ {end['behavior_dueling_mu']:.3f}.",
        _verdict(end["behavior_dueling_mu"] < end["dueling_mu"]),
    )


def _verdict(agrees: bool) -> Verdict:
    return "Agrees" if agrees else "Does not agree"


def _last(pair: Summary) -> tuple[float, float]:
    return pair["mean"][-1], pair["standard_error"][-1]


def _list(epsilons: list[float], better: list[bool], wanted: bool) -> str:
    chosen = [
        f"{e:g}" for e, is_better in zip(epsilons, better, strict=True) if is_better == wanted
    ]
    return ", ".join(chosen) if chosen else "none"
