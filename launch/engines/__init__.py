"""Who starts the processes of a run: this machine, Slurm, you on hosts of your own, or nobody."""
