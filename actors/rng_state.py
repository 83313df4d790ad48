"""A random generator's state as an array, so that it can lie in a checkpoint beside the others."""

import json

import numpy as np


def pack_rng(rng: np.random.Generator) -> np.ndarray:
    """The state as bytes of JSON, uint8 [N]."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), np.uint8)


def unpack_rng(rng: np.random.Generator, packed: np.ndarray) -> None:
    """Puts the generator into a state that `pack_rng` returned."""
    rng.bit_generator.state = json.loads(packed.tobytes())
