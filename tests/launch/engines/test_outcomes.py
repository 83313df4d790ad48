"""How a local run ends, in exit codes and words."""

import pytest

from launch.cli import main as cli
from launch.engines import local
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome


def end_with(outcome: Outcome, *, interrupted: bool, come_back: bool = False):
    """A stand-in for all the nodes, with an end of its own."""

    def supervise_nodes(*args: object, stop: StopSignals, **options: object) -> Outcome:
        stop.requested, stop._come_back = interrupted, come_back
        return outcome

    return supervise_nodes


@pytest.mark.parametrize(
    ("outcome", "signals", "code", "said"),
    [
        (Outcome.FINISHED, {"interrupted": False}, 0, "finished"),
        (Outcome.STOPPED, {"interrupted": False}, 0, "stopped; continue with"),
        (Outcome.STOPPED, {"interrupted": True}, 130, "stopped; continue with"),
        (Outcome.UNSAVED, {"interrupted": True}, 1, "the last checkpoint was not written"),
        (Outcome.UNSAVED, {"interrupted": False}, 1, "the last checkpoint was not written"),
        (Outcome.UNSAVED, {"interrupted": True, "come_back": True}, 75, "was not written"),
        (Outcome.FAILED, {"interrupted": False}, 1, "the run failed; continue with"),
        (Outcome.HOPELESS, {"interrupted": False}, 1, "the run failed for good"),
        (Outcome.LOST, {"interrupted": False}, 1, "was deleted or moved"),
    ],
)
def test_an_outcome_has_its_exit_code_and_one_last_line(
    tmp_path, monkeypatch, capsys, outcome, signals, code, said
):
    monkeypatch.setattr(local, "supervise_nodes", end_with(outcome, **signals))
    assert cli.run(["train", "--preset=cpu", f"--run-dir={tmp_path / 'run'}"]) == code
    out, error = capsys.readouterr()
    assert said in (error or out).splitlines()[-1]
