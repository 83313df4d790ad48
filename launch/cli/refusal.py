"""What the parser cannot read, as the one line that all bad input gets.

The parser would draw a box and end the process. It hands out what is wrong before it does so, but
only through a module it calls private: pyproject.toml holds it to versions that have it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from tyro import _errors

from launch.cli.flag_names import flag_names, switch_names
from launch.errors import InputError
from launch.nearest import did_you_mean


@contextlib.contextmanager
def refused_in_one_line(flags: Any) -> Iterator[None]:
    """Raises InputError where the parser would end the process; `flags` are the command's."""

    def refuse(event: _errors.ParseErrorEvent) -> None:
        reason = _reason(event, flags)
        if reason is not None:
            raise InputError(reason)

    with _errors.on_parse_error(refuse):
        yield


def _reason(event: _errors.ParseErrorEvent, flags: Any) -> str | None:
    """None for what a later version of the parser may find wrong: it then speaks for itself."""
    if isinstance(event, _errors.UnrecognizedArgs):
        return _unknown(event.tokens, event.prog, flags)
    if isinstance(event, _errors.MissingArgs):
        if event.unrecognized_tokens:
            return _unknown(event.unrecognized_tokens, event.prog, flags)
        missing = " and ".join(_name(needed.arg) for needed in event.missing_arguments)
        return f"{event.prog} needs {missing}; {_help(event.prog)}"
    if isinstance(event, _errors.BadValue):
        return f"{_name(event.argument)} needs a value; {_help(event.prog)}"
    if isinstance(event, _errors.InvalidChoice):
        near = did_you_mean(event.value, event.choices)
        return (
            f"{_name(event.argument)}: '{event.value}' is not one of {', '.join(event.choices)}"
            f"{'' if near is None else f'; {near}'}"
        )
    if isinstance(event, _errors.InstantiationFailure):
        where = event.prog if event.argument is None else _name(event.argument)
        return f"{where}: {' '.join(event.message.split())}"
    return None


def _unknown(tokens: list[str], prog: str, flags: Any) -> str:
    flag = next((token for token in tokens if token.startswith("--")), None)
    if flag is None or flag == "--":
        return f"unexpected argument '{tokens[0]}'; {_help(prog)}"
    word = flag.partition("=")[0].removeprefix("--")
    names = flag_names(flags)
    bare = word.removeprefix("no-")
    if bare != word and bare in set(names) - switch_names(flags):
        return f"--{word}: --{bare} takes a value and has no other form; {_help(prog)}"
    return f"unknown flag --{word}; {did_you_mean(word, names, before='--') or _help(prog)}"


def _name(argument: Any) -> str:
    """As one writes it: --frames, or RUN for what stands without a flag."""
    if argument.is_positional():
        return str(argument.lowered.metavar)
    return str(argument.display_name()).split("/")[0]


def _help(prog: str) -> str:
    return f"see {prog} --help"
