"""Costs of the parts of a run, made by hand."""

from launch.profile.plan import Costs
from launch.profile.timing import Cost

COSTS = Costs(
    step=Cost(0.5, 0.5),
    insert_server_core_ms=0.02,
    insert_bytes=1000.0,
    sample=Cost(2.0, 3.0),
    sample_serial_ms=0.2,
    sample_server_core_ms=0.4,
    sample_bytes=200_000.0,
    pull_core_ms=5.0,
    pull_server_core_ms=1.0,
    pull_bytes=4e6,
    polls_per_second=2.0,
    publish_ms=1.0,
    update=Cost(0.5, 0.0),
    replay_bytes_per_step=2500.0,
)
