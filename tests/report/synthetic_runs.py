"""Run directories without training: a config and evaluations, as a run would have written them."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from report.metrics_file import MetricsFile

REFERENCES = {"pong": (-20.7, 14.6), "breakout": (1.7, 30.5), "freeway": (0.0, 29.6)}


def write_run(
    path: pathlib.Path,
    *,
    game: str = "pong",
    algorithm: str = "va",
    seed: int = 1,
    returns: Sequence[float | None] = (-20.0, -10.0, 5.0),
    period_frames: int = 1000,
    total_frames: int | None = None,
    **settings: Any,
) -> pathlib.Path:
    """One run; `settings` go into the learner's section of its config."""
    path.mkdir(parents=True)
    config = {
        "environment": {"game": game, "full_action_set": True, "action_repeat": 4},
        "learner": {"algorithm": algorithm, "n_step": 5, **settings},
        "frames": total_frames or period_frames * len(returns),
        "seed": seed,
    }
    facts = {"versions": {"python": "3.10.13", "jax": "0.6.2"}, "commit": "abc"}
    (path / "config.json").write_text(json.dumps({"config": config, **facts}))
    rows = []
    for index, score in enumerate(returns):
        frames = period_frames * (index + 1)
        stamp = {"time": 100.0 + 10.0 * index, "frames": frames}
        rows.append({**stamp, "role": "learner", "updates": index})
        rows.append({**stamp, "role": "evaluator", "eval_return": score, "eval_episodes": 4})
    MetricsFile(path / "metrics.jsonl").append(rows)
    return path


def write_suite(
    folder: pathlib.Path,
    *,
    games: Sequence[str] = ("breakout", "pong"),
    algorithms: Sequence[str] = ("va", "behavior_dueling", "dueling", "q"),
    seeds: int = 3,
    points: int = 12,
    period_frames: int = 500_000,
) -> pathlib.Path:
    """Saturating curves with noise, each algorithm a little behind the one before it."""
    for rank, algorithm in enumerate(algorithms):
        for number, game in enumerate(games):
            random, human = REFERENCES[game]
            for seed in range(1, seeds + 1):
                rng = np.random.default_rng([rank, number, seed])
                rise = 1 - np.exp(-np.arange(1, points + 1) / (3 + rank))
                normalized = (1.1 - 0.12 * rank) * rise + rng.normal(0, 0.06, points)
                write_run(
                    folder / f"{game}-{algorithm}-{seed}",
                    game=game,
                    algorithm=algorithm,
                    seed=seed,
                    returns=[float(x) for x in random + normalized * (human - random)],
                    period_frames=period_frames,
                )
    return folder
