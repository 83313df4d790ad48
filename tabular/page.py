"""The Markdown page of a study: the figures, and what they show against what the paper says."""

from collections.abc import Iterator

from tabular.claims import CLAIMS
from tabular.readings import Reading, most_at_once, read
from tabular.summary import GOOD_SHARE, Summary

_TITLES = {
    "control_curves": "1. Control: performance over updates",
    "performance_by_epsilon": "2. Control: performance against ε",
    "advantage_error": "3. Policy evaluation: error of the advantage",
    "q_error": "4. Policy evaluation: error of Q",
    "advantage_norms": "5. Squared advantage norms",
}

_NOTES = {
    "performance_by_epsilon": (
        "Mind ε = 0: the data then hold one action per state. Under μ that action's centered "
        "advantage is zero, so behavior dueling never moves f and VA-learning's A tends to zero: "
        "nothing in the data says which action is best, and these two choose among ties and "
        "near-ties (the first action wins). Dueling and Q-learning prefer the action seen where "
        "its value is positive."
    ),
    "advantage_error": (
        "Against A^π, as printed, A cannot win: by Theorem 1 it tends to A_μ^π = Q^π − μQ^π, and "
        "A^π is Q^π − πQ^π. TD's estimate is centered by π first. Against its own limit A is "
        "measured as TD is, each by the distance to what it tends to; that limit is the smaller "
        "of the two, so that A is nearer to it before anything is learned. With the same centering "
        "(A − πA) VA-learning and TD estimate the same thing. For control the difference is "
        "harmless: it is the same for all actions of a state."
    ),
}


def write_page(summary: Summary) -> str:
    """The page, which lies beside its figures."""
    studies = summary["gradients"]
    readings = {gradient: read(study) for gradient, study in studies.items()}
    parts = ["# VA-learning on random MDPs", _about(summary), "## The verdicts"]
    parts += [_verdicts(studies, readings), _in_short(studies, readings)]
    for name, title in _TITLES.items():
        parts += [f"## {title}", f"![{title}]({name}.png)"]
        parts += _claims(name, studies, readings)
        if name == "control_curves":
            parts += [_speed_table(gradient, study) for gradient, study in studies.items()]
        if name == "performance_by_epsilon":
            parts += _epsilon_tables(studies)
        if name in _NOTES:
            parts.append(_NOTES[name])
    parts += ["## The theorems", *_theorems(summary)]
    if summary["sampled"] is not None:
        parts += _sampled(summary["sampled"])
    return "\n\n".join(parts) + "\n"


def _about(summary: Summary) -> str:
    studies = summary["gradients"]
    setting = next(iter(studies.values()))["setting"]
    budgets = " and ".join(
        f"{study['budget_updates']:,} updates ({gradient})" for gradient, study in studies.items()
    )
    return (
        f"{setting['seeds']} random MDPs with 20 states, 5 actions, γ = {setting['gamma']:g}, "
        "transitions from Dirichlet(0.5) and rewards r(x, a) from N(0, 1). Rate "
        f"{setting['learning_rate']:g}, target tables copied every "
        f"{setting['target_period_updates']} updates; control learns from "
        f"{setting['trajectories']} trajectories. μ is {setting['behavior']}. Performance is V of "
        "the greedy policy, averaged over states; lines are means over MDPs, bands standard "
        f"deviations. Everything is shown after {budgets}, and at convergence: a run has converged "
        "when over the second half of its updates no greedy action changed and no entry of its "
        "tables moved by more than a thousandth of the largest. Runs go on until all have "
        f"converged or diverged, at most for {setting['max_updates']:,} updates. “Beyond noise” is "
        "more than two standard errors of the mean difference, MDP by MDP: the standard of every "
        "verdict."
    )


def _verdicts(studies: Summary, readings: dict[str, list[Reading]]) -> str:
    header = ["claim"]
    for gradient, study in studies.items():
        budget = f"{study['budget_updates']:,} updates"
        header += [f"{gradient}: {budget}", "at convergence", "agrees at updates"]
    rows = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for claims in zip(*readings.values(), strict=True):
        cells = [claims[0].claim.topic]
        for reading in claims:
            cells += [reading.at_budget.verdict, reading.at_convergence.verdict, reading.holds]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _claims(name: str, studies: Summary, readings: dict[str, list[Reading]]) -> Iterator[str]:
    for claims in zip(*readings.values(), strict=True):
        if claims[0].claim.figure != name:
            continue
        yield f"The paper: {claims[0].claim.paper}"
        lines = []
        for gradient, reading in zip(studies, claims, strict=True):
            budget = f"{gradient}, after {studies[gradient]['budget_updates']:,} updates"
            cases = {budget: reading.at_budget, f"{gradient}, converged": reading.at_convergence}
            for when, judged in cases.items():
                lines.append(f"- {when}: **{judged.verdict}.** {judged.measured}")
        yield "\n".join(lines)


def _in_short(studies: Summary, readings: dict[str, list[Reading]]) -> str:
    """When most claims agree at once, and whether being ahead outlasts learning."""
    lines = []
    for gradient in studies:
        updates, count = most_at_once(studies[gradient])
        ahead = readings[gradient][0]
        lasts = ahead.at_convergence.verdict == "Agrees"
        end = "are still ahead" if lasts else "are ahead no longer: what they gain is speed"
        if ahead.holds == "never":
            said = "at no number of updates."
        else:
            said = f"at these numbers of updates: {ahead.holds}; at convergence they {end}."
        lines.append(
            f"- {gradient}: most claims agree at once after {updates:,} updates, "
            f"{count} of {len(CLAIMS)}. The new algorithms are ahead of both old ones (ε = "
            f"{studies[gradient]['control']['epsilon']:g}) {said}"
        )
    return "\n".join(lines)


def _speed_table(gradient: str, study: Summary) -> str:
    control = study["control"]
    names = list(control["updates_to_good_share"])
    rows = [
        f"Updates until the median MDP stays above {GOOD_SHARE:g} of the optimum, and until it has "
        f"converged ({gradient}; - where it never does):",
        "",
        "| ε | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for epsilon in control["shown_epsilons"]:
        i = control["epsilons"].index(epsilon)
        cells = []
        for name in names:
            good = control["updates_to_good_share"][name][i]
            cells.append(f"{_count(good)} / {_count(control['rest'][name]['median_updates'][i])}")
        rows.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _epsilon_tables(studies: Summary) -> Iterator[str]:
    for gradient, study in studies.items():
        control, seeds = study["control"], study["setting"]["seeds"]
        budget = control["updates"].index(study["budget_updates"])
        cases = {f"after {study['budget_updates']:,} updates": budget, "at convergence": -1}
        for when, point in cases.items():
            yield (
                f"Share of the optimal performance, {gradient}, {when}; mean ± standard error"
                + ("; in brackets the runs that had not converged:" if point == -1 else ":")
                + "\n\n"
                + _epsilon_table(control, point, seeds, at_rest=point == -1)
            )


def _epsilon_table(control: Summary, point: int, seeds: int, *, at_rest: bool) -> str:
    names = list(control["share_of_optimal"])
    rows = ["| ε | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for epsilon in control["shown_epsilons"]:
        i = control["epsilons"].index(epsilon)
        cells = []
        for name in names:
            share = control["share_of_optimal"][name]
            mean, error = share["mean"][point][i], share["std"][point][i] / seeds**0.5
            cell = f"{mean:.3f} ± {error:.3f}"
            restless = _restless(control["rest"][name], i, seeds) if at_rest else ""
            cells.append(cell + restless)
        rows.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _restless(rest: Summary, condition: int, seeds: int) -> str:
    diverged = rest["diverged"][condition]
    unsettled = seeds - diverged - rest["converged"][condition]
    said = [f"{diverged} diverged"] if diverged else []
    said += [f"{unsettled} unsettled"] if unsettled else []
    return f" ({', '.join(said)})" if said else ""


def _theorems(summary: Summary) -> list[str]:
    lines = []
    for case, seen in summary["theorem_1"].items():
        verdict = "hold" if seen["holds_at_every_iteration"] else "DO NOT hold"
        share = seen["largest_share_of_bound"]
        lines.append(
            f"- Theorem 1, {case}: the bounds {verdict} at all {seen['iterations']} iterations of "
            f"the exact recursion on every MDP; errors reach at most {share['V']:.2f} of the bound "
            f"of V and {share['A']:.2f} of that of A."
        )
    for case, seen in summary["theorem_2"].items():
        errors = seen["mean_error"]
        steps = ", ".join(f"{count:,}" for count in seen["steps"])
        lines.append(
            f"- Theorem 2, {case} (γ = {seen['gamma']:g}): after {steps} samples from every state "
            f"V is {_numbers(errors['V'])} and A {_numbers(errors['A'])} from the limit (maximum "
            "norm, mean over MDPs)."
        )
    return ["\n".join(lines)]


def _sampled(sampled: Summary) -> list[str]:
    shares = ", ".join(
        f"{name} {values['mean'][-1]:.3f}" for name, values in sampled["share_of_optimal"].items()
    )
    gap = sampled["gap"]
    return [
        "## Algorithm 1 along a trajectory",
        "![Algorithm 1 along a trajectory](sampled.png)",
        f"One trajectory of {sampled['steps'][-1]:,} steps under μ (ε = {sampled['epsilon']:g}), "
        "one update per step as printed, no target tables. The rate of an entry visited n times "
        "before is (n + 1)^-0.6, a state's for V and a pair's for A and Q. Share of the optimal "
        f"performance in the end: {shares}; VA-learning minus Q-learning "
        f"{gap['mean'][-1]:+.4f} ± {gap['standard_error'][-1]:.4f}.",
    ]


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _count(updates: int | None) -> str:
    return "-" if updates is None else f"{updates:,}"
