"""The compiled loops of an optimizer's step on CPU: one pass over an array, by a rule.

Rules are named through this module (`sweeps.adam`) by what calls them: Numba takes a function that
is a global of the caller for an address of this process, and such code cannot be kept on disk.
"""

from collections.abc import Callable

import numba
import numpy as np

from learner.cpu import ffi
from learner.optimizers import ADAM_DECAYS, RMSPROP_DECAY

# Float32, or Numba would compute in double precision.
_DECAY, _ONE_MINUS_DECAY = np.float32(RMSPROP_DECAY), np.float32(1.0 - RMSPROP_DECAY)
_DECAY_1, _DECAY_2 = map(np.float32, ADAM_DECAYS)
_ONE_MINUS_DECAY_1, _ONE_MINUS_DECAY_2 = (np.float32(1.0 - decay) for decay in ADAM_DECAYS)
# A product and a sum are rounded once; the order is as written, or code that is loaded could have
# another than code that was just compiled.
_RULE = {"contract"}


@numba.njit
def sweep(frame: int, rule: Callable[..., tuple[float, float, float]]) -> None:
    """Goes over a leaf once. Results 0 to 2 lie where operands 0 to 2 did; 3 is the gradient."""
    gradient, constants = ffi.operand(frame, 3), ffi.operand(frame, 4)
    params, mu, nu = ffi.result(frame, 0), ffi.result(frame, 1), ffi.result(frame, 2)
    # In registers: for all the compiler knows, a store could change the array.
    rate, epsilon, scale = constants[0], constants[1], constants[2]
    correction_1, correction_2 = constants[3], constants[4]
    squares = np.float32(0.0)
    for i in range(gradient.size):
        squares += gradient[i] * gradient[i]
        step, mu[i], nu[i] = rule(
            scale * gradient[i], mu[i], nu[i], epsilon, correction_1, correction_2
        )
        params[i] -= rate * step
    ffi.result(frame, 3)[0] = squares


@numba.njit(fastmath=_RULE)
def rmsprop(g, mu, nu, epsilon, correction_1, correction_2):  # type: ignore[no-untyped-def]
    """Centered: what is subtracted from a parameter but for the rate, and both moments."""
    mu = _DECAY * mu + _ONE_MINUS_DECAY * g
    nu = _DECAY * nu + _ONE_MINUS_DECAY * (g * g)
    return g / np.sqrt(nu - mu * mu + epsilon), mu, nu


@numba.njit(fastmath=_RULE)
def adam(g, mu, nu, epsilon, correction_1, correction_2):  # type: ignore[no-untyped-def]
    """The same of Adam, whose moments are corrected for their bias."""
    mu = _DECAY_1 * mu + _ONE_MINUS_DECAY_1 * g
    nu = _DECAY_2 * nu + _ONE_MINUS_DECAY_2 * (g * g)
    return correction_1 * mu / (np.sqrt(correction_2 * nu) + epsilon), mu, nu
