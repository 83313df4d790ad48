"""A disk with little room."""

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Stands in for a disk with that much room: the kernel cuts writes short, then refuses them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
