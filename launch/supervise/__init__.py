"""Runs nodes as processes on one host: starts, restarts and stops them, and says how they are."""
