"""The Kubernetes engine: one Job for the learner's host, one Indexed Job for the actors' hosts.

Plain objects, no operator. kubectl does the talking, as sbatch does for Slurm; what a pod runs is
`vantage host` (launch/engines/host.py), the same as by hand. No file system is shared: hosts are
given their config and their keys, and the learner's has a volume for the run directory.
"""
