"""What a run of a config can reach, for those who hear of it over a port that is open to others."""

from launch.config import Config
from learner import acting
from learner.networks import Network
from reverb_server.params_check import Counters, ParamsLimits

# Steps in flight when training ends, and far more.
_SPARE_STEPS = 1_000_000
# A run may have been resumed with another ratio or batch size, so updates are bounded loosely.
_MAX_UPDATES_PER_STEP = 100


def most_steps(config: Config) -> int:
    """Agent steps that no run of this config exceeds."""
    return 2 * config.total_steps + _SPARE_STEPS


def params_limits(config: Config, network: Network) -> ParamsLimits:
    """The number of values of the network, and counters that no run of this config exceeds."""
    steps = most_steps(config)
    return ParamsLimits(
        acting.num_acting_values(network),
        Counters(version=_MAX_UPDATES_PER_STEP * steps, steps=steps),
    )
