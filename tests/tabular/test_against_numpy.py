"""The vectorized learner against a slow one, written from the paper in plain NumPy.

The slow one knows nothing of counts, heads or autodiff: it walks over single samples, writes out
the gradients of L_QL and L_VA by hand, and averages them in both readings of "averaged across all
collected trajectories" (Sections 3 and 4, Appendix C.1).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.losses import ALGORITHMS
from tabular import behavior, control, learning, mdps
from tabular.behavior import Data
from tabular.setting import Gradient, Setting

GAMMA, PERIOD, COPIES = 0.9, 4, 6
NUM_STATES, NUM_ACTIONS = 4, 3
NUM_TRAJECTORIES, NUM_STEPS = 3, 20
# A step per trajectory is as long as twenty per step; both rates move the tables, none diverges.
RATES: dict[Gradient, float] = {"per-step": 0.3, "per-trajectory": 0.05}


class SlowLearner:
    """One algorithm on one list of samples (x, a, r, y)."""

    def __init__(self, name: str, mu: np.ndarray, policy: np.ndarray | None) -> None:
        self.name, self.policy = name, policy
        uniform = np.full_like(mu, 1.0 / NUM_ACTIONS)
        self.nu = uniform if name == "dueling" else mu
        self.v, self.f = np.zeros(NUM_STATES), np.zeros((NUM_STATES, NUM_ACTIONS))

    def backup(self, v: np.ndarray, f: np.ndarray, r: float, y: int) -> float:
        """Eqns 3 and 4, with what each algorithm takes for Q."""
        if self.name == "q":
            q = [f[y, b] for b in range(NUM_ACTIONS)]
        elif self.name == "va":
            q = [v[y] + f[y, b] for b in range(NUM_ACTIONS)]
        else:
            q = [v[y] + f[y, b] - self.center(f, y) for b in range(NUM_ACTIONS)]
        if self.policy is None:
            target = r + GAMMA * max(q)
        else:
            target = r + GAMMA * sum(self.policy[y, b] * q[b] for b in range(NUM_ACTIONS))
        return target - GAMMA * self.center(f, y) if self.name == "va" else target

    def center(self, f: np.ndarray, x: int) -> float:
        return sum(self.nu[x, b] * f[x, b] for b in range(NUM_ACTIONS))

    def gradient(self, x: int, a: int, backup: float) -> tuple[np.ndarray, np.ndarray]:
        """Of half the squared errors at one sample, in V and in f."""
        v, f = np.zeros_like(self.v), np.zeros_like(self.f)
        if self.name == "va":
            v[x] = self.v[x] - backup
            f[x, a] = self.f[x, a] - (backup - self.v[x])
        elif self.name == "q":
            f[x, a] = self.f[x, a] - backup
        else:
            error = self.v[x] + self.f[x, a] - self.center(self.f, x) - backup
            v[x] = error
            for b in range(NUM_ACTIONS):
                f[x, b] = error * ((a == b) - self.nu[x, b])
        return v, f

    def learn(self, samples: list[tuple[int, int, float, int]], gradient: Gradient) -> None:
        # All trajectories are equally long, so the mean over them of sums is the sum over all.
        divisor = len(samples) if gradient == "per-step" else NUM_TRAJECTORIES
        rate = RATES[gradient] / divisor
        for _ in range(COPIES):
            target_v, target_f = self.v.copy(), self.f.copy()
            for _ in range(PERIOD):
                pairs = [
                    self.gradient(x, a, self.backup(target_v, target_f, r, y))
                    for x, a, r, y in samples
                ]
                self.v = self.v - rate * np.sum([v for v, _ in pairs], axis=0)
                self.f = self.f - rate * np.sum([f for _, f in pairs], axis=0)


def small_problem(
    epsilon: float, *, evaluate: bool, estimated: bool, gradient: Gradient = "per-step"
) -> tuple[learning.Problem, list[tuple[int, int, float, int]]]:
    """A problem as the study makes it, and the same data as single samples."""
    mdp = mdps.random_mdp(
        jax.random.key(3), num_states=NUM_STATES, num_actions=NUM_ACTIONS, gamma=GAMMA
    )
    deterministic = behavior.random_deterministic(jax.random.key(4), NUM_STATES, NUM_ACTIONS)
    mu = behavior.mixed_with_uniform(deterministic, jnp.asarray(epsilon))
    counts = behavior.collect(
        jax.random.key(5), mdp, mu, num_trajectories=NUM_TRAJECTORIES, num_steps=NUM_STEPS
    )
    data = Data(jnp.sum(counts, axis=0), NUM_TRAJECTORIES)
    policy = behavior.random_deterministic(jax.random.key(6), NUM_STATES, NUM_ACTIONS)
    problem = control.problem_of(
        mdp,
        data,
        mu,
        policy if evaluate else None,
        Setting(behavior="estimated" if estimated else "known", gradient=gradient),
    )
    samples = []
    for (x, a, y), count in np.ndenumerate(np.asarray(data.counts)):
        samples += [(x, a, float(mdp.return_t[x, a]), y)] * int(count)
    assert len(samples) == NUM_TRAJECTORIES * NUM_STEPS
    return problem, samples


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
@pytest.mark.parametrize("evaluate", [False, True], ids=["control", "evaluation"])
@pytest.mark.parametrize(
    ("epsilon", "estimated", "gradient"),
    [
        (0.6, False, "per-step"),
        (0.6, True, "per-step"),
        (0.0, False, "per-step"),
        (0.6, False, "per-trajectory"),
    ],
)
def test_tables_after_many_updates_are_those_of_the_slow_learner(
    name, evaluate, epsilon, estimated, gradient
):
    problem, samples = small_problem(
        epsilon, evaluate=evaluate, estimated=estimated, gradient=gradient
    )
    learn = functools.partial(
        learning.learn,
        ALGORITHMS[name],
        learning_rate=RATES[gradient],
        target_period_updates=PERIOD,
        target_copies=COPIES,
    )
    tables = jax.jit(learn)(learning.zero_tables(NUM_STATES, NUM_ACTIONS), problem)
    policy = None if problem.policy is None else np.asarray(problem.policy)
    slow = SlowLearner(name, np.asarray(problem.mu), policy)
    slow.learn(samples, gradient)
    if epsilon > 0.0:  # at 0 behavior dueling has nothing to learn in f
        assert np.abs(slow.f).max() > 0.1
    np.testing.assert_allclose(tables.advantage, slow.f, atol=1e-12)
    np.testing.assert_allclose(tables.value, slow.v, atol=1e-12)


def test_value_gradients_of_va_learning_and_behavior_dueling_agree_in_expectation():
    # Appendix D: with target = online tables, and actions weighted by mu.
    problem, _ = small_problem(0.6, evaluate=True, estimated=False)
    key = jax.random.key(7)
    tables = learning.Tables(
        jax.random.normal(key, (NUM_STATES,)), jax.random.normal(key, (NUM_STATES, NUM_ACTIONS))
    )
    problem = problem._replace(weights=problem.mu / NUM_STATES)
    gradients = {}
    for name in ("va", "behavior_dueling"):
        loss = ALGORITHMS[name]
        backups = learning.mean_backups(loss, tables, problem.mu, problem.policy, problem.model)
        gradients[name] = jax.grad(learning.mean_loss)(tables, loss, problem, backups)
    va, dueling = gradients["va"], gradients["behavior_dueling"]
    np.testing.assert_allclose(va.value, dueling.value, atol=1e-12)
    assert np.abs(va.advantage - dueling.advantage).max() > 0.01
