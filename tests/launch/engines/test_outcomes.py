"""How a local run ends, in exit codes and words."""

import re
import shlex

import pytest

from launch.cli import main as cli
from launch.engines import local
from launch.engines.ending import conclude
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
        (Outcome.FINISHED, {"interrupted": False}, 0, "vantage compare"),
        (Outcome.STOPPED, {"interrupted": False}, 0, "stopped; continue with"),
        (Outcome.STOPPED, {"interrupted": True}, 130, "stopped; continue with"),
        (Outcome.UNSAVED, {"interrupted": True}, 1, "the last checkpoint was not written"),
        (Outcome.UNSAVED, {"interrupted": False}, 1, "the last checkpoint was not written"),
        (Outcome.UNSAVED, {"interrupted": True, "come_back": True}, 75, "was not written"),
        (Outcome.KILLED, {"interrupted": True}, 1, "killed before its last checkpoints"),
        (Outcome.FAILED, {"interrupted": False}, 1, "the run failed; once that is mended"),
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


@pytest.mark.parametrize(
    ("outcome", "hints"),
    [
        (Outcome.FINISHED, ["watch", "eval", "compare"]),
        (Outcome.STOPPED, ["train"]),
        (Outcome.UNSAVED, ["train"]),
        (Outcome.KILLED, ["train"]),
        (Outcome.FAILED, ["train"]),
        (Outcome.HOPELESS, []),
        (Outcome.LOST, []),
    ],
)
def test_the_commands_to_go_on_with_are_ones_a_shell_takes(tmp_path, capsys, outcome, hints):
    root = tmp_path / "my run's {root}"
    conclude(outcome, root, StopSignals())
    said = "".join(capsys.readouterr())
    commands = [shlex.split(command) for command in re.findall("vantage [a-z]+ .*", said)]
    assert [words[1] for words in commands] == hints
    assert all(str(root) in words for words in commands)
