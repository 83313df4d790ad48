"""The gate: other hosts of a run reach its replay through mutual TLS, and nobody else does.

`gate` is the end on the learner's host, `tunnel` the end on an actor host; both run the same relay.
"""
