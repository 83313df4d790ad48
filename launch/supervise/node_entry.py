"""Runs one node of a run in this process.

`python -m launch.supervise.node_entry RUN_DIR ROLE INDEX`: the program is built anew from the
run's config, so nothing is ever unpickled. Launchpad resolves addresses when a node starts; ours
are given by the supervisor.
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

import reverb
from absl import flags
from launchpad import address as lp_address
from launchpad import context as lp_context
from launchpad.launch import worker_manager

from launch.errors import ExitCode, GiveUpError
from launch.nodes.host_heartbeat import tell_of_host
from launch.program import make_program
from launch.run_dir import RunDir
from launch.supervise.node_log import set_up_log
from launch.supervise.node_process import DUMP_SIGNAL, HOST_VARIABLE, REPLAY_VARIABLE
from reverb_server.client import OthersAwayError

_MOVED_SECONDS = 2.0  # between two looks at where replay is
Replaced = Mapping[str, Callable[..., None]]  # what roles run instead, see `make_program`


class GivenAddress(lp_address.AbstractAddressBuilder):
    """Where replay is, as the supervisor of this host says."""

    def build(self) -> str:
        """The address in the environment."""
        return os.environ[REPLAY_VARIABLE]


def run_node(run_dir: RunDir, role: str, index: int, replaced: Replaced | None = None) -> None:
    """Runs the node until it ends or this process is told to stop (SIGTERM)."""
    run_dir.check_trusted()
    program = make_program(run_dir.load_config(), run_dir.root, replaced)
    replay_address = GivenAddress()
    for node in program.get_all_nodes():
        node._initialize_context(lp_context.LaunchType.LOCAL_MULTI_PROCESSING, launch_config=None)
        for address in node.addresses:
            address.bind(replay_address)
    # Gives lp.stop_event() to this thread and sets it on SIGTERM. The supervisor counts the
    # seconds until it kills; Launchpad must not do so too, hence the -1.
    flags.FLAGS(["vantage", "--lp_termination_notice_secs=-1"])
    manager = worker_manager.WorkerManager(register_in_thread=True, kill_main_thread=False)
    if role == "actor":
        threading.Thread(target=_leave_when_moved, args=(run_dir,), daemon=True).start()
        _tell_of_host(index)
    program.groups[role][index].function()
    del manager


def _tell_of_host(index: int) -> None:
    """On a host that shares no file system with the learner's, tells how it is."""
    told = os.environ.get(HOST_VARIABLE)
    if told is not None:
        host, _, status_file = told.partition(" ")
        client = reverb.Client(os.environ[REPLAY_VARIABLE])
        arguments = (int(host), pathlib.Path(status_file), index, client)
        threading.Thread(target=tell_of_host, args=arguments, daemon=True).start()


def _leave_when_moved(run_dir: RunDir) -> None:
    """Ends this process when the learner's host came back elsewhere: its next start connects anew.

    gRPC itself waits ever longer before it tries again.
    """
    known = run_dir.read_address()
    while (new := run_dir.read_address()) in (None, known):
        time.sleep(_MOVED_SECONDS)
    logging.warning("replay is at %s now; starting again", new)
    _exit(ExitCode.COME_BACK)


def main(argv: list[str], replaced: Replaced | None = None) -> None:
    """Entry point of the process."""
    # Written without Python's help, so that a process that hangs can still say where.
    faulthandler.register(DUMP_SIGNAL, all_threads=True)
    set_up_log()
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
