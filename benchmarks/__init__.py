"""Where the time goes: stages against their own limits, whole runs, and how far replay scales."""
