"""Config fields that say where and how fast a run runs, not what it learns.

Runs that differ in these alone are runs of the same thing, and a run may be continued with others.
"""

OPERATIONAL_FIELDS = frozenset(
    {
        "frames",
        "actors",
        "envs_per_actor",
        "stale_params_seconds",
        "port",
        "colocate",
        "report_seconds",
        "checkpoint_seconds",
        "replay_checkpoint_seconds",
        "keep_checkpoints",
        "publish_period_updates",
        "eval_period_frames",
    }
)
