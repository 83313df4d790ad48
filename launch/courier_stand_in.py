"""Lets Launchpad be imported on a Python that its Courier binaries were not built for.

The last wheel of Launchpad is for CPython 3.10. Its Python runs on 3.11 as well, but `import
launchpad` also imports `courier`, the package of its remote procedure calls, whose binaries load
into the Python they were built for and no other. Vantage opens no Courier server and no client
(Reverb carries everything), so there a stand-in takes the place of `courier`: it can be imported,
and whoever tries to use it is told why that cannot work.

`launch/__init__.py` installs it, so it is in place before any module of ours imports Launchpad. A
script that imports `launchpad` itself on such a Python imports `launch` first.
"""

import importlib.metadata
import sys
import types
from typing import Any, NoReturn

_LAUNCHPAD = "dm-launchpad"


class CourierUnavailableError(RuntimeError):
    """Someone tried to open a Courier server or client, or to wrap a function for one."""


class Server:
    """In the place of `courier.Server`."""

    def __init__(self, *args: Any, **kwargs: Any):
        _refuse(*args, **kwargs)


class Client:
    """In the place of `courier.Client`."""

    def __init__(self, *args: Any, **kwargs: Any):
        _refuse(*args, **kwargs)


def install_where_needed() -> None:
    """Puts the stand-in where `import courier` looks first, unless the real one can load here."""
    if is_needed() and "courier" not in sys.modules:
        for module in _stand_in_modules():
            sys.modules[module.__name__] = module


def is_needed() -> bool:
    """Whether the installed Launchpad was built for another Python than this one."""
    try:
        wheel = importlib.metadata.distribution(_LAUNCHPAD).read_text("WHEEL") or ""
    except importlib.metadata.PackageNotFoundError:
        return False  # Its import will say that it is missing.
    return f"-cp{sys.version_info.major}{sys.version_info.minor}-" not in wheel


def _stand_in_modules() -> list[types.ModuleType]:
    """`courier` with all that Launchpad takes from it."""
    courier = types.ModuleType("courier", __doc__)
    vars(courier).update(Server=Server, Client=Client, list_methods=_refuse)
    pybind = types.ModuleType("courier.handlers.python.pybind", __doc__)
    for name in ("BuildPyCallHandler", "BuildBatchedHandlerWrapper", "CallHandler"):
        setattr(pybind, name, _refuse)
    packages = [types.ModuleType(f"courier.{name}") for name in ("handlers", "handlers.python")]
    for package in (courier, *packages):
        package.__path__ = []  # What makes a module a package.
    return [courier, *packages, pybind]


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    del args, kwargs
    raise CourierUnavailableError(
        f"Courier cannot run on Python {sys.version_info.major}.{sys.version_info.minor}: the last "
        "Launchpad has its binaries for Python 3.10 only; use Reverb or Python 3.10"
    )
