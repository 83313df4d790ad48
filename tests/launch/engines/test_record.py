"""The stored engine of a run."""

import pytest

from launch.engines.record import load_engine
from launch.errors import InputError


def test_a_damaged_engine_file_is_refused(hosts_run):
    hosts_run.engine_file.write_text('{"engine": "slurm"}')
    with pytest.raises(InputError, match=r"engine\.json cannot be read"):
        load_engine(hosts_run)
