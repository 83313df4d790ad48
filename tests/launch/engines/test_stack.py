"""All hosts of a run have one stack: an environment with another is refused."""

import json
import re
import sys

import pytest

from launch.engines import preflight
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord
from launch.errors import ExitCode
from launch.run_dir import RunDir


def store_version(run_dir: RunDir, name: str, version: str) -> None:
    """As if the run had been started in another environment."""
    stored = json.loads(run_dir.config_file.read_text())
    stored["versions"][name] = version
    run_dir.config_file.write_text(json.dumps(stored))


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("python", "3.9.1", r"has Python 3\.\d+ where the run has 3\.9; use"),
        ("dm-reverb", "0.1.0", r"has dm-reverb \S+ where the run has 0\.1\.0; use"),
    ],
)
def test_a_host_with_another_stack_may_not_join(hosts_run, capsys, name, version, said):
    store_version(hosts_run, name, version)
    assert preflight.main(["", str(hosts_run.root), "learner", "", ""]) == ExitCode.FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(said, line)
    assert "use the environment it was started with" in line


def test_another_patch_of_the_same_python_may_join(hosts_run):
    store_version(hosts_run, "python", f"{sys.version_info.major}.{sys.version_info.minor}.99")
    hosts_run.check_stack()


def test_a_run_is_not_scaled_from_another_stack(refuse, hosts_run):
    EngineRecord("slurm", "c0ffee", HostsOptions(2, 3), SlurmOptions()).save(hosts_run)
    store_version(hosts_run, "jax", "0.0.1")
    refused = refuse("scale", str(hosts_run.root), "--actor-hosts", "3")
    assert "where the run has 0.0.1" in refused
