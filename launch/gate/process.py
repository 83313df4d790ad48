"""What both ends of the gate have in common as processes of a supervisor."""

import faulthandler
import logging
import signal
import sys
from collections.abc import Callable

from launch import heartbeat
from launch.gate.relay import Relay
from launch.heartbeat import Phase
from launch.supervise.node_process import DUMP_SIGNAL


def prepare() -> None:
    """Sets up the log, and the signal on which all stacks go there; comes before all else."""
    faulthandler.register(DUMP_SIGNAL, all_threads=True)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )


def relay_until_stopped(role: str, loop: Relay, every_round: Callable[[], None]) -> None:
    """Relays until SIGTERM, with a heartbeat."""
    heart = heartbeat.of_this_process(role)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))

    def go_on() -> bool:
        every_round()
        heart.beat(Phase.RELAYING, loop.num_pairs)
        return not stopped

    loop.run(go_on)
