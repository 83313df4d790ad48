"""What the nodes of a run must agree on about Reverb's tables."""

import reverb

from actors.n_step import item_rows
from actors.observation import FRAME_SHAPE, STACK_SIZE
from launch.config import Config
from reverb_server import tables
from reverb_server.rate_limit import RateLimit


def item_layout(config: Config) -> tables.ItemLayout:
    """The sizes of an item, for whoever writes, holds or samples them."""
    return tables.ItemLayout(
        rows=item_rows(config.learner.n_step, config.item_transitions),
        transitions=config.item_transitions,
        frame_shape=FRAME_SHAPE,
        stack_size=STACK_SIZE,
    )


def replay_tables(config: Config, rate_limit: RateLimit) -> list[reverb.Table]:
    """The tables of a run."""
    replay = config.replay
    return tables.make_tables(
        layout=item_layout(config),
        capacity_steps=replay.replay_capacity_steps,
        rate_limit=rate_limit,
        prioritization=prioritization_of(config),
    )


def prioritization_of(config: Config) -> tables.Prioritization | None:
    """How replay is prioritized; None means uniform sampling."""
    if not config.replay.prioritized:
        return None
    return tables.Prioritization(config.replay.priority_alpha, config.replay.priority_beta)
