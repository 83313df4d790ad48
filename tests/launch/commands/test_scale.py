"""`vantage scale` without a cluster."""

import pytest


@pytest.mark.parametrize("kind", ["local_run", "hosts_run"])
def test_only_a_run_on_a_cluster_is_scaled(refuse, request, kind):
    run = str(request.getfixturevalue(kind).root)
    assert "is not a run on Slurm or Kubernetes" in refuse("scale", run, "--actor-hosts", "3")
