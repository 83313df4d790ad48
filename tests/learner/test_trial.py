"""Parts of the user's own, tried on shapes: what is let through, and what is said of the rest."""

import subprocess
import sys

import pytest

from learner.losses import ALGORITHMS, Errors, QLearning
from learner.networks import NETWORKS, Convolutional
from learner.trial import try_architecture, try_loss


class _OneQ(QLearning):
    def q_values(self, heads):
        return heads.advantage[0]


class _NoPolicy(QLearning):
    def bootstrap_policy(self, online_t):
        return None


class _BareErrors(QLearning):
    def errors(self, online_tm1, a_tm1, backup):
        return super().errors(online_tm1, a_tm1, backup).regressed


class _ScalarErrors(QLearning):
    def errors(self, online_tm1, a_tm1, backup):
        return Errors(backup, backup)


class _Failing(QLearning):
    def errors(self, online_tm1, a_tm1, backup):
        raise ValueError("of two lines\nand more")


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_our_own_losses_pass(name):
    try_loss(ALGORITHMS[name])


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_our_own_networks_pass(name):
    try_architecture(NETWORKS[name])


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (_OneQ(), r"q_values must return an array \[A\], not \(\)$"),
        (_NoPolicy(), r"bootstrap_policy must return an array \[A\], not None$"),
        (_BareErrors(), r"errors must return Errors\(regressed \[k\], td \[\]\), not \(1,\)$"),
        (_ScalarErrors(), r"errors must return Errors"),
        (_Failing(), "errors fails: ValueError: of two lines$"),
    ],
)
def test_a_loss_of_another_shape_is_refused_by_its_method(loss, said):
    with pytest.raises(ValueError, match=said):
        try_loss(loss)


class _Unflattened(Convolutional):
    def torso(self, pixels, layers):
        return pixels


@pytest.mark.parametrize(
    ("architecture", "said"),
    [
        (Convolutional(((2, 8, 8),) * 9), "nothing is left of the picture where "),
        (Convolutional((), hidden=-1), "init fails: "),
        (_Unflattened(()), r"torso must return an embedding \[B, D\]; flatten it"),
    ],
)
def test_an_architecture_that_cannot_be_built_is_refused(architecture, said):
    with pytest.raises(ValueError, match=said):
        try_architecture(architecture)


def test_trying_touches_no_device():
    """A launcher tries what its learner will use, and must leave the accelerator to it."""
    code = """
from jax._src import xla_bridge
from learner.losses import ALGORITHMS
from learner.networks import NETWORKS, Convolutional
from learner.trial import try_architecture, try_loss
try_loss(ALGORITHMS["va"])
try_architecture(NETWORKS["tiny"])
assert not xla_bridge.backends_are_initialized()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
