"""How the command line reads numbers: all whole ones as 200M, 60k or 1e6 too.

One rule for every flag of that type, with and without None, so that no field needs a mark of its
own and a bad number is refused in the same words everywhere.
"""

from collections.abc import Callable
from typing import Any

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

from launch.cli.quantity import parse_whole

REGISTRY = ConstructorRegistry()


def parse_number(text: str) -> float:
    """A number; raises ValueError, with the reason, for what is none."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a number; write it as 0.5 or 1e-4") from None


_KINDS: tuple[tuple[Any, Callable[[str], Any], str], ...] = (
    (int, parse_whole, "INT"),
    (float, parse_number, "FLOAT"),
)


@REGISTRY.primitive_rule
def _number_rule(
    info: PrimitiveTypeInfo,
) -> PrimitiveConstructorSpec | tyro.constructors.UnsupportedTypeAnnotationError | None:
    for kind, parse, metavar in _KINDS:
        if info.type is kind:
            return _spec(parse, metavar, may_be_none=False)
        if info.type == kind | None:
            return _spec(parse, metavar, may_be_none=True)
    return None


def _spec(
    parse: Callable[[str], Any], metavar: str, *, may_be_none: bool
) -> PrimitiveConstructorSpec:
    def read(texts: list[str]) -> Any:
        return None if may_be_none and texts[0] == "None" else parse(texts[0])

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"{{None}}|{metavar}" if may_be_none else metavar,
        instance_from_str=read,
        # A float may be given as a whole number: 1 is a rate too.
        is_instance=lambda value: value is None or isinstance(value, (int, float)),
        str_from_instance=lambda value: [str(value)],
    )
