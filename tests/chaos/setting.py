"""The run that faults happen to, and how long it may take to recover."""

from tests.launch.tiny_run import TINY_FLAGS

N_STEP = 5
TARGET_RATIO = 8.0
FRAMES = 1_000_000_000  # never reached
TOTAL_STEPS = FRAMES // 4
RECOVERY_SECONDS = 180.0
FLAGS = (
    *TINY_FLAGS,
    f"--frames={FRAMES}",
    f"--eval-period-frames={FRAMES}",
    "--envs-per-actor=2",
    f"--n-step={N_STEP}",
    f"--samples-per-insert={TARGET_RATIO:g}",
    "--updates-per-dispatch=4",
    "--checkpoint-seconds=3",
    "--replay-checkpoint-seconds=5",
)
