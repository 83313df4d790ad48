"""The commands of `vantage` that are not engines: each reads a run, or this machine, and tells."""
