"""An agent as a run has stored it: which parameters, what they make of a stack, how they play."""
