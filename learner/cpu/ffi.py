"""Loops compiled by Numba as custom calls of jitted functions, on CPU.

XLA calls a handler with one argument, the address of a call frame that names the buffers. Its
layout is that of XLA's foreign function interface (`xla/ffi/api/c_api.h` in JAX's headers, version
0.1): structs of 64-bit words, read here by their index. A handler must also answer one question,
asked when it is registered: which version of the interface it was written for.
"""

import logging
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax
import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

_CACHE_FOLDER = "NUMBA_CACHE_DIR"
HANDLER = types.intp(types.intp)  # the call frame's address -> the address of an error, or 0
# What a handler calls is compiled with the same options.
_OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "error_model": "numpy",  # a division by zero is inf: checks for it would forbid vectors
        "fastmath": {"contract", "reassoc", "nsz"},  # sums in vectors; NaN and inf stay
    }
)

# Words of a call frame: its extension, then the addresses of operands and results.
_EXTENSION, _OPERANDS, _RESULTS, _FRAME_WORDS = 1, 9, 14, 15
# Words of an extension; one of this type asks for the version.
_TYPE, _METADATA, _EXTENSION_WORDS = 1, 3, 4
_ASKS, _HALF = 1, 0xFFFFFFFF  # a type is half a word
# 32-bit halves of words of the metadata.
_MAJOR, _MINOR, _METADATA_HALVES = 6, 7, 8
_VERSION = (0, 1)
# Words of a buffer.
_DATA, _RANK, _SHAPE, _BUFFER_WORDS = 3, 4, 5, 6


def register(name: str, handler: Callable[[int], int]) -> None:
    """Compiles a handler and registers it as a target of `jax.ffi.ffi_call`."""
    compiled = _compile(handler)
    _KEPT_ALIVE.append(compiled)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(compiled.address), platform="cpu")


def _compile(handler: Callable[[int], int]) -> Any:
    """Loads it where there is a folder for compiled code; else Numba would use the source's."""
    if _CACHE_FOLDER in os.environ:
        try:
            return numba.cfunc(HANDLER, cache=True, **_OPTIONS)(handler)
        except OSError as error:
            logging.warning("the optimizer's step is compiled again at each start: %s", error)
    return numba.cfunc(HANDLER, **_OPTIONS)(handler)


_KEPT_ALIVE: list[object] = []  # XLA keeps the bare address


@intrinsic
def _pointer(typing, address):  # type: ignore[no-untyped-def]
    """An address as a pointer."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


@numba.njit
def _words(address: int, count: int) -> np.ndarray:
    return numba.carray(_pointer(address), (count,), np.int64)


@numba.njit
def _floats(buffer: int) -> np.ndarray:
    words = _words(buffer, _BUFFER_WORDS)
    size = 1
    for side in _words(words[_SHAPE], words[_RANK]):
        size *= side
    return numba.carray(_pointer(words[_DATA]), (size,), np.float32)


@numba.njit
def operand(frame: int, number: int) -> np.ndarray:
    """A float32 operand, flat."""
    return _floats(_words(_words(frame, _FRAME_WORDS)[_OPERANDS], number + 1)[number])


@numba.njit
def result(frame: int, number: int) -> np.ndarray:
    """A float32 result, flat, to be written."""
    return _floats(_words(_words(frame, _FRAME_WORDS)[_RESULTS], number + 1)[number])


@numba.njit
def asks_for_version(frame: int) -> bool:
    """Whether the call asks for the version; if so, answers it."""
    address = _words(frame, _FRAME_WORDS)[_EXTENSION]
    if address == 0:
        return False
    extension = _words(address, _EXTENSION_WORDS)
    if extension[_TYPE] & _HALF != _ASKS:
        return False
    metadata = extension[_METADATA]
    halves = numba.carray(_pointer(metadata), (_METADATA_HALVES,), np.int32)
    halves[_MAJOR], halves[_MINOR] = _VERSION
    return True
