"""Algorithms and networks by name: this project's own, or `module:Name` of the user's.

The learner's registries own the names. They import JAX, which takes a second, so they are imported
when a name is looked up: `vantage status` never does.
"""

import os
import re
import sys
import typing
from collections.abc import Callable, Mapping
from typing import TypeVar

from launch.errors import InputError
from report.plain_text import plain

if typing.TYPE_CHECKING:
    from learner.losses import Loss
    from learner.networks import Architecture

Part = TypeVar("Part")

# A name, or module:Name. Such a text is safe in file names and on a terminal.
SPEC = re.compile(r"[^\W\d][\w.]*(:[^\W\d]\w*)?")


def algorithm_names() -> tuple[str, ...]:
    """The registered algorithms."""
    from learner.losses import ALGORITHMS

    return tuple(ALGORITHMS)


def network_names() -> tuple[str, ...]:
    """The registered networks."""
    from learner.networks import NETWORKS

    return tuple(NETWORKS)


def find_loss(spec: str) -> "Loss":
    """The algorithm of that name; raises InputError, in one line, where there is none."""
    from learner.losses import ALGORITHMS
    from learner.trial import try_loss

    return _find("algorithm", spec, ALGORITHMS, try_loss)


def find_architecture(spec: str) -> "Architecture":
    """The network of that name; raises InputError, in one line, where there is none."""
    from learner.networks import NETWORKS
    from learner.trial import try_architecture

    return _find("network", spec, NETWORKS, try_architecture)


def file_name(spec: str) -> str:
    """A name as a part of file names: a colon would be a host or a drive to other programs."""
    return spec.replace(":", ".")


def check_printable(name: str, text: str) -> None:
    """Refuses a text that would not be one line in a script, in a log or on a terminal."""
    if not text.isprintable():
        raise InputError(f"{name}={plain(text)} holds a character that cannot be seen (as ?)")


def _find(
    field: str, spec: str, registry: Mapping[str, Part], try_out: Callable[[Part], None]
) -> Part:
    from learner.registry import resolve

    # What is in the current folder can be imported, as `python -m` has it: nodes are started so.
    if ":" in spec and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        part = resolve(spec, registry)
    except ValueError as error:
        raise InputError(f"{field}={error}") from error
    if ":" in spec:
        try:
            try_out(part)
        except ValueError as error:
            raise InputError(f"{field}='{spec}': {error}") from error
    return part
