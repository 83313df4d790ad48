"""Parameters and learner states in the folder of a run."""
