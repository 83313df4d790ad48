"""How runs that go on at a time share the cores."""

import hypothesis
from hypothesis import strategies as st

from launch.suite.core_shares import CoreShares


@hypothesis.given(cores=st.sets(st.integers(0, 500), min_size=1, max_size=70), data=st.data())
def test_every_core_belongs_to_one_run_and_shares_differ_by_one_core_at_most(cores, data):
    runs = data.draw(st.integers(1, len(cores)))
    shares = CoreShares(cores, runs=runs)
    taken = [shares.take() for _ in range(runs)]
    assert sorted(core for share in taken for core in share) == sorted(cores)
    sizes = [len(share) for share in taken]
    assert max(sizes) - min(sizes) <= 1


def test_a_run_that_starts_gets_the_cores_of_one_that_ended():
    shares = CoreShares({0, 1, 2, 3}, runs=2)
    first, second = shares.take(), shares.take()
    assert (first, second) == ({0, 1}, {2, 3})
    shares.give_back(second)
    assert shares.take() == second


def test_with_fewer_cores_than_runs_all_share_all():
    shares = CoreShares({4, 7}, runs=3)
    assert [shares.take() for _ in range(3)] == [{4, 7}] * 3
