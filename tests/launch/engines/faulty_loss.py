"""VA-learning whose update does on the device what a file says: hang, or diverge."""

import os
import pathlib
import threading

import jax
import numpy as np

from tests.launch.engines.slow_loss import SlowLoss

# The file's path.
VARIABLE = "VANTAGE_TEST_FAULT_FILE"
FLAG = "--algorithm=tests.launch.engines.faulty_loss:FaultyLoss"
HANG, DIVERGE = "hang", "diverge"


class FaultyLoss(SlowLoss):
    """What the flag names."""

    def on_device(self, backup: jax.Array) -> np.ndarray:
        return _fault(super().on_device(backup))


def _fault(values: np.ndarray) -> np.ndarray:
    try:
        asked = pathlib.Path(os.environ[VARIABLE]).read_text()
    except FileNotFoundError:
        asked = ""
    if asked == HANG:
        threading.Event().wait()
    return np.full_like(values, np.nan) if asked == DIVERGE else values
