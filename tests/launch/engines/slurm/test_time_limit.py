"""Time limits as sbatch reads them."""

import pytest

from launch.engines.slurm.time_limit import time_limit_seconds


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("2:00:05", 7205),
        ("1-0", 86400),
        ("2-12:30", 217800),
        ("1-00:00:10", 86410),
        ("UNLIMITED", None),
        ("soon", None),
    ],
)
def test_time_limits_are_read_as_sbatch_reads_them(time, seconds):
    assert time_limit_seconds(time) == seconds
