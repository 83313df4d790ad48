"""The command line: reads flags, calls a command, turns bad input into one line."""
