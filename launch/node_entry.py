"""Runs one node of a run in this process: `python -m launch.node_entry RUN_DIR ROLE INDEX`.

The program is built anew from the run's config, so nothing is ever unpickled. Launchpad resolves
addresses when a node starts; ours are read from the run directory.
"""

import logging
import os
import pathlib
import sys
import time
from typing import NoReturn

from absl import flags
from launchpad import address as lp_address
from launchpad import context as lp_context
from launchpad.launch import worker_manager

from launch.program import make_program
from launch.run_dir import RunDir

_ADDRESS_SECONDS = 60.0


class RunDirAddress(lp_address.AbstractAddressBuilder):
    """host:port of the replay server, as the run directory says at the moment of asking."""

    def __init__(self, run_dir: RunDir):
        self._file = run_dir.address_file

    def build(self) -> str:
        """Reads the address, waiting a while for it to appear."""
        deadline = time.monotonic() + _ADDRESS_SECONDS
        while True:
            try:
                return self._file.read_text().strip()
            except FileNotFoundError:
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"no address in {self._file} after {_ADDRESS_SECONDS:.0f} s; "
                        "is the learner's host up?"
                    ) from None
                time.sleep(0.2)


def run_node(run_dir: RunDir, role: str, index: int) -> None:
    """Runs the node until it ends or this process is told to stop (SIGTERM)."""
    program = make_program(run_dir.load_config(), run_dir.root)
    for node in program.get_all_nodes():
        node._initialize_context(lp_context.LaunchType.LOCAL_MULTI_PROCESSING, launch_config=None)
        for address in node.addresses:
            address.bind(RunDirAddress(run_dir))
    # Gives lp.stop_event() to this thread and sets it on SIGTERM. The supervisor counts the
    # seconds until it kills; Launchpad must not do so too, hence the -1.
    flags.FLAGS(["vantage", "--lp_termination_notice_secs=-1"])
    manager = worker_manager.WorkerManager(register_in_thread=True, kill_main_thread=False)
    program.groups[role][index].function()
    del manager


def main(argv: list[str]) -> None:
    """Entry point of the process."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    _, root, role, index = argv
    try:
        run_node(RunDir(pathlib.Path(root)), role, int(index))
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
