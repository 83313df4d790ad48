"""The run that is measured: the paper's agent, with two actors."""

import dataclasses

from launch.config import PRESETS, Config
from launch.profile.command import for_profiling


def paper_config(network: str) -> Config:
    """The paper's agent on two actors, with a replay that fits a laptop."""
    paper = PRESETS["paper"]
    return for_profiling(
        dataclasses.replace(
            paper,
            learner=dataclasses.replace(paper.learner, network=network),
            replay=dataclasses.replace(paper.replay, replay_capacity_steps=100_000),
        )
    )
