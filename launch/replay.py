"""What a config asks of replay: its rate limit, the batches in flight, and room in memory."""

from launch.config import Config
from launch.errors import InputError
from reverb_server.rate_limit import RateLimit, RateLimitError, make_rate_limit

IN_FLIGHT_BATCHES = 2
# Two compressed frames' worth of a busy game, with Reverb's own records; Pong needs about half.
_BYTES_PER_STEP = 4096


def replay_limit(config: Config) -> RateLimit:
    """The rate limit of the replay table; refuses settings that can deadlock."""
    try:
        return make_rate_limit(
            samples_per_insert=config.replay.samples_per_insert,
            warmup_steps=config.replay.warmup_steps,
            batch_size=config.sampled_items,
            in_flight_batches=IN_FLIGHT_BATCHES,
            error_buffer=config.replay.error_buffer,
        )
    except RateLimitError as error:
        raise InputError(str(error)) from None


def replay_bytes_estimate(config: Config) -> int:
    """Resident bytes of a full replay, on the safe side."""
    return config.replay.replay_capacity_steps * _BYTES_PER_STEP
