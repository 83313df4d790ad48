"""`python -m launch`: the `vantage` command, wherever the interpreter is known but no PATH."""

from launch.cli.entry import main

main()
