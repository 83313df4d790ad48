"""What the program of a node begins with, so that its imports take less time.

`python -m launch.supervise.program_entry MODULE ARGUMENTS` calls the module's `main`. Nodes that
are forked have their imports behind them.
"""

import sys

from launch.supervise.imports import import_for_good


def main(argv: list[str]) -> None:
    """Hands the module the words after this one's name."""
    _, name, *arguments = argv
    [module] = import_for_good([name])
    module.main([name, *arguments])


if __name__ == "__main__":
    main(sys.argv)
