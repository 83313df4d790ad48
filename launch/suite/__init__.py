"""`vantage suite`: a grid of runs, here or on Slurm."""
