"""Keeps the memory that updates use again and again."""

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEEP_BYTES = 2**31 - 1
_HEAP_BYTES = (2**30, 2**25)  # older versions take no more than the second


def keep_freed_memory() -> None:
    """Tells this process's allocator not to give large blocks back to the kernel.

    XLA takes the memory of its intermediate results from it anew for every update on CPU. By
    default they go back at once, and the next update meets thousands of page faults: a sixth of its
    time. Allocators other than glibc's are left as they are.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        return
    libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
    any(libc.mallopt(_M_MMAP_THRESHOLD, size) for size in _HEAP_BYTES)
