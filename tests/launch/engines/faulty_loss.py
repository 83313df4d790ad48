"""VA-learning whose update hangs on the device while a file exists."""

import os
import threading

import jax
import numpy as np

from learner.losses import Errors, Heads, VALearning

# The file's path.
VARIABLE = "VANTAGE_TEST_HANG_FILE"
FLAG = "--algorithm=tests.launch.engines.faulty_loss:HangingLoss"


class HangingLoss(VALearning):
    """What the flag names."""

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        errors = super().errors(online_tm1, a_tm1, backup)
        jax.debug.callback(_hang, errors.td)
        return errors


def _hang(td: np.ndarray) -> None:
    del td
    if os.path.exists(os.environ[VARIABLE]):
        threading.Event().wait()
