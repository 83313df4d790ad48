"""What the command line says when input is bad, and the exit codes it ends with."""

import enum

# How the line begins with which a run ends whose learning diverged; others look for it in its log.
DIVERGED = "learning diverged"


class ExitCode(enum.IntEnum):
    """Why a command ended."""

    DONE = 0
    FAILED = 1  # a role failed for good, or something unexpected happened
    BAD_INPUT = 2
    GIVE_UP = 70  # of a node: starting it again would only repeat the failure
    COME_BACK = 75  # made room after a checkpoint (SIGUSR1): start it again
    INTERRUPTED = 130  # stopped by Ctrl-C or SIGTERM, after a checkpoint


class InputError(Exception):
    """Bad input: one line that names the value, the reason and the way out."""


class GiveUpError(Exception):
    """A failure that a restart would only repeat: one line with the reason and the way out."""
