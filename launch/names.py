"""Algorithms and networks by name: this project's own, or `module:Name` of the user's.

The learner's registries own the names. They import JAX, which takes a second, so they are imported
when a name is looked up: `vantage status` never does.
"""

import re
import typing

from launch.errors import InputError

if typing.TYPE_CHECKING:
    from learner.losses import Loss
    from learner.networks import Architecture

# Of a name, or of module:Name. Such a text is safe in a file name and on a terminal.
SPEC = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_]\w*)?", re.ASCII)


def algorithm_names() -> tuple[str, ...]:
    """The registered algorithms, the paper's four first."""
    from learner.losses import ALGORITHMS

    return tuple(ALGORITHMS)


def network_names() -> tuple[str, ...]:
    """The registered networks."""
    from learner.networks import ARCHITECTURES

    return tuple(ARCHITECTURES)


def find_loss(spec: str) -> "Loss":
    """The algorithm of that name; raises InputError, in one line, where there is none."""
    from learner.losses import ALGORITHMS
    from learner.registry import resolve

    try:
        return resolve(spec, ALGORITHMS)
    except ValueError as error:
        raise InputError(f"algorithm={error}") from error


def find_architecture(spec: str) -> "Architecture":
    """The network of that name; raises InputError, in one line, where there is none."""
    from learner.networks import ARCHITECTURES
    from learner.registry import resolve

    try:
        return resolve(spec, ARCHITECTURES)
    except ValueError as error:
        raise InputError(f"network={error}") from error


def file_name(spec: str) -> str:
    """A name as a part of file names: a colon would be a host or a drive to other programs."""
    return spec.replace(":", ".")
