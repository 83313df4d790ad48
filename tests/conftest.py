"""Settings every test runs under."""

import os

# Before JAX starts: tests run two at a time on small machines, so one thread each is faster.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import jax

from launch import courier_stand_in

# Tests that import Launchpad may do so before any module of `launch`.
courier_stand_in.install_where_needed()

# An accidental [B] against [B, 1] must fail, not broadcast.
jax.config.update("jax_numpy_rank_promotion", "raise")
