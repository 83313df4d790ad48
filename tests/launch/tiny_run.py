"""A config small enough to train for a few updates in a test, with every real part in it."""

import dataclasses

from launch.config import PRESETS, Config

TINY_FLAGS = (
    "--network=tiny",
    "--frames=6000",
    "--warmup-steps=200",
    "--replay-capacity-steps=5000",
    "--publish-period-updates=20",
    "--eval-period-frames=1000000",
    "--eval-episodes=1",
    "--max-episode-frames=400",
    "--report-seconds=0.5",
    "--envs-per-actor=4",
    "--samples-per-insert=2",
    "--updates-per-dispatch=1",  # four in one call take twice as long to compile
)


def tiny_config(**learner: object) -> Config:
    """The `cpu` preset, shrunk; `learner` overrides fields of the learner."""
    cpu = PRESETS["cpu"]
    return dataclasses.replace(
        cpu,
        environment=dataclasses.replace(cpu.environment, max_episode_frames=400),
        actor=dataclasses.replace(cpu.actor, actors=2, envs_per_actor=2),
        replay=dataclasses.replace(
            cpu.replay, warmup_steps=200, replay_capacity_steps=1000, samples_per_insert=8.0
        ),
        learner=dataclasses.replace(
            cpu.learner,
            **{
                "network": "tiny",
                "updates_per_dispatch": 1,
                "publish_period_updates": 10,
                "target_period_updates": 20,
                **learner,
            },
        ),
        evaluator=dataclasses.replace(cpu.evaluator, eval_period_frames=1_000_000, eval_episodes=1),
        frames=1600,
        report_seconds=0.2,
    )
