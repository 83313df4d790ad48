"""The run directory is its owner's, and one run's at a time."""

import os
import stat

import pytest

from launch.errors import InputError
from launch.run_dir import RunDir
from tests.launch.tiny_run import tiny_config


def test_a_run_directory_is_the_owners_alone(tmp_path):
    old = os.umask(0)
    try:
        RunDir(tmp_path / "run").create(tiny_config())
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_a_run_directory_has_one_run_at_a_time(local_run):
    with local_run.lock(), pytest.raises(InputError, match="in use"):
        local_run.lock()
    local_run.lock().close()
