"""VA-learning whose update hangs on the device after a while, in a learner's first life only."""

import os
import threading

import jax
import numpy as np

from launch.seeds import RESTART_VARIABLE
from learner.losses import Errors, Heads, VALearning

_CALLS_BEFORE = 5000  # one for every transition of every update
_calls = 0


class HangingLoss(VALearning):
    """For `--algorithm tests.launch.engines.hanging_loss:HangingLoss`."""

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        errors = super().errors(online_tm1, a_tm1, backup)
        jax.debug.callback(_hang, errors.td)
        return errors


def _hang(td: np.ndarray) -> None:
    global _calls
    _calls += 1
    if _calls > _CALLS_BEFORE and os.environ.get(RESTART_VARIABLE) == "0":
        threading.Event().wait()
