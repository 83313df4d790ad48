"""VA-learning whose update does on the device what a file says: hang, or diverge."""

import os
import pathlib
import threading

import jax
import numpy as np

from learner.losses import Errors, Heads, VALearning

# The file's path.
VARIABLE = "VANTAGE_TEST_FAULT_FILE"
FLAG = "--algorithm=tests.launch.engines.faulty_loss:FaultyLoss"
HANG, DIVERGE = "hang", "diverge"


class FaultyLoss(VALearning):
    """What the flag names."""

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        kind = jax.ShapeDtypeStruct(backup.shape, backup.dtype)
        backup = jax.pure_callback(_fault, kind, backup, vmap_method="broadcast_all")
        return super().errors(online_tm1, a_tm1, backup)


def _fault(backup: jax.Array) -> np.ndarray:
    try:
        asked = pathlib.Path(os.environ[VARIABLE]).read_text()
    except FileNotFoundError:
        asked = ""
    if asked == HANG:
        threading.Event().wait()
    values = np.asarray(backup)
    return np.full_like(values, np.nan) if asked == DIVERGE else values
