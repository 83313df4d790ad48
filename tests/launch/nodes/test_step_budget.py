"""Actors that share the steps left to a run, in a world that counts them late."""

import dataclasses
import itertools

import numpy as np
import pytest

from launch.nodes.step_budget import Published, StepBudget


@dataclasses.dataclass
class World:
    """A replay server that counts inserts, and a learner that counts on over its restarts."""

    total_steps: int
    item_steps: int = 4
    inserts: int = 0
    counted: int = 0  # by the learner
    last_inserts: int = 0
    answers: bool = True

    def __post_init__(self) -> None:
        self.published = Published(0, 0)

    def publish(self) -> None:
        self.counted += max(self.inserts - self.last_inserts, 0)
        self.last_inserts = self.inserts
        self.published = Published(self.published.version + 1, self.counted)


class FakeActor:
    """Writes items, of which the server has not got the newest."""

    def __init__(self, world: World, num_actors: int, pending_items: int):
        self.world, self.pending, self.most_pending = world, 0, pending_items
        self.budget = StepBudget(
            total_steps=world.total_steps,
            num_actors=num_actors,
            pending_steps=world.item_steps * (pending_items + 1),
            read_inserts=lambda: world.inserts if world.answers else None,
            newest=lambda: world.published,
            settle=self.settle,
            clock=itertools.count(step=0.001).__next__,
        )

    def settle(self) -> None:
        self.world.inserts += self.pending
        self.pending = 0

    def write(self) -> bool:
        if not self.budget.take(self.world.item_steps):
            return False
        self.pending += self.world.item_steps
        if self.pending > self.world.item_steps * self.most_pending:
            self.settle()
        return True


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("num_actors", "total_steps"), [(1, 500), (2, 2000), (16, 20_000)])
def test_actors_insert_the_steps_of_the_run_and_hardly_more(seed, num_actors, total_steps):
    rng = np.random.default_rng(seed)
    world = World(total_steps)
    actors = [FakeActor(world, num_actors, pending_items=20) for _ in range(num_actors)]
    for rounds in range(100 * total_steps):
        if world.counted >= total_steps:
            break
        writes = [actor.write() for actor in actors if rng.random() < 0.5]
        if rounds % 100 == 0 or (writes and not any(writes)):
            world.publish()
    assert total_steps <= world.counted == world.inserts
    under_way = sum(actor.pending for actor in actors)
    assert world.counted + under_way <= 1.01 * total_steps


def test_it_looks_at_the_count_now_and_then_only():
    world, looks = World(1_000_000), 0
    actor = FakeActor(world, 1, pending_items=20)
    read = actor.budget._read_inserts

    def counting() -> int | None:
        nonlocal looks
        looks += 1
        return read()

    actor.budget._read_inserts = counting
    actor.budget._clock = lambda: 0.0  # it looks when its share is used up, and only then
    while actor.write():
        world.publish()
    assert world.inserts == 1_000_000
    assert looks < 100


def test_a_replay_server_that_starts_anew_does_not_end_the_run_early():
    world = World(1000)
    actor = FakeActor(world, 1, pending_items=0)
    for _ in range(100):
        assert actor.write()
    actor.settle()
    world.publish()
    world.inserts = 0  # lost, but learned from
    for _ in range(150):
        assert actor.write()
    for _ in range(3):  # held back too early at first: it knows better with the next version
        world.publish()
        while actor.write():
            pass
    world.publish()
    assert 1000 <= world.counted <= 1000 + world.item_steps


def test_a_resumed_run_goes_on_from_what_the_learner_counted():
    world = World(1000, counted=900)
    world.publish()
    actor = FakeActor(world, 1, pending_items=0)
    while actor.write():
        pass
    assert world.inserts == 100


def test_nothing_is_held_back_while_the_server_does_not_answer():
    world = World(100, answers=False)
    actor = FakeActor(world, 1, pending_items=0)
    assert all(actor.write() for _ in range(100))


def test_what_a_stranger_published_holds_nobody_back_for_long():
    world = World(1000)
    actor = FakeActor(world, 1, pending_items=0)
    assert actor.write()
    world.published = Published(7, 10**6)
    while actor.write():  # until it looks
        pass
    assert world.inserts < 1000
    world.publish()  # the learner's own
    assert actor.write()
