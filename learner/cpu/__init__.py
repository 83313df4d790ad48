"""The same results as the plain learner, quicker on XLA:CPU; never traced on an accelerator."""
