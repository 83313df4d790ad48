"""The learner: networks, losses, the update, and the loop around it.

Nothing here knows about Reverb, Launchpad or TensorFlow: batches come in and parameters go out
through callables, so the mathematics runs on any current Python and JAX.
"""
