"""`vantage doctor`: is this machine ready to train, and if not, what to do about it.

Imports the standard library only, so that it can tell what is missing where anything may be.
"""
