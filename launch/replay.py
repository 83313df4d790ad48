"""What a config asks of replay: its rate limit, the streams that sample, and room in memory."""

from launch.config import Config
from launch.errors import InputError
from launch.machine.limits import usable_cores
from reverb_server.rate_limit import RateLimit, RateLimitError, make_rate_limit

# A stream keeps about one core busy with unpacking, and the learner needs others.
LEAST_STREAMS, _MOST_STREAMS = 2, 8
# Two compressed frames' worth of a busy game, with Reverb's own records; Pong needs a third.
_BYTES_PER_STEP = 4096


def replay_limit(config: Config) -> RateLimit:
    """The rate limit of the replay table; refuses settings that can deadlock."""
    try:
        return make_rate_limit(
            samples_per_insert=config.replay.samples_per_insert,
            warmup_steps=config.replay.warmup_steps,
            batch_size=config.sampled_transitions,
            in_flight_batches=sample_streams(config),
            item_transitions=config.item_transitions,
            error_buffer=config.replay.error_buffer,
        )
    except RateLimitError as error:
        raise InputError(str(error)) from None


def sample_streams(config: Config, cores: int | None = None) -> int:
    """Streams the learner samples by, with the default filled in from the cores of its host.

    `cores` are those of another host than this one.
    """
    given = config.replay.sample_streams
    if given is not None:
        return given
    return max(LEAST_STREAMS, min((cores or usable_cores()) // 2, _MOST_STREAMS))


def replay_bytes_estimate(config: Config) -> int:
    """Resident bytes of a full replay, on the safe side."""
    return config.replay.replay_capacity_steps * _BYTES_PER_STEP
