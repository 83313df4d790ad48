"""How a run on this machine ends: its last words, what to do next, and its exit code."""

import pathlib
import shlex
from collections.abc import Callable
from typing import NamedTuple

from launch.errors import ExitCode
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome
from launch.terminal import complain, say

_RESUME = "continue with: vantage train --run-dir {root} --resume"
_NEXT = (
    "finished; see {root}",
    "  see it play:   vantage watch {root} --overlay --out {video}",
    "  score it:      vantage eval {root}",
    "  its curve:     vantage compare {root}",
)
UNSAVED_TEXT = (
    "stopped, but the last checkpoint was not written (is the disk full?); the one before is kept"
)
KILLED_TEXT = "killed before its last checkpoints were written; those before are kept"


class _Ending(NamedTuple):
    """How a run that ended so says it, and with which code."""

    say: Callable[[str], None]
    lines: tuple[str, ...]
    code: Callable[[StopSignals], ExitCode]


def _failed(stop: StopSignals) -> ExitCode:
    del stop
    return ExitCode.FAILED


_ENDINGS = {
    Outcome.FINISHED: _Ending(say, _NEXT, lambda stop: ExitCode.DONE),
    Outcome.STOPPED: _Ending(
        say,
        (f"stopped; {_RESUME}",),
        lambda stop: stop.exit_code if stop.requested else ExitCode.DONE,
    ),
    Outcome.UNSAVED: _Ending(
        complain, (f"{UNSAVED_TEXT}; {_RESUME}",), lambda stop: stop.exit_code_unsaved
    ),
    Outcome.KILLED: _Ending(complain, (f"{KILLED_TEXT}; {_RESUME}",), _failed),
    Outcome.FAILED: _Ending(
        complain, (f"the run failed; once that is mended, {_RESUME}",), _failed
    ),
    Outcome.HOPELESS: _Ending(
        complain,
        ("the run failed for good, as it would again; {root} keeps what it saved",),
        _failed,
    ),
    Outcome.LOST: _Ending(
        complain, ("run directory {root} was deleted or moved while the run was alive",), _failed
    ),
}


def conclude(outcome: Outcome, root: pathlib.Path, stop: StopSignals) -> ExitCode:
    """Says how the run ended, with commands that a shell takes as they are."""
    ending = _ENDINGS[outcome]
    video = f"{root.absolute().name}.mp4"
    for line in ending.lines:
        ending.say(line.format(root=shlex.quote(str(root)), video=shlex.quote(video)))
    return ending.code(stop)
