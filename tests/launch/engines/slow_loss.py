"""VA-learning on a device that takes its time and no core.

A run that a test waits for then leaves the cores to other tests.
"""

import time

import jax
import numpy as np

from learner.losses import Errors, Heads, VALearning

FLAG = "--algorithm=tests.launch.engines.slow_loss:SlowLoss"
_UPDATE_SECONDS = 0.05


class SlowLoss(VALearning):
    """What the flag names."""

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        kind = jax.ShapeDtypeStruct(backup.shape, backup.dtype)
        backup = jax.pure_callback(self.on_device, kind, backup, vmap_method="broadcast_all")
        return super().errors(online_tm1, a_tm1, backup)

    def on_device(self, backup: jax.Array) -> np.ndarray:
        """What becomes of the targets of a batch, once for each update."""
        time.sleep(_UPDATE_SECONDS)
        return np.asarray(backup)
