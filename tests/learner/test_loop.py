"""The learner's loop in a world of lambdas: time is a number, replay a script."""

import dataclasses
import errno
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from learner.divergence import DivergedError
from learner.loop import Batch, Edges, Periods, Progress, run_learner
from learner.step_counter import StepCounter
from learner.update import LearnerState, UpdateResult

NEVER = 1e9
ENDLESS = 10**9


class Counts(NamedTuple):
    """What replay has counted."""

    inserts: int
    samples: int


@dataclasses.dataclass
class World:
    """Everything outside the loop. Each update takes a second, and actors insert all the time."""

    inserts_per_second: float = 10.0
    arrival_seconds: float = 0.0  # how long a batch lets the loop wait
    stop_at_seconds: float = NEVER
    counts_script: Iterator[int | None] | None = None
    prioritized: bool = False
    disk_full_until: float = 0.0
    write_seconds: float = 0.0  # how long a checkpoint is on its way to disk
    diverges_at: float = NEVER

    def __post_init__(self) -> None:
        self.now = 0.0
        self.tape: list[tuple[str, Any]] = []
        self.under_way: Written | None = None
        self.start_edge = self.start_save

    def clock(self) -> float:
        assert self.now < 1000.0, "the loop does not end"
        return self.now

    def next_batch(self, timeout_seconds: float) -> Batch | None:
        self.now += min(timeout_seconds, self.arrival_seconds)
        if timeout_seconds < self.arrival_seconds:
            return None
        return Batch(None, np.ones(2), np.arange(2, dtype=np.uint64))  # type: ignore[arg-type]

    def update(self, state: LearnerState, batch: Any, weights: Any) -> Any:
        self.now += 1.0
        updates = int(state.updates) + self.updates_per_call
        self.tape.append(("update", updates))
        scalars = {"loss": jnp.float32(updates / 2), "grad_norm": jnp.float32(1.0)}
        if self.now >= self.diverges_at:
            scalars["grad_norm"] = jnp.float32(np.nan)
        return state._replace(updates=jnp.int32(updates)), UpdateResult(jnp.ones(2), scalars)

    def start_save(self, state: LearnerState, steps: StepCounter) -> Future[int]:
        content = int(state.updates), steps.total
        self.tape.append(("begin", content))

        def write() -> int:
            if self.now < self.disk_full_until:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.tape.append(("save", content))
            return 1000

        self.under_way = Written(self, write, after=self.under_way)
        return self.under_way

    def save_and_wait(self, state: LearnerState, steps: StepCounter) -> int:
        return self.start_edge(state, steps).result(60.0)

    def publish(self, state: LearnerState, progress: Progress) -> None:
        assert progress.updates == int(state.updates)
        self.tape.append(("publish", progress))

    def counts(self) -> Counts | None:
        if self.counts_script is not None:
            inserts = next(self.counts_script)
        else:
            inserts = int(self.now * self.inserts_per_second)
        return None if inserts is None else Counts(inserts, samples=8 * inserts)

    def run(self, periods: Periods, steps: StepCounter, updates: int = 0) -> LearnerState:
        self.updates_per_call = periods.updates_per_batch
        edges = Edges(
            next_batch=self.next_batch,
            read_counts=self.counts,
            publish=self.publish,
            report=lambda row: self.tape.append(("report", row)),
            start_save=self.start_edge,
            save_and_wait=self.save_and_wait,
            update_priorities=(
                (lambda keys, td: self.tape.append(("priorities", (keys.tolist(), td.tolist()))))
                if self.prioritized
                else None
            ),
            should_stop=lambda: self.now >= self.stop_at_seconds,
        )
        return run_learner(
            state=LearnerState({}, {}, (), jnp.int32(updates)),
            update=self.update,
            steps=steps,
            edges=edges,
            periods=periods,
            clock=self.clock,
        )

    def all(self, kind: str) -> list[Any]:
        return [value for name, value in self.tape if name == kind]


class Written(Future[int]):
    """A checkpoint that is on disk some seconds later; whoever needs it waits."""

    def __init__(self, world: World, write: Callable[[], int], after: "Written | None"):
        super().__init__()
        self.world, self.write = world, write
        begins_at = world.now if after is None else max(world.now, after.done_at)
        self.done_at = begins_at + world.write_seconds

    def done(self) -> bool:
        return self.world.now >= self.done_at

    def result(self, timeout: float | None = None) -> int:
        assert timeout is not None or self.done(), "a wait without bound"
        self.world.now = max(self.world.now, self.done_at)
        return self.write()


class Device:
    """Computes for a second after an update was dispatched; whoever needs the result waits."""

    def __init__(self, world: World):
        self.world, self.done_at = world, 0.0

    def update(self, state: LearnerState, batch: Any, weights: Any) -> Any:
        self.done_at = self.world.now + 1.0
        state = state._replace(updates=state.updates + 1)
        return state, UpdateResult(td=self, scalars={})  # type: ignore[arg-type]

    def block_until_ready(self) -> None:
        self.world.now = max(self.world.now, self.done_at)


def periods(**changes: Any) -> Periods:
    values = {
        "total_steps": ENDLESS,
        "warmup_steps": 0,
        "publish_updates": 5,
        "report_seconds": NEVER,
        "save_seconds": NEVER,
    }
    return Periods(**(values | changes))


def test_parameters_are_published_at_the_start_every_k_updates_and_at_the_end() -> None:
    world = World(stop_at_seconds=12)
    world.run(periods(), StepCounter())
    assert world.all("publish") == [
        (0, 0, False),
        (5, 50, False),
        (10, 100, False),
        (12, 120, False),
    ]


def test_k_counts_from_the_first_update_of_all_not_of_this_start() -> None:
    world = World(stop_at_seconds=4)
    world.run(periods(), StepCounter(), updates=7)
    assert [updates for updates, _, _ in world.all("publish")] == [7, 10, 11]


def test_k_may_fall_within_the_updates_of_one_call() -> None:
    world = World(stop_at_seconds=4)
    world.run(periods(updates_per_batch=3), StepCounter())
    # Calls end at 3, 6, 9 and 12 updates.
    assert [updates for updates, _, _ in world.all("publish")] == [0, 6, 12, 12]


def test_while_it_starves_it_publishes_each_time_it_has_waited() -> None:
    world = World(arrival_seconds=NEVER, stop_at_seconds=3)
    world.run(periods(idle_seconds=1.0), StepCounter())
    assert world.all("update") == []
    assert world.all("publish") == [
        (0, 0, False),
        (0, 10, False),
        (0, 20, False),
        (0, 30, False),
        (0, 30, False),
    ]


def test_it_finishes_at_the_total_and_says_so_last() -> None:
    world = World()
    state = world.run(periods(total_steps=95), StepCounter())
    assert int(state.updates) == 10
    assert world.all("publish")[-1] == (10, 100, True)
    assert world.all("save") == [(10, 100)]


def test_near_the_end_every_update_may_be_the_last() -> None:
    world = World()
    state = world.run(periods(total_steps=65, closing_steps=20), StepCounter())
    assert int(state.updates) == 7
    assert world.all("publish")[-2:] == [(5, 50, False), (7, 70, True)]


@pytest.mark.parametrize("publish_between", [True, False])
def test_a_starving_learner_that_asks_at_every_update_finishes_too(publish_between: bool) -> None:
    world = World(arrival_seconds=NEVER)
    world.run(
        periods(total_steps=20, closing_steps=20, publish_between=publish_between), StepCounter()
    )
    assert world.all("publish")[-1] == (0, 20, True)


def test_a_starving_learner_finishes_too() -> None:
    world = World(arrival_seconds=NEVER)
    world.run(periods(total_steps=20, idle_seconds=1.0), StepCounter())
    assert world.all("update") == []
    assert world.all("publish")[-1] == (0, 20, True)


def test_a_run_that_was_already_finished_learns_no_more() -> None:
    world = World()
    world.run(periods(total_steps=100), StepCounter(total=100), updates=3)
    assert world.all("update") == []
    assert world.all("publish")[-1] == (3, 100, True)


def test_when_a_report_falls_due_has_no_say_in_when_training_ends() -> None:
    often, never = World(), World()
    often.run(periods(total_steps=95, report_seconds=1.0), StepCounter())
    never.run(periods(total_steps=95), StepCounter())
    assert often.all("update") == never.all("update")


def test_a_stop_is_heard_before_the_next_update_and_is_no_finish() -> None:
    world = World(stop_at_seconds=3)
    state = world.run(periods(), StepCounter())
    assert int(state.updates) == 3
    assert world.all("publish")[-1] == (3, 30, False)
    assert world.all("save") == [(3, 30)]
    assert len(world.all("report")) == 1


def test_a_stop_asked_before_the_start_still_saves() -> None:
    world = World(stop_at_seconds=0)
    world.run(periods(), StepCounter())
    assert (world.all("update"), world.all("save")) == ([], [(0, 0)])


def test_reports_say_how_fast_and_how_well_it_learns() -> None:
    world = World(stop_at_seconds=20)
    world.run(periods(report_seconds=10.0, warmup_steps=50), StepCounter())
    first, second = world.all("report")[:2]
    assert first == {
        "steps": 100,
        "updates": 10,
        "updates_per_second": 1.0,
        "data_wait_fraction": 0.0,
        "samples_per_insert": 800 / 50,
        "loss": 5.0,
        "grad_norm": 1.0,
    }
    assert (second["updates"], second["updates_per_second"]) == (20, 1.0)


def test_the_wait_for_data_is_told_as_a_fraction_of_the_time() -> None:
    """A quarter of a second for the batch, a second for the update."""
    world = World(arrival_seconds=0.25, stop_at_seconds=20)
    world.run(periods(report_seconds=10.0), StepCounter())
    first, second = world.all("report")[:2]
    assert first["data_wait_fraction"] == second["data_wait_fraction"] == pytest.approx(0.2)
    assert (first["updates"], first["updates_per_second"]) == (8, pytest.approx(0.8))
    starving = World(arrival_seconds=NEVER, stop_at_seconds=5)
    starving.run(periods(), StepCounter())
    assert starving.all("report")[0]["data_wait_fraction"] == 1.0


def test_a_wait_counts_from_when_the_device_is_done() -> None:
    """An update is dispatched in no time and computed while the loop asks for the next batch."""
    world = World(arrival_seconds=0.25, stop_at_seconds=10)
    device = Device(world)
    world.update = device.update  # type: ignore[method-assign]
    world.run(periods(), StepCounter())
    # Nine batches; the last update is dispatched after 10.25 seconds, and done a second later.
    assert world.all("report")[0]["data_wait_fraction"] == pytest.approx(9 * 0.25 / 11.25)


def test_before_the_warm_up_is_over_there_is_no_ratio_to_report() -> None:
    world = World(stop_at_seconds=5)
    world.run(periods(warmup_steps=50), StepCounter())
    assert "samples_per_insert" not in world.all("report")[0]


def test_checkpoints_are_written_by_the_clock_and_once_more_at_the_end() -> None:
    world = World(stop_at_seconds=25)
    world.run(periods(save_seconds=10.0), StepCounter())
    assert world.all("save") == [(10, 100), (20, 200), (25, 250)]


def test_updates_go_on_while_a_checkpoint_is_written() -> None:
    world = World(stop_at_seconds=25, write_seconds=3.5)
    world.run(periods(save_seconds=10.0), StepCounter())
    assert world.all("update") == list(range(1, 26))
    assert world.tape.index(("save", (10, 100))) > world.tape.index(("update", 13))


def test_a_checkpoint_waits_for_the_one_under_way_and_the_last_is_waited_for() -> None:
    world = World(stop_at_seconds=25, write_seconds=12.0)
    world.run(periods(save_seconds=5.0), StepCounter())
    assert world.all("begin") == [(5, 50), (20, 200), (25, 250)]
    assert sorted(world.all("save")) == world.all("begin")
    # The one under way at the end takes until 32, the last one 12 seconds more.
    assert world.now == 44.0


def test_a_report_says_what_a_checkpoint_cost_once_it_is_on_disk() -> None:
    world = World(stop_at_seconds=17, write_seconds=3.5)

    def slow_to_begin(state: LearnerState, steps: StepCounter) -> Future[int]:
        world.now += 0.25
        return world.start_save(state, steps)

    world.start_edge = slow_to_begin
    world.run(periods(save_seconds=10.0, report_seconds=1.0), StepCounter())
    told = [
        (row["updates"], row["checkpoint_seconds"], row["checkpoint_bytes"])
        for row in world.all("report")
        if "checkpoint_seconds" in row
    ]
    # The learner itself lost a quarter of a second each time; of the last it waited for the disk.
    assert told == [(15, 0.25, 1000), (17, 3.75, 1000)]


def test_an_error_while_a_checkpoint_is_written_is_not_swallowed() -> None:
    world = World(stop_at_seconds=40.0)

    def broken(state: LearnerState, steps: StepCounter) -> Future[int]:
        failed: Future[int] = Future()
        failed.set_exception(ValueError("no such array"))
        return failed

    world.start_edge = broken
    with pytest.raises(ValueError, match="no such array"):
        world.run(periods(save_seconds=10.0), StepCounter())
    assert world.now == 11.0


def test_a_loss_that_is_not_finite_ends_the_loop_without_a_checkpoint() -> None:
    world = World(diverges_at=12.0)
    with pytest.raises(DivergedError, match="after update 20"):
        world.run(periods(save_seconds=10.0, report_seconds=10.0), StepCounter())
    assert world.all("save") == [(10, 100)]
    assert [row["updates"] for row in world.all("report")] == [10]


def test_priorities_go_back_with_the_keys_of_their_batch() -> None:
    world = World(stop_at_seconds=2, prioritized=True)
    world.run(periods(), StepCounter())
    assert world.all("priorities") == [([0, 1], [1.0, 1.0])] * 2


def test_steps_never_go_back_when_replay_restarts_or_does_not_answer() -> None:
    # Grows to 50, is away, comes back empty, is away, comes back from a checkpoint.
    script = [10, 50, None, 0, 30, None, 20, 25]
    world = World(counts_script=iter(script), stop_at_seconds=len(script) - 2)
    steps = StepCounter()
    world.run(periods(publish_updates=1), steps)
    totals = [published for _, published, _ in world.all("publish")]
    assert totals == [10, 50, 50, 50, 80, 80, 80, 85]
    assert world.all("save")[-1][1] == steps.total == totals[-1]


def test_an_error_in_an_edge_is_not_swallowed() -> None:
    world = World()

    def broken(timeout_seconds: float) -> Batch:
        raise ConnectionError("replay is gone")

    world.next_batch = broken  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="replay is gone"):
        world.run(periods(), StepCounter())
    assert world.all("save") == []


def test_a_full_disk_costs_a_checkpoint_and_not_the_run() -> None:
    world = World(stop_at_seconds=40.0)
    world.disk_full_until = 15.0
    world.run(periods(save_seconds=10.0, report_seconds=5.0), StepCounter())
    failed = [row.get("checkpoint_failed") for row in world.all("report")]
    assert failed.count(1) == 1
    assert len(world.all("save")) == 4  # at 20, 30, 40 and the last
    sizes = [row["checkpoint_bytes"] for row in world.all("report") if "checkpoint_bytes" in row]
    assert sizes and set(sizes) == {1000}


def test_the_last_checkpoint_has_to_be_written() -> None:
    world = World(stop_at_seconds=3.0)
    world.disk_full_until = 1e9
    with pytest.raises(OSError, match="No space left"):
        world.run(periods(), StepCounter())


def test_without_publishing_between_only_the_schedule_publishes() -> None:
    world = World(stop_at_seconds=12.0)
    world.run(periods(publish_between=False), StepCounter())
    assert [updates for updates, _, _ in world.all("publish")] == [5, 10]
