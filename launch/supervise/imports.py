"""The imports of a process that needs TensorFlow: seconds of a core, a fifth less done this way."""

import gc
import importlib
from collections.abc import Sequence
from types import ModuleType


def import_for_good(names: Sequence[str]) -> list[ModuleType]:
    """Imports modules with the garbage collector off, and has it never look at them.

    What is imported stays, and making it leaves little garbage; on the way the collector would look
    at all of it again and again.
    """
    gc.disable()
    modules = [importlib.import_module(name) for name in names]
    gc.collect()
    gc.freeze()
    gc.enable()
    return modules
