"""What of all that its libraries say goes into a node's log."""

import logging
import sys


def set_up_log() -> None:
    """Lines on stderr, which the supervisor has made the node's log."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    for handler in logging.getLogger().handlers:
        # Reverb gives a port back that was not portpicker's: ours are given by the supervisor.
        handler.addFilter(lambda record: record.module != "portpicker")
    # It tells of every kind of device that is not there; which one is used, the learner says.
    logging.getLogger("jax._src.xla_bridge").setLevel(logging.WARNING)
