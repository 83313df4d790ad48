"""Actors: environments, exploration, n-step windows, and the loops that play and evaluate.

Nothing here knows about Reverb, Launchpad or TensorFlow: parameters come in and experience goes out
through callables.
"""
