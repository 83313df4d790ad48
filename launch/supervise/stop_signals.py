"""Signals that ask a run, or a suite of runs, to stop."""

import os
import signal
from collections.abc import Callable

from launch.errors import ExitCode
from launch.terminal import say


class StopSignals:
    """Ctrl-C or SIGTERM once: stop in order. Ctrl-C again: kill. SIGUSR1: make room, come back."""

    def __init__(
        self,
        *,
        stopping: str = "stopping: draining and writing checkpoints (Ctrl-C again to kill)",
        killing: str = "killing the run",
        term_comes_back: bool = False,
    ) -> None:
        """Where `term_comes_back`, SIGTERM asks to make room too, as some schedulers do."""
        self._stopping, self._killing = stopping, killing
        makes_room = (signal.SIGUSR1, signal.SIGTERM) if term_comes_back else (signal.SIGUSR1,)
        self._makes_room = frozenset(makes_room)
        self.requested = False
        self._come_back = False

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a process that these signals stopped."""
        return ExitCode.COME_BACK if self._come_back else ExitCode.INTERRUPTED

    @property
    def exit_code_unsaved(self) -> ExitCode:
        """The same, when the last checkpoint could not be written."""
        # Whoever was to come back still is: from the checkpoint before.
        return ExitCode.COME_BACK if self._come_back else ExitCode.FAILED

    def install(self, kill: Callable[[], None]) -> None:
        """Takes over the signals of this process."""

        def handle(number: int, frame: object) -> None:
            del frame
            # Before anything is said: the next signal may come meanwhile.
            is_first, self.requested = not self.requested, True
            if is_first:
                self._come_back = number in self._makes_room
                _say(self._stopping)
            elif number == signal.SIGINT:
                # Only from a terminal: schedulers repeat SIGTERM, and kill in their own time.
                _say(self._killing)
                kill()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, handle)


def _say(message: str) -> None:
    """Says it although the signal may have come in the middle of a print, which does not nest."""
    try:
        say(message)
    except RuntimeError:
        os.write(1, f"{message}\n".encode())
