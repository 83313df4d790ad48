"""The name or address that a host tells the others."""

import pytest

from launch.engines.host_address import own_address


def test_a_host_outside_slurm_is_reached_by_its_name(monkeypatch):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "worker7")
    assert own_address() == "worker7"


@pytest.mark.parametrize(
    ("said", "address"), [("NodeName=h1 NodeAddr=10.0.0.7 ", "10.0.0.7"), ("NodeName=h1", "h1")]
)
def test_a_host_of_slurm_is_reached_as_slurm_reaches_it(monkeypatch, tmp_path, said, address):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\n[ \"$*\" = 'show node h1' ] && echo '{said}'\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURMD_NODENAME", "h1")
    assert own_address() == address
