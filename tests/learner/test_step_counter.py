"""The global step count over replay servers that come and go."""

from hypothesis import given, settings
from hypothesis import strategies as st

from learner.step_counter import StepCounter


def test_growth_adds_up() -> None:
    counter = StepCounter()
    assert [counter.observe(n) for n in (0, 10, 10, 25)] == [0, 10, 10, 25]


def test_a_replay_that_restarts_empty_goes_on_from_the_old_total() -> None:
    counter = StepCounter()
    assert [counter.observe(n) for n in (100, 0, 7, 20)] == [100, 100, 107, 120]


def test_what_a_replay_restores_is_not_counted_again() -> None:
    counter = StepCounter()
    assert [counter.observe(n) for n in (100, 80, 90, 130)] == [100, 100, 110, 150]


def test_a_restored_learner_counts_what_went_on_without_it() -> None:
    counter = StepCounter(total=500, last_inserts=100)
    assert counter.observe(160) == 560


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000)))
def test_no_series_of_counts_moves_the_total_back(inserts: list[int]) -> None:
    counter = StepCounter()
    totals = [counter.observe(n) for n in inserts]
    assert totals == sorted(totals)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), min_size=1), min_size=1))
def test_every_step_counts_once_if_each_server_is_seen_before_its_first(
    growths: list[list[int]],
) -> None:
    counter, expected = StepCounter(), 0
    for server in growths:
        counter.observe(0)
        for grown in range(len(server)):
            counter.observe(sum(server[: grown + 1]))
        expected += sum(server)
    assert counter.total == expected
