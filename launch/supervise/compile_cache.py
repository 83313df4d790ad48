"""What a learner compiled, kept for its next start: a learner that died trains again sooner.

It is machine code, and whoever loads it runs it. So only what was compiled under this very
supervisor is ever loaded, from a folder that is new: nothing that came with a copied run directory,
and nothing that another host, with another processor, compiled before the run moved here.
"""

import os
import pathlib
import shutil
import tempfile

_FOLDER = "JAX_COMPILATION_CACHE_DIR"
_NUMBA_FOLDER = "NUMBA_CACHE_DIR"
_USERS = ("jax", "numba")  # Numba compiles the optimizer's step
# Everything is kept: hundreds of small functions that set up the parameters take seconds together.
_KEEP_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def new_compile_cache(parent: pathlib.Path) -> dict[str, str]:
    """Makes an empty cache, and removes all others in `parent`; returns how it is told of.

    Without room for it there is none, and with one of the user's own that is the one used.
    """
    if _FOLDER in os.environ:
        return {}
    shutil.rmtree(parent, ignore_errors=True)
    try:
        parent.mkdir(mode=0o700, exist_ok=True)
        jax, numba = (tempfile.mkdtemp(dir=parent.resolve(), prefix=f"{name}-") for name in _USERS)
        return {_FOLDER: jax, _NUMBA_FOLDER: numba, **_KEEP_ALL}
    except OSError:
        return {}
