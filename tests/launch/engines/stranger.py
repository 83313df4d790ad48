"""A stranger on the port: sends one of everything that is none of the run's own, and takes samples.

`python -m tests.launch.engines.stranger ADDRESS STEPS` is a process of its own, because its streams
wait without bound for a server that is gone. After STEPS the run is over.
"""

import contextlib
import random
import socket
import sys

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.telemetry import TelemetryWriter

PRIORITIES = (float("inf"), 1.7e308, 0.0)  # beyond what an error can be, or never drawn
FRAMES = (1.7e308, 10**400, 2**63, -1, "many")  # no run is there
_OVERSIZED_BYTES = 20 << 20
_NOISY_CONNECTIONS = 10
_SAMPLES = 500
_SECONDS = 60


def attack(address: str, total_steps: int) -> None:
    """One of everything."""
    client = reverb.Client(address)
    item = _item(client)
    for misfit in (*_of_another_shape(item), *_out_of_range(item)):
        _insert(client, tables.REPLAY, misfit)
    for priority in PRIORITIES:
        _insert(client, tables.REPLAY, item, priority)
    _publish(client, total_steps)
    _insert(client, tables.TELEMETRY, {"row": np.zeros(_OVERSIZED_BYTES, np.uint8)})
    rows = TelemetryWriter(client, "learner")
    for frames in FRAMES:
        rows({"frames": frames, "updates": 10**400, "loss": 1.7e308})
    rows.close(_SECONDS)
    _make_noise(int(address.rpartition(":")[2]))
    for _ in client.sample(tables.REPLAY, _SAMPLES, emit_timesteps=False):
        pass


def _item(client: reverb.Client) -> dict[str, np.ndarray]:
    """An item of the shape that the server itself tells everyone."""
    signature = client.server_info(_SECONDS)[tables.REPLAY].signature
    return {
        name: np.zeros(spec.shape, spec.dtype.as_numpy_dtype) for name, spec in signature.items()
    }


def _of_another_shape(item: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    frames, steps = item["frames"], item["steps"]
    return [
        item | {"steps": np.concatenate([steps, steps[:3]])},
        item | {"frames": frames[:1]},
        item | {"steps": steps.astype(np.float64)},
        {"anything": np.zeros(5)},
    ]


def _out_of_range(item: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    values = (np.nan, np.inf, -1e30, 7.5)
    return [item | {"steps": np.full_like(item["steps"], value)} for value in values]


def _publish(client: reverb.Client, total_steps: int) -> None:
    """Parameters that nobody can take, and some in range that say that training is over."""
    [header, values] = next(iter(client.sample(tables.PARAMS, emit_timesteps=False))).data
    beyond = [9 * 10**18, 9 * 10**18, 1]
    for claim, published in (
        (beyond, np.full_like(values, np.nan)),
        (beyond, values),
        ([header[0] + 1, header[1], 0], np.full_like(values, np.nan)),
        ([header[0] + 1, header[1], 1], values[:3]),
        ([header[0] + 1, total_steps, 1], np.zeros_like(values)),
    ):
        item = {"header": np.array(claim, np.int64), "values": published}
        _insert(client, tables.PARAMS, item)


def _insert(
    client: reverb.Client, table: str, item: dict[str, np.ndarray], priority: float = 1.0
) -> None:
    with client.trajectory_writer(num_keep_alive_refs=1, validate_items=False) as writer:
        writer.append(item)
        writer.create_item(table, priority, {name: c[-1] for name, c in writer.history.items()})
        writer.flush(timeout_ms=_SECONDS * 1000)


def _make_noise(port: int) -> None:
    for number in range(_NOISY_CONNECTIONS):
        # The server may well hang up before all is sent.
        with (
            socket.create_connection(("127.0.0.1", port), _SECONDS) as stranger,
            contextlib.suppress(OSError),
        ):
            stranger.sendall(random.Random(number).randbytes(10_000))


if __name__ == "__main__":
    for _ in range(2):
        attack(sys.argv[1], int(sys.argv[2]))
