"""An agent: what it makes of a stack, how it acts, and how it plays."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from launch import build
from launch.agent.agent import Agent
from launch.agent.stored_params import StoredParams
from launch.config import Config
from launch.errors import InputError
from learner.acting import acting_params
from tests.launch.tiny_run import tiny_config

STACKS = np.random.default_rng(0).integers(0, 255, (3, 4, 84, 84), np.uint8)


def params_of(config: Config) -> Any:
    """Parameters that tell stacks and actions apart; those of a fresh network end in zeros."""
    state, _ = build.make_learner(config)
    rng = np.random.default_rng(1)
    return {
        module: {
            name: np.asarray(leaf + 0.1 * rng.normal(size=leaf.shape), np.float32)
            for name, leaf in leaves.items()
        }
        for module, leaves in state.params.items()
    }


def make_agent(config: Config, params: Any = None) -> Agent:
    return Agent(config, StoredParams(params_of(config) if params is None else params, 7, 1600))


@pytest.mark.parametrize("algorithm", ["va", "behavior_dueling", "dueling", "q"])
def test_an_agent_has_the_heads_that_its_algorithm_learns(algorithm):
    heads = make_agent(tiny_config(algorithm=algorithm)).heads(STACKS)
    assert (heads.value is None, heads.advantage is None) == (algorithm == "q",) * 2
    assert (heads.mu is None) == (algorithm in ("dueling", "q"))
    assert heads.q is not None and heads.q.shape == (3, 6)
    if heads.value is not None:
        np.testing.assert_allclose(heads.value[:, None] + heads.advantage, heads.q, atol=1e-5)
        baseline = np.full((3, 6), 1 / 6) if heads.mu is None else heads.mu
        np.testing.assert_allclose(baseline.sum(axis=1), 1.0, atol=1e-5)
        np.testing.assert_allclose((baseline * heads.advantage).sum(axis=1), 0.0, atol=1e-5)


def test_one_stack_is_seen_and_acted_on_as_in_a_batch():
    agent = make_agent(tiny_config())
    together, alone = agent.heads(STACKS), agent.heads(STACKS[1])
    for batch, single in zip(together, alone, strict=True):
        np.testing.assert_allclose(batch[1], single, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(agent.act(STACKS), together.q.argmax(axis=1))
    assert agent.act(STACKS[1]) == together.q[1].argmax()
    assert agent.action_names[agent.act(STACKS[1])] in (
        "NOOP",
        "FIRE",
        "RIGHT",
        "LEFT",
        "RIGHTFIRE",
        "LEFTFIRE",
    )


def test_what_acts_alone_sees_the_same_but_for_v_mu_and_q():
    config = tiny_config()
    params = params_of(config)
    whole, acting = make_agent(config, params), make_agent(config, acting_params(params))
    heads, expected = acting.heads(STACKS), whole.heads(STACKS).advantage
    assert (heads.value, heads.mu, heads.q) == (None, None, None)
    np.testing.assert_allclose(
        heads.advantage, expected - expected.mean(axis=1, keepdims=True), atol=1e-5
    )
    np.testing.assert_array_equal(acting.act(STACKS), whole.act(STACKS))


@pytest.mark.parametrize("stack", [np.zeros((84, 84, 4), np.uint8), np.zeros((4, 84, 84))])
def test_what_is_no_stack_is_refused(stack):
    agent = make_agent(tiny_config())
    for method in (agent.heads, agent.act):
        with pytest.raises(ValueError, match=r"is not one of uint8\[4, 84, 84\]"):
            method(stack)


def test_an_episode_shows_what_playing_it_scores():
    config = tiny_config()
    environment = dataclasses.replace(config.environment, max_episode_frames=1200)
    agent = make_agent(dataclasses.replace(config, environment=environment))
    scores = agent.play(episodes=1, epsilon=0.5, seed=3)
    *played, last = agent.episode(epsilon=0.5, seed=3)
    assert len(played) == scores.steps[0] and last.score == scores.returns[0] < 0
    assert {moment.greedy for moment in played} == {True, False}
    for moment in played[::50]:
        assert moment.greedy == (moment.action == agent.act(moment.stack))
        np.testing.assert_array_equal(moment.heads.q, agent.heads(moment.stack).q)
    assert len(agent.play(episodes=3, seed=4).returns) == 3


def test_an_impossible_rate_seed_or_number_is_refused():
    agent = make_agent(tiny_config())
    with pytest.raises(InputError, match="episodes=0"):
        agent.play(episodes=0)
    with pytest.raises(InputError, match="epsilon=2"):
        agent.play(epsilon=2.0)
    with pytest.raises(InputError, match="seed=-1"):
        next(agent.episode(seed=-1))
