"""Names of the command line become parts: one of a registry's own, or a user's `module:Name`."""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def resolve(spec: str, registry: Mapping[str, T]) -> T:
    """The entry called `spec`, or what `module:Name` says; a class is called without arguments.

    A part of the user's own needs every public attribute that the registry's entries share, and
    its methods must take as many arguments. Raises ValueError, in one line, where it does not fit.
    """
    if ":" in spec:
        return _checked(spec, _made(spec, _imported(spec)), registry)
    if spec not in registry:
        raise ValueError(
            f"'{spec}' is none of {', '.join(registry)}; one of your own is written module:Name"
        )
    return registry[spec]


def _imported(spec: str) -> Any:
    module_name, _, name = spec.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), name]):
        raise ValueError(f"'{spec}' is not of the form module:Name or package.module:Name")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(
            f"'{spec}' cannot be imported: {error}; "
            "start from the module's folder, or put it on PYTHONPATH"
        ) from error
    except Exception as error:  # a module may do anything when it is imported
        raise ValueError(f"'{spec}' cannot be imported: {_in_one_line(error)}") from error
    if not hasattr(module, name):
        raise ValueError(f"'{spec}': there is no {name} in {module.__file__ or module_name}")
    return getattr(module, name)


def _made(spec: str, found: Any) -> Any:
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        raise ValueError(
            f"'{spec}' is made without arguments, and cannot be: {_in_one_line(error)}"
        ) from error


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _checked(spec: str, part: Any, registry: Mapping[str, T]) -> T:
    shared = set.intersection(*({*filter(_is_public, dir(entry))} for entry in registry.values()))
    missing = sorted(name for name in shared if not hasattr(part, name))
    if missing:
        raise ValueError(
            f"'{spec}' has no {', '.join(missing)}; it needs {', '.join(sorted(shared))}"
        )
    example = next(iter(registry.values()))
    for name in sorted(shared):
        _check_method(f"'{spec}': {name}", getattr(part, name), getattr(example, name))
    return part


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _check_method(where: str, theirs: Any, ours: Any) -> None:
    if not callable(ours):
        return
    arguments = list(inspect.signature(ours).parameters)
    try:
        inspect.signature(theirs).bind(*arguments)
    except TypeError:
        raise ValueError(f"{where} must take ({', '.join(arguments)})") from None
