"""The Slurm engine: one job for the learner's host, one job array for the actors' hosts.

Slurm places, queues, limits and requeues; the run directory is where the hosts meet. What a job
runs is `vantage host` (launch/engines/host.py), the same as by hand. A suite is one job array, each
task a `vantage train` on one host.
"""
