"""What this host is called: by Slurm if it runs us, else by itself."""

import os
import socket


def this_host() -> str:
    """The name users know the host by."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
