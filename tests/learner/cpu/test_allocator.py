"""Freed memory stays with the process, in an interpreter of its own: the setting is for good."""

import ctypes
import subprocess
import sys

import pytest

BLOCK_BYTES = 48 << 20
CODE = f"""
import ctypes, resource
from learner.cpu.allocator import keep_freed_memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
keep_freed_memory()
def use():
    block = libc.malloc(ctypes.c_size_t({BLOCK_BYTES}))
    ctypes.memset(block, 1, {BLOCK_BYTES})
    libc.free(ctypes.c_void_p(block))
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_block_used_again_meets_no_page_faults():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    # Given back each time, it would be a fault for every page (or for every huge page).
    assert int(done.stdout) < 10
