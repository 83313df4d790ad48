"""The settings of the tabular study, and what is refused before anything runs."""

import dataclasses
import math
import os
import pathlib
from typing import Annotated, Literal

import tyro

Behavior = Literal["known", "estimated"]
# How the gradient is "averaged across all collected trajectories".
Gradient = Literal["per-step", "per-trajectory"]
GRADIENTS: tuple[Gradient, ...] = ("per-step", "per-trajectory")
# The paper names no number of updates. A step per trajectory is as long as 200 per step.
_BUDGET_UPDATES = {"per-step": 5000, "per-trajectory": 100}


class BadSettingError(ValueError):
    """A setting that cannot work: the value and the reason, in one line."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """The paper's setting (Section 6.1 and Appendix C.1); how long and how often is ours."""

    seeds: int = 20
    """Random MDPs to average over."""
    gradient: Gradient | Literal["both"] = "per-step"
    """Averaged over all samples, or summed over each trajectory's and averaged over trajectories;
    both: one study of each, side by side."""
    updates: int | None = None
    """The fixed budget that results are shown after, beside those at convergence. Unless given,
    5000 per step and 100 per trajectory; a multiple of the target period."""
    max_updates: int = 5_000_000
    """Updates after which what has not converged is given up."""
    epsilon: float = 0.8
    """Share of the uniform policy in mu, for the curves over updates."""
    epsilons: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """The shares for the figure of final performance."""
    behavior: Annotated[Behavior, tyro.conf.arg(aliases=("--behaviour",))] = "known"
    """Whether learners know mu or estimate it from the data."""
    trajectories: int = 20
    """Trajectories of data for control."""
    budgets: tuple[int, ...] = (5, 20, 80)
    """Numbers of trajectories for policy evaluation."""
    target_epsilon: float = 0.0
    """Share of the uniform policy in the policy evaluated; 0: deterministic."""
    sampled: bool = False
    """Also run Algorithm 1 as it is printed: along one trajectory, a sample at a time."""
    seed: int = 0
    """The seed that everything random derives from."""

    # The same in all of the paper's figures.
    gamma: float = 0.99
    """Discount."""
    learning_rate: float = 0.1
    """Constant."""
    target_period_updates: int = 10
    """Updates between copies of the target tables."""

    @property
    def trajectory_steps(self) -> int:
        """Length of a trajectory: the integer closest to 2 / (1 - gamma)."""
        return round(2.0 / (1.0 - self.gamma))

    @property
    def gradients(self) -> tuple[Gradient, ...]:
        """The readings of the gradient that the study compares."""
        return GRADIENTS if self.gradient == "both" else (self.gradient,)

    @property
    def budget_updates(self) -> int:
        """The fixed budget, of one reading of the gradient."""
        assert self.gradient != "both"
        return _BUDGET_UPDATES[self.gradient] if self.updates is None else self.updates

    def under(self, gradient: Gradient) -> "Setting":
        """The same study with one reading of the gradient."""
        return dataclasses.replace(self, gradient=gradient)

    @property
    def control_epsilons(self) -> tuple[float, ...]:
        """All shares that control runs with, in order."""
        return tuple(sorted({*self.epsilons, self.epsilon}))


@dataclasses.dataclass(frozen=True)
class TabularFlags:
    """Reproduces the paper's tabular study: five figures, their numbers, and a page."""

    setting: Setting = Setting()
    out: pathlib.Path = pathlib.Path("out/tabular")
    """Folder to write to."""


def check_setting(setting: Setting) -> None:
    """Raises BadSettingError for the first value that cannot work."""
    for name in ("seeds", "max_updates", "trajectories", "target_period_updates"):
        _require(getattr(setting, name) >= 1, name, getattr(setting, name), "must be at least 1")
    for name, values in (("epsilons", setting.epsilons), ("budgets", setting.budgets)):
        _require(len(values) > 0, name, values, "must name at least one value")
        _require(len(set(values)) == len(values), name, values, "names a value twice")
    for name in ("epsilon", "target_epsilon"):
        _check_share(name, getattr(setting, name))
    for epsilon in setting.epsilons:
        _check_share("epsilons", epsilon)
    for budget in setting.budgets:
        _require(budget >= 1, "budgets", budget, "must be at least 1 trajectory")
    _require(0.0 <= setting.gamma <= 0.999, "gamma", setting.gamma, "must be in [0, 0.999]")
    rate = setting.learning_rate
    _require(0.0 < rate < math.inf, "learning_rate", rate, "must be positive")
    _require(0 <= setting.seed < 2**31, "seed", setting.seed, "must be in [0, 2^31)")
    _check_periods(setting)


def _check_periods(setting: Setting) -> None:
    period, most = setting.target_period_updates, setting.max_updates
    reason = f"must be a multiple of target_period_updates={period}"
    _require(most % period == 0, "max_updates", most, reason)
    for gradient in setting.gradients:
        updates = setting.under(gradient).budget_updates
        _require(updates >= 1, "updates", updates, "must be at least 1")
        _require(updates % period == 0, "updates", updates, reason)
        _require(updates <= most, "updates", updates, f"must not exceed max_updates={most}")


def check_folder(out: pathlib.Path) -> None:
    """Makes the folder; raises BadSettingError where nothing can be written in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be made: {error.strerror}; choose another folder"
        raise BadSettingError(f"out={out} {reason}") from error
    if not os.access(out, os.W_OK | os.X_OK):
        raise BadSettingError(f"out={out} is not writable; choose another folder")


def _check_share(name: str, value: float) -> None:
    _require(0.0 <= value <= 1.0, name, value, "must be in [0, 1]")


def _require(holds: bool, name: str, value: object, reason: str) -> None:
    if not holds:
        raise BadSettingError(f"{name}={value} {reason}")
