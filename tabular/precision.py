"""Double precision for the study: the bounds of Theorem 1 fall far below single precision."""

import contextlib

import jax


def double_precision() -> contextlib.AbstractContextManager[None]:
    """Arrays made inside are 64-bit; the rest of the process keeps what it has."""
    # JAX moved the switch out of `experimental` after the release that Python 3.10 gets.
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()
