"""What the supervisor asks of a node's process, and of whatever starts one."""

from collections.abc import Mapping
from typing import Protocol


class Process(Protocol):
    """What is asked of a node's process: a program's (`subprocess.Popen`), or a fork's."""

    @property
    def pid(self) -> int | None: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def send_signal(self, number: int, /) -> None: ...


class Start(Protocol):
    """Starts a node's process, in a session of its own and bound to die with this one.

    The variables are for this start alone, its log takes all that it says, and its heart beats into
    a pipe.
    """

    def __call__(self, *, variables: Mapping[str, str], log: int, pipe: int) -> Process: ...
