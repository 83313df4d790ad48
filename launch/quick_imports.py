"""The imports of a process that needs TensorFlow: seconds of a core, a third less done this way.

`python -m launch.quick_imports MODULE ARGUMENTS` imports the module so and calls its `main`.
"""

import gc
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType


def import_for_good(names: Sequence[str]) -> list[ModuleType]:
    """Imports modules with the garbage collector off, and has it never look at them.

    What is imported stays, and making it leaves little garbage; on the way the collector would look
    at all of it again and again.
    """
    gc.disable()
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def main(argv: list[str]) -> None:
    """Hands the module its name and the words after it."""
    _, name, *arguments = argv
    [module] = import_for_good([name])
    module.main([name, *arguments])


if __name__ == "__main__":
    main(sys.argv)
