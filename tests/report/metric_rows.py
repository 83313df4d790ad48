"""Rows as roles send them."""

from typing import Any

from report.metrics_file import Row


def learner_row(time: float = 100.0, frames: int = 0, **values: Any) -> Row:
    return {"time": time, "role": "learner", "frames": frames, **values}


def actor_row(index: int, time: float = 100.0, frames: int = 0, **values: Any) -> Row:
    return {"time": time, "role": f"actor/{index}", "frames": frames, **values}
