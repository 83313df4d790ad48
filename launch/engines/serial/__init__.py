"""A whole run in one process, deterministic for a seed."""
