"""What the parameters of a run can be, for those who act with them."""

from launch.config import Config
from learner import acting
from learner.networks import Network
from reverb_server.params_check import Counters, ParamsLimits

# Steps in flight when training ends, and far more.
_SPARE_STEPS = 1_000_000
# A run may have been resumed with another ratio or batch size, so updates are bounded loosely.
_MAX_UPDATES_PER_STEP = 100


def params_limits(config: Config, network: Network) -> ParamsLimits:
    """The number of values of the network, and counters that no run of this config exceeds."""
    most_steps = 2 * config.total_steps + _SPARE_STEPS
    return ParamsLimits(
        acting.num_acting_values(network),
        Counters(version=_MAX_UPDATES_PER_STEP * most_steps, steps=most_steps),
    )
