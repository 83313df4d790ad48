"""Snapshots of runs that report everything, or what a test asks for."""

from launch.monitor.snapshot import RunState, Snapshot
from report.metrics_file import Row
from tests.report.metric_rows import actor_row, learner_row


def snapshot_of(
    rows: list[Row], *, total_frames: int = 10**9, target_samples_per_insert: float = 8.0
) -> Snapshot:
    state = RunState(total_frames=total_frames, target_samples_per_insert=target_samples_per_insert)
    state.add(rows)
    return state.snapshot()


def busy_run(num_actors: int = 2, loss: float | None = 0.0125) -> Snapshot:
    """A run of 12.5M of 200M frames at 5,000 frames/s with every number reported."""
    rows: list[Row] = []
    for k in range(3):
        time, frames = 1000.0 + 10 * k, 12_400_000 + 50_000 * k
        rows.append(
            learner_row(
                time,
                frames,
                updates=310_221,
                updates_per_second=27.3,
                loss=loss,
                data_wait_fraction=0.04,
                samples_per_insert=7.98,
                params_version=1204,
            )
        )
        for i in range(num_actors):
            rows.append(
                actor_row(
                    i,
                    time,
                    frames,
                    frames_per_second=2500.0 - i,
                    params_age_seconds=1.25 + i,
                    insert_wait_fraction=0.07,
                    epsilon=0.015,
                )
            )
            rows.append(actor_row(i, time, frames, episode_return=-12.5, episode_frames=9000))
    last = {"time": 1020.0, "frames": 12_500_000}
    rows.append({**last, "role": "replay", "size": 1_000_000, "bytes": 3_400_000_000})
    evaluation = {"eval_return": -9.75, "eval_episodes": 10, "human_normalized": 0.31}
    rows.append({**last, "frames": 12_000_000, "role": "evaluator", **evaluation})
    return snapshot_of(rows, total_frames=200_000_000)
