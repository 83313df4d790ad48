"""What holds for single fields of a config.json, for those who read it and those who write it."""

from collections.abc import Mapping
from types import MappingProxyType

# Where and how fast a run runs, not what it learns: runs that differ in these alone are runs of
# the same thing, and a run may be continued with others.
OPERATIONAL_FIELDS = frozenset(
    {
        "frames",
        "actors",
        "envs_per_actor",
        "device",
        "stale_params_seconds",
        "port",
        "colocate",
        "sample_streams",
        "report_seconds",
        "stuck_seconds",
        "checkpoint_seconds",
        "replay_checkpoint_seconds",
        "keep_checkpoints",
        "publish_period_updates",
        "eval_period_frames",
    }
)

# How the game is played, beside its score: what is not the usual is in the name of a method. A run
# without the field is of an earlier version, and was played the usual way.
USUAL_PROTOCOL: Mapping[str, float] = MappingProxyType({"sticky_actions": 0.0})

# The name in run directories of earlier versions -> the name now.
RENAMED_FIELDS: Mapping[str, str] = MappingProxyType({"behaviour_target": "behavior_target"})
