"""The gate: one update means the same through the plain backend and through the CPU's own.

Both compute in float32 and add in different orders, so parameters, moments, errors and scalars
agree to `TOLERANCE`; counters agree exactly.
"""

import functools
import math
import pathlib
import subprocess
import sys
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from learner.backend import PLAIN, backend_for
from learner.checkpoint import Checkpointer
from learner.losses import ALGORITHMS, BEHAVIOR_LOSSES
from learner.networks import NETWORKS, OBSERVATION_SHAPE, Network, make_network
from learner.optimizers import OPTIMIZERS, OptimizerOptions, make_optimizer
from learner.transitions import Transition
from learner.update import LearnerState, Update, make_update

TOLERANCE = {"rtol": 1e-4, "atol": 2e-6}
NUM_ACTIONS, BATCH, N_STEP = 6, 2, 3

# Network, algorithm, optimizer, normalized: every algorithm with every optimizer on the smallest
# network, and every other network once.
LEARNERS = [
    *(("tiny", algorithm, name, False) for algorithm in ALGORITHMS for name in OPTIMIZERS),
    ("tiny", "va", "adam", True),
    ("small", "va", "adam", True),
    ("nips2013", "behavior_dueling", "rmsprop", False),
    ("nature", "va", "rmsprop", False),
    ("impala", "va", "adam", False),
]
ONLINE_MU = ("tiny", "va", "rmsprop", False, True)
SMALLEST = LEARNERS[0]


def test_every_network_algorithm_and_optimizer_is_among_the_compared() -> None:
    networks, algorithms, optimizers, _ = (set(names) for names in zip(*LEARNERS, strict=True))
    assert networks == set(NETWORKS)
    assert algorithms == set(ALGORITHMS)
    assert optimizers == set(OPTIMIZERS)


@functools.cache
def learner_of(
    platform: str,
    network: str,
    algorithm: str,
    optimizer: str,
    normalize: bool,
    online_mu: bool = False,
) -> tuple[LearnerState, Update]:
    """A state and the update, jitted once for all tests."""
    backend, loss = backend_for(platform), ALGORITHMS[algorithm]
    built = make_network(
        NETWORKS[network],
        NUM_ACTIONS,
        value_head=loss.value_head,
        behavior_head=loss.behavior_head,
        normalize=normalize,
        layers=backend.layers,
    )
    # An epsilon far above what rounding makes of a gradient of zero.
    options = OptimizerOptions(optimizer, 1e-3, epsilon=1e-3, max_grad_norm=40.0)
    update = make_update(
        built,
        loss,
        backend.make_step(options),
        target_period_updates=2,
        behavior_loss=BEHAVIOR_LOSSES["sampled"],
        online_mu=online_mu,
    )
    # What is compared is our arithmetic, not the compiler's: without its optimizations it is quick.
    quick = {"xla_backend_optimization_level": 0}
    return random_state(built, options), jax.jit(update, compiler_options=quick)


def random_state(network: Network, options: OptimizerOptions) -> LearnerState:
    """No parameter is zero, and the target network is another one."""
    rng = np.random.default_rng(0)

    def random_leaf(like: jax.ShapeDtypeStruct) -> jax.Array:
        fan_in = math.prod(like.shape[:-1])
        return jnp.asarray(rng.normal(size=like.shape) / np.sqrt(fan_in), jnp.float32)

    shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
    params, target = (jax.tree.map(random_leaf, shapes) for _ in range(2))
    return LearnerState(params, target, make_optimizer(options).init(params), jnp.int32(0))


def random_batch(seed: int) -> tuple[Transition, jax.Array]:
    rng = np.random.default_rng(seed)
    batch = Transition(
        o_tm1=rng.integers(0, 256, (BATCH, *OBSERVATION_SHAPE), np.uint8),
        o_t=rng.integers(0, 256, (BATCH, *OBSERVATION_SHAPE), np.uint8),
        a_tm1=rng.integers(0, NUM_ACTIONS, BATCH, np.int32),
        r_t=rng.uniform(-1, 1, (BATCH, N_STEP)).astype(np.float32),
        discount_t=np.full((BATCH, N_STEP), 0.9, np.float32),
        epsilon=np.full(BATCH, 0.1, np.float32),
        greedy_tm1=rng.integers(0, NUM_ACTIONS, BATCH, np.int32),
    )
    return jax.tree.map(jnp.asarray, batch), jnp.asarray([0.5, 1.0])


def assert_close(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **TOLERANCE), found, expected)


@pytest.mark.parametrize(
    "learner", [*LEARNERS, ONLINE_MU], ids=lambda learner: "-".join(map(str, learner))
)
def test_an_update_is_the_same_through_both_gates(learner: tuple[Any, ...]) -> None:
    """Parameters, target, moments, counters, errors and scalars, over a target copy."""
    plain_state, plain = learner_of("gpu", *learner)
    cpu_state, on_cpu = learner_of("cpu", *learner)
    before = plain_state.params
    for seed in range(2):
        batch, weights = random_batch(seed)
        plain_state, expected = plain(plain_state, batch, weights)
        cpu_state, found = on_cpu(cpu_state, batch, weights)
        assert_close(found, expected)
    assert_close(cpu_state, plain_state)
    assert int(cpu_state.updates) == 2
    for name, leaves in before.items():
        assert any(np.any(leaf != cpu_state.params[name][k]) for k, leaf in leaves.items()), name


@pytest.mark.parametrize(("written", "read"), [("cpu", "gpu"), ("gpu", "cpu")])
def test_a_checkpoint_of_one_gate_is_read_by_the_other(
    written: str, read: str, tmp_path: pathlib.Path
) -> None:
    state, update = learner_of(written, *SMALLEST)
    state, _ = update(state, *random_batch(0))
    Checkpointer(tmp_path).save(1, state, {})
    like, other = learner_of(read, *SMALLEST)
    restored = Checkpointer(tmp_path).restore(like)
    assert restored is not None
    jax.tree.map(np.testing.assert_array_equal, restored.tree, state)
    expected, _ = update(state, *random_batch(1))
    found, _ = other(restored.tree, *random_batch(1))
    assert_close(found, expected)


def lowered(learner: tuple[Any, ...], platform: str) -> str:
    """The StableHLO of an update for an accelerator; that needs no device."""
    state, update = learner_of("gpu", *learner)
    arguments = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), (state, *random_batch(0))
    )
    return jax.export.export(update, platforms=[platform])(*arguments).mlir_module()


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize(
    "learner",
    [*LEARNERS, ONLINE_MU, ("nature", "va", "adam", False), ("impala", "va", "rmsprop", True)],
    ids=lambda learner: "-".join(map(str, learner)),
)
def test_the_plain_update_exports_without_any_trick(
    learner: tuple[Any, ...], platform: str
) -> None:
    text = lowered(learner, platform)
    assert "stablehlo.convolution" in text
    assert "custom_call" not in text
    assert "optimization_barrier" not in text


def test_the_update_of_the_cpu_has_both_tricks() -> None:
    """Else the test above would look for the wrong words."""
    state, update = learner_of("cpu", *SMALLEST)
    text = update.lower(state, *random_batch(0)).as_text()  # type: ignore[attr-defined]
    assert "custom_call" in text
    assert "optimization_barrier" in text


@pytest.mark.parametrize("platform", ["gpu", "cuda", "rocm", "tpu"])
def test_an_accelerator_gets_the_plain_backend(platform: str) -> None:
    assert backend_for(platform) is PLAIN
    assert not PLAIN.unroll_updates
    assert backend_for("cpu").unroll_updates


def test_an_optimizer_without_a_fused_step_takes_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {"sgd": lambda learning_rate, epsilon: optax.sgd(learning_rate)}
    monkeypatch.setattr("learner.optimizers.OPTIMIZERS", own)
    step = backend_for("cpu").make_step(OptimizerOptions("sgd", 0.5, epsilon=0.0))
    stepped = step(jnp.ones(3), optax.sgd(0.5).init(jnp.ones(3)), jnp.ones(3))
    np.testing.assert_allclose(stepped.params, np.full(3, 0.5))
    np.testing.assert_allclose(stepped.grad_norm, np.sqrt(3), rtol=1e-6)


def test_parameters_start_the_same_on_every_backend() -> None:
    plain, on_cpu = (
        make_network(
            NETWORKS["tiny"], 2, value_head=True, behavior_head=True, normalize=True, layers=layers
        ).init(jax.random.PRNGKey(0))
        for layers in (PLAIN.layers, backend_for("cpu").layers)
    )
    assert plain.keys() == on_cpu.keys()
    jax.tree.map(np.testing.assert_array_equal, on_cpu, plain)


PROGRAM = """
import sys
from learner.backend import backend_for
from learner.optimizers import OptimizerOptions
def loaded():
    return sorted(name for name in sys.modules if name == "numba" or name.startswith("learner.cpu"))
options = OptimizerOptions("adam", 1e-3, 1e-3)
plain = backend_for("gpu")
plain.make_step(options)
plain.prepare_process()
print("accelerator", loaded())
actor = backend_for("cpu").layers
print("actor", "numba" in loaded())
backend_for("cpu").make_step(options)
print("learner", "numba" in loaded())
"""


def test_an_accelerator_loads_no_trick_and_an_actor_no_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["accelerator []", "actor False", "learner True"]
