"""How other hosts of a run reach this one."""

import os

from launch.engines.slurm.cluster import node_address
from launch.machine.host_name import this_host


def own_address() -> str:
    """What Slurm uses itself, where it runs this host; else the host's name."""
    name = this_host()
    under_slurm = "SLURMD_NODENAME" in os.environ
    return (node_address(name) if under_slurm else None) or name
