"""A whole run beside what it is held against, which takes its turns in pauses of the run.

The machine's speed moves within seconds, so everything that is compared shares its fast and slow
moments: while the run's nodes are held still, bare updates, naive updates and the naive system get
the machine to themselves. `python -m benchmarks.whole_runs nips2013` measures one run by itself.
"""

import statistics
import sys
from typing import Any, NamedTuple

from benchmarks.naive_system import NaiveSystem
from benchmarks.paper_agent import paper_config
from benchmarks.update_speed import make_bare_update, make_naive_update, one_per_dispatch
from launch import build
from launch.config import Config
from launch.engines.isolate import move_to_own_network
from launch.machine.limits import usable_cores
from launch.profile.actor_speed import measure_actor
from launch.profile.command import as_json
from launch.profile.costs import measure_costs
from launch.profile.plan import Costs, Hosts, predict
from launch.profile.timed_run import TimedRun, run_for
from launch.profile.timing import Cost, mean_cost
from launch.profile.verdict import Limits, core_time_efficiency

_RUN_SECONDS = 40.0
# Far less, together, than the supervisor lets a node stand still.
_UPDATES_SECONDS, _SYSTEM_SECONDS = 1.0, 3.0
_GBIT_PER_SECOND = 10.0  # of no account on one host


class WholeRun(NamedTuple):
    """A run, its yardsticks, and what was expected of it."""

    run: TimedRun
    limits: Limits
    naive_updates_per_second: float  # of the naive update, and nothing else
    naive_system_updates_per_second: float | None
    predicted_updates_per_second: float

    @property
    def over_naive(self) -> float:
        """Updates of the run for one of the naive update alone."""
        return self.run.updates_per_second / self.naive_updates_per_second

    @property
    def over_naive_system(self) -> float:
        """Updates of the run for one of the naive system."""
        assert self.naive_system_updates_per_second is not None
        return self.run.updates_per_second / self.naive_system_updates_per_second

    @property
    def efficiency(self) -> float:
        """Share of the machine's core time that went into bare updates and bare steps."""
        return core_time_efficiency(self.run, self.limits)

    def as_json(self) -> dict[str, Any]:
        """As plain dictionaries."""
        rest = {name: value for name, value in self._asdict().items() if name != "run"}
        return {**as_json(self.run), **rest, "limits": self.limits._asdict()}

    @property
    def plan_error(self) -> float:
        """How far the plan's prediction is off, as a share of what was measured."""
        return abs(self.predicted_updates_per_second / self.run.updates_per_second - 1.0)


def measure_run(config: Config, naive: NaiveSystem | None = None) -> WholeRun:
    """A whole run; with a naive system in its pauses, if there is one."""
    actor = measure_actor(config)
    costs = measure_costs(config, step=actor.step)
    calls = {
        "bare": make_bare_update(one_per_dispatch(config)),
        "naive": make_naive_update(one_per_dispatch(config)),
        "own": make_bare_update(config),
    }
    for call in calls.values():
        call()  # compiled now, not while the run stands still
    found: dict[str, list[Cost]] = {name: [] for name in calls}
    naive_rates: list[float] = []

    def in_pauses() -> None:
        for name, call in calls.items():
            found[name].append(mean_cost(call, seconds=_UPDATES_SECONDS))
        if naive is not None:
            naive_rates.append(naive.updates_in(_SYSTEM_SECONDS) / _SYSTEM_SECONDS)

    run = run_for(config, _RUN_SECONDS, in_pauses=in_pauses)
    mean = {
        name: Cost(*map(statistics.mean, zip(*each, strict=True))) for name, each in found.items()
    }
    own = mean["own"].over(config.learner.updates_per_dispatch)
    return WholeRun(
        run=run,
        limits=Limits(usable_cores(), *mean["bare"], actor.bare.core_ms),
        naive_updates_per_second=1e3 / mean["naive"].wall_ms,
        naive_system_updates_per_second=statistics.mean(naive_rates) if naive_rates else None,
        predicted_updates_per_second=_predicted(config, costs._replace(update=own)),
    )


def _predicted(config: Config, costs: Costs) -> float:
    return predict(config, costs, Hosts(1, usable_cores(), _GBIT_PER_SECOND)).updates_per_second


def main(networks: list[str]) -> None:
    """Prints what whole runs of some networks reach."""
    build.prepare_learner_process(paper_config(networks[0]))
    for network in networks:
        found = measure_run(paper_config(network))
        print(
            f"{network}: {found.run.updates_per_second:.1f} updates/s, "
            f"{found.over_naive:.2f} times the {found.naive_updates_per_second:.1f} of the naive "
            "update alone; "
            f"{found.predicted_updates_per_second:.1f} were predicted, off by "
            f"{found.plan_error:.2f}; core-time efficiency {found.efficiency:.2f}"
        )


if __name__ == "__main__":
    move_to_own_network()
    main(sys.argv[1:] or ["nature", "nips2013"])
