"""The whole tabular study: five figures, their numbers, and a page that reads them."""

import json
import pathlib
import time
from collections.abc import Callable

import jax

from tabular import control, evaluation, figures, page, theorems
from tabular.precision import double_precision
from tabular.setting import RECORD_PERIOD_UPDATES, Setting, check_folder, check_setting
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
        instances = control.make_instances(setting)
        controlled = control.run_control(setting, instances, advance)
        evaluated = evaluation.run_evaluation(setting, instances, advance)
        proofs = theorems.run_theorems(setting, instances, advance)
    summary = summarize(setting, controlled, evaluated, proofs)
    for name, draw in figures.FIGURES.items():
        draw(summary, out / f"{name}.png")
        advance("figures", 1)
    summary["seconds"] = round(time.monotonic() - started, 1)
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (out / PAGE).write_text(page.write_page(summary))
    return summary


class _Counter:
    """Turns points done into the share of the whole study that is done."""

    def __init__(self, setting: Setting, report: Report) -> None:
        points = setting.updates // RECORD_PERIOD_UPDATES
        self._total = 2 * points + _THEOREM_STEPS + len(figures.FIGURES)
        self._done = 0
        self._report = report

    def __call__(self, what: str, steps: int) -> None:
        self._done += steps
        self._report(what, self._done / self._total)
