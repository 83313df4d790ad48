"""Where the time goes: stages against their own limits, whole runs, and how far replay scales."""

import os

# Before TensorFlow is imported, which else tells of its processor.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
