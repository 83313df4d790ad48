"""The whole tabular study: figures, their numbers, and a page that reads them."""

import json
import pathlib
import time
from collections.abc import Callable

import jax

from learner.losses import ALGORITHMS
from tabular import control, curves, evaluation, figures, page, sampled, theorems
from tabular.control import Instance
from tabular.curves import Advance
from tabular.precision import double_precision
from tabular.setting import Setting, check_folder, check_setting
from tabular.summary import Summary, summarize

PAGE = "tabular.md"
Report = Callable[[str, float], None]  # what is running, and the share of the study done
_THEOREM_STEPS = 4


def run_study(setting: Setting, out: pathlib.Path, report: Report) -> Summary:
    """Runs it and writes all files to `out`; raises BadSettingError before anything starts."""
    check_setting(setting)
    check_folder(out)
    started = time.monotonic()
    advance = _Counter(setting, report)
    # Thousands of small steps: an accelerator would only be slower.
    with double_precision(), jax.default_device(jax.devices("cpu")[0]):
        summary = _run(setting, control.make_instances(setting), advance)
    for name, draw in figures.FIGURES.items():
        draw(summary["gradients"], out / f"{name}.png")
        advance("figures", 1)
    if summary["sampled"] is not None:
        figures.draw_sampled(summary["sampled"], out / "sampled.png")
    summary["seconds"] = round(time.monotonic() - started, 1)
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (out / PAGE).write_text(page.write_page(summary))
    return summary


def _run(setting: Setting, instances: Instance, advance: Advance) -> Summary:
    studies = {}
    for gradient in setting.gradients:
        one = setting.under(gradient)
        controlled = control.run_control(one, instances, advance)
        studies[gradient] = summarize(
            one, controlled, evaluation.run_evaluation(one, instances, advance)
        )
    proofs = theorems.summarize(theorems.run_theorems(setting, instances, advance))
    along = sampled.run_paths(setting, instances, advance) if setting.sampled else None
    return {"gradients": studies, **proofs, "sampled": along}


class _Counter:
    """Turns points done into the share of the whole study that is done."""

    def __init__(self, setting: Setting, report: Report) -> None:
        runs = len(ALGORITHMS) * len(setting.control_epsilons)
        runs += len(evaluation.LEARNERS) * len(setting.budgets)
        points = sum(
            runs * len(curves.points(setting.under(gradient))) for gradient in setting.gradients
        )
        self._total = points + _THEOREM_STEPS + int(setting.sampled) + len(figures.FIGURES)
        self._done = 0
        self._report = report

    def __call__(self, what: str, steps: int) -> None:
        self._done += steps
        self._report(what, self._done / self._total)
