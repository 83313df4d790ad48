"""The Markdown page of a study: the figures, and what they show against what the paper says."""

from tabular.readings import Reading, read_figures
from tabular.summary import Summary

_TITLES = {
    "control_curves": "1. Control: performance over updates",
    "performance_by_epsilon": "2. Control: final performance against ε",
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
        "Why A cannot win here: by Theorem 1 it tends to A_μ^π = Q^π − μQ^π, and the figure "
        "measures the distance to A^π = Q^π − πQ^π. TD's estimate is centered by π first. With "
        "the same centering (A − πA) VA-learning and TD estimate the same thing. For control the "
        "difference is harmless: it is the same for all actions of a state."
    ),
}


def write_page(summary: Summary) -> str:
    """The page, which lies beside its figures."""
    parts = ["# VA-learning on random MDPs", _about(summary)]
    for name, readings in read_figures(summary).items():
        parts += [f"## {_TITLES[name]}", f"![{_TITLES[name]}]({name}.png)"]
        parts += [_beside_the_paper(reading) for reading in readings]
        if name == "performance_by_epsilon":
            parts.append(_epsilon_table(summary))
        if name in _NOTES:
            parts.append(_NOTES[name])
    parts += ["## The theorems", *_theorems(summary)]
    return "\n\n".join(parts) + "\n"


def _about(summary: Summary) -> str:
    setting = summary["setting"]
    return (
        f"{setting['seeds']} random MDPs with 20 states, 5 actions, γ = {setting['gamma']:g}, "
        "transitions from Dirichlet(0.5) and rewards r(x, a) from N(0, 1). Every curve is "
        f"{setting['updates']} updates with rate {setting['learning_rate']:g} on the gradient "
        "averaged over all samples, target tables copied every "
        f"{setting['target_period_updates']}; control learns from {setting['trajectories']} "
        f"trajectories. μ is {setting['behavior']}. Performance is V of the greedy policy, "
        "averaged over states; lines are means over MDPs, bands standard deviations."
    )


def _beside_the_paper(reading: Reading) -> str:
    return f"The paper: {reading.paper}\n\n**{reading.verdict}.** {reading.measured}"


def _epsilon_table(summary: Summary) -> str:
    figure = summary["figures"]["performance_by_epsilon"]
    names = list(figure["algorithms"])
    scale = summary["setting"]["seeds"] ** 0.5
    rows = [
        "Final performance as a share of the optimal policy's, mean ± standard error:",
        "",
        "| ε | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for i, epsilon in enumerate(figure["x"]):
        shares = [figure["algorithms"][name]["fraction_of_optimal"] for name in names]
        cells = [f"{share['mean'][i]:.3f} ± {share['std'][i] / scale:.3f}" for share in shares]
        rows.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


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


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
