"""A stranger on the port: sends one of everything, and takes samples.

`python -m tests.launch.engines.stranger ADDRESS` is a process of its own, because its streams wait
without bound for a server that is gone.
"""

import sys

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.telemetry import TelemetryWriter

STACK = np.zeros((4, 84, 84), np.uint8)
MISFITS = (
    {"o_t": STACK, "o_tm1": STACK, "steps": np.zeros((3, 5), np.float32)},
    {"o_t": STACK[:1], "o_tm1": STACK, "steps": np.zeros((10, 5), np.float32)},
    {"o_t": STACK, "o_tm1": STACK, "steps": np.full((10, 5), np.nan, np.float32)},
    {"anything": np.zeros(5)},
)


def insert(client: reverb.Client, table: str, item: dict[str, np.ndarray]) -> None:
    with client.trajectory_writer(num_keep_alive_refs=1, validate_items=False) as writer:
        writer.append(item)
        writer.create_item(table, 1.0, {name: c[-1] for name, c in writer.history.items()})
        writer.flush(timeout_ms=60_000)


def attack(client: reverb.Client) -> None:
    """One of everything."""
    for misfit in MISFITS:
        insert(client, tables.REPLAY, misfit)
    length = next(iter(client.sample(tables.PARAMS, emit_timesteps=False))).data[1].shape
    for values in (np.full(length, np.nan, np.float32), np.zeros(3, np.float32)):
        header = np.array([9 * 10**18, 9 * 10**18, 1], np.int64)
        insert(client, tables.PARAMS, {"header": header, "values": values})
    insert(client, tables.TELEMETRY, {"row": np.zeros(20 << 20, np.uint8)})
    stranger = TelemetryWriter(client, "learner")
    for frames in (1.7e308, 10**400, 2**63, -1, "many"):
        stranger({"frames": frames, "updates": 10**400, "loss": 1.7e308})
    stranger.close(60.0)
    for _ in client.sample(tables.REPLAY, 500, emit_timesteps=False):
        pass


if __name__ == "__main__":
    for _ in range(5):
        attack(reverb.Client(sys.argv[1]))
