"""Parameters on their way from the device to the publisher, without the learner waiting for either.

The learner's thread only asks the device for a copy. The publisher's thread waits until it is
computed, takes it to the host and looks at it there, while the learner goes on with its updates.
What the evaluator will score is copied with all its heads, and on disk before it is published.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from launch.config import Config
from launch.stored.candidate import CandidateWriter
from learner.divergence import FiniteGuard
from learner.loop import Progress
from learner.update import LearnerState
from reverb_server.params import ParamsPublisher


def make_publish(
    config: Config,
    flatten: Callable[[Any], Any],
    publisher: ParamsPublisher,
    guard: FiniteGuard,
    candidates: CandidateWriter,
) -> Callable[[LearnerState, Progress], None]:
    """What the loop calls to publish; `flatten` gives the acting parameters as one vector."""

    def publish(state: LearnerState, progress: Progress) -> None:
        # A copy on the device, before the next update takes over the buffers.
        flat = flatten(state.params)
        frames = config.frames_of(progress.steps)
        whole = None
        if candidates.is_due(frames, finished=progress.finished):
            whole = jax.tree.map(jnp.copy, state.params)

        def on_host() -> np.ndarray:
            values = np.asarray(flat)
            guard.check(progress.updates, values)
            if whole is not None:
                everything = jax.device_get(whole)
                guard.check(progress.updates, everything)
                candidates.write(everything, frames)
            return values

        publisher.publish(
            on_host,
            version=progress.updates,
            steps=progress.steps,
            finished=progress.finished,
        )

    return publish
