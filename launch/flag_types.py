"""Flags that take a name: of a game, or of a part that was registered."""

from collections.abc import Callable
from typing import Annotated, Any

import tyro

from actors.games import canonical_name

# A game on the command line, however it is written; in a config it has its one name.
GameName = Annotated[
    str,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="GAME",
        instance_from_str=lambda texts: canonical_name(texts[0]),
        is_instance=lambda value: isinstance(value, str),
        str_from_instance=lambda name: [name],
    ),
]


def one_of(
    registered: Callable[[], tuple[str, ...]],
    metavar: str = "NAME",
    aliases: tuple[str, ...] | None = None,
) -> Any:
    """What the help of a flag says: the names registered at the time it is asked for."""

    def hint(default: str) -> str:
        stated = "" if default == "None" else f"default: {default}; "
        return f"({stated}one of {', '.join(registered())}, or your own module:Name)"

    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint, aliases=aliases)
