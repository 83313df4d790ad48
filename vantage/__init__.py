"""Vantage from Python: load what a run has learned, train, read what a run has measured.

    agent = vantage.load("runs/breakout")
    agent.play(episodes=10).returns.mean()
    run = vantage.train(vantage.make_config(game="breakout", frames=1_000_000))
    vantage.read_metrics(run, "evaluator")["eval_return"]

What is here is all that is meant for scripts and notebooks; docs/python.md tells more. Bad input
raises `InputError`, in one line that says the way out.
"""

from actors.evaluate import EpisodeScores
from launch.agent.agent import Agent, Moment
from launch.agent.agent import load_agent as load
from launch.agent.heads import Heads
from launch.config import PRESETS, Config
from launch.errors import InputError
from launch.versions import VERSION as __version__
from vantage.metrics import read_metrics
from vantage.settings import make_config
from vantage.training import TrainingError, make_program, train

__all__ = [
    "PRESETS",
    "Agent",
    "Config",
    "EpisodeScores",
    "Heads",
    "InputError",
    "Moment",
    "TrainingError",
    "__version__",
    "load",
    "make_config",
    "make_program",
    "read_metrics",
    "train",
]
