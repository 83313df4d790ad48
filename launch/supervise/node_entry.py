"""Runs one node of a run in this process.

`python -m launch.supervise.node_entry RUN_DIR ROLE INDEX`: the program is built anew from the
run's config, so nothing is ever unpickled. Launchpad resolves addresses when a node starts; ours
are read from the run directory.
"""

import faulthandler
import logging
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from absl import flags
from launchpad import address as lp_address
from launchpad import context as lp_context
from launchpad.launch import worker_manager

from launch.errors import ExitCode, GiveUpError
from launch.program import make_program
from launch.run_dir import RunDir
from launch.supervise.node_process import DUMP_SIGNAL
from reverb_server.client import OthersAwayError

_ADDRESS_SECONDS = 60.0
_MOVED_SECONDS = 2.0  # between two looks at where replay is

Replaced = Mapping[str, Callable[..., None]]  # what roles run instead, see `make_program`


class RunDirAddress(lp_address.AbstractAddressBuilder):
    """host:port of the replay server, as the run directory says at the moment of asking."""

    def __init__(self, run_dir: RunDir):
        self._run_dir = run_dir
        self._built: str | None = None

    def build(self) -> str:
        """Reads the address, waiting a while for it to appear."""
        deadline = time.monotonic() + _ADDRESS_SECONDS
        while (address := self._run_dir.read_address()) is None:
            if time.monotonic() > deadline:
                raise OthersAwayError(
                    f"no address in {self._run_dir.address_file} after {_ADDRESS_SECONDS:.0f} s; "
                    "is the learner's host up?"
                )
            time.sleep(0.2)
        self._built = address
        return address

    def moved_to(self) -> str | None:
        """The new address, if there is another one than that in use."""
        address = self._run_dir.read_address()
        return None if self._built is None or address == self._built else address


def run_node(run_dir: RunDir, role: str, index: int, replaced: Replaced | None = None) -> None:
    """Runs the node until it ends or this process is told to stop (SIGTERM)."""
    run_dir.check_trusted()
    program = make_program(run_dir.load_config(), run_dir.root, replaced)
    replay_address = RunDirAddress(run_dir)
    for node in program.get_all_nodes():
        node._initialize_context(lp_context.LaunchType.LOCAL_MULTI_PROCESSING, launch_config=None)
        for address in node.addresses:
            address.bind(replay_address)
    # Gives lp.stop_event() to this thread and sets it on SIGTERM. The supervisor counts the
    # seconds until it kills; Launchpad must not do so too, hence the -1.
    flags.FLAGS(["vantage", "--lp_termination_notice_secs=-1"])
    manager = worker_manager.WorkerManager(register_in_thread=True, kill_main_thread=False)
    if role == "actor":
        threading.Thread(target=_leave_when_moved, args=(replay_address,), daemon=True).start()
    program.groups[role][index].function()
    del manager


def _leave_when_moved(address: RunDirAddress) -> None:
    """Ends this process when the learner's host came back elsewhere; its next start finds it there.

    gRPC would go on looking for the old one.
    """
    while (new := address.moved_to()) is None:
        time.sleep(_MOVED_SECONDS)
    logging.warning("replay is at %s now; starting again", new)
    _exit(ExitCode.COME_BACK)


def main(argv: list[str], replaced: Replaced | None = None) -> None:
    """Entry point of the process."""
    # Written without Python's help, so that a process that hangs can still say where.
    faulthandler.register(DUMP_SIGNAL, all_threads=True)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    _, root, role, index = argv
    try:
        run_node(RunDir(pathlib.Path(root)), role, int(index), replaced)
    except OthersAwayError as error:
        logging.warning("%s", error)
        _exit(ExitCode.COME_BACK)
    except GiveUpError as error:
        # On a line of its own, which the supervisor quotes.
        logging.error("%s-%s gives up:\n%s", role, index, error)
        _exit(ExitCode.GIVE_UP)
    except BaseException:
        logging.exception("%s-%s failed", role, index)
        _exit(1)
    _exit(0)


def _exit(code: int) -> NoReturn:
    """Ends the process without destructors: Reverb's wait for a server that may be gone."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv)
