"""The naive system is a system: it plays, samples, updates, and stands still when told to."""

from benchmarks.naive_system import naive_system
from tests.launch.tiny_run import tiny_config


def test_the_naive_system_learns_when_it_is_let_go() -> None:
    with naive_system(tiny_config(), actors=1) as system:
        before = system.updates.value
        assert before > 0
        while system.updates_in(0.2) == 0:
            pass
        assert system.updates.value > before
        assert all(process.status() == "stopped" for process in system.processes)
    assert not any(process.is_running() for process in system.processes)
