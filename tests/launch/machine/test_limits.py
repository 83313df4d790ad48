"""Memory and cores within the limits of cgroups, of both versions."""

import os

import pytest

from launch.machine import limits

GIB = 2**30
NO_LIMIT_V1 = "9223372036854771712"


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """A machine with 16 GiB free and 8 cores; writes files of cgroups, and which are ours."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {16 * 2**20} kB\n")
    monkeypatch.setattr(limits, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(limits, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(limits, "_OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))

    def write(own, **files):
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    return write


def test_this_machine_has_memory_and_cores():
    assert 0 < limits.available_bytes() < 2**50
    assert 1 <= limits.usable_cores() <= (os.cpu_count() or 1)


def test_without_limits_it_is_what_the_kernel_says(cgroups):
    assert (limits.available_bytes(), limits.usable_cores()) == (16 * GIB, 8)
    cgroups(
        "4:memory:/\n3:cpu,cpuacct:/\n0::/\n",
        **{
            "memory.max": "max",
            "memory.current": 1,
            "cpu.max": "max 100000",
            "memory/memory.limit_in_bytes": NO_LIMIT_V1,
            "memory/memory.usage_in_bytes": 5,
            "cpu/cpu.cfs_quota_us": -1,
            "cpu/cpu.cfs_period_us": 100000,
        },
    )
    assert (limits.available_bytes(), limits.usable_cores()) == (16 * GIB, 8)


def test_the_tightest_limit_above_us_counts_in_version_2(cgroups):
    cgroups(
        "0::/a/b\n",
        **{
            "a/memory.max": 6 * GIB,
            "a/memory.current": 4 * GIB,
            "a/cpu.max": "150000 100000",
            "a/b/memory.max": "max",
            "a/b/memory.current": GIB,
        },
    )
    assert (limits.available_bytes(), limits.usable_cores()) == (2 * GIB, 2)


def test_the_tightest_limit_above_us_counts_in_version_1(cgroups):
    cgroups(
        "5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/x\n0::/\n",
        **{
            "memory/a/memory.limit_in_bytes": 8 * GIB,
            "memory/a/memory.usage_in_bytes": 5 * GIB,
            "memory/a/b/memory.limit_in_bytes": NO_LIMIT_V1,
            "memory/a/b/memory.usage_in_bytes": GIB,
            "cpu/a/cpu.cfs_quota_us": 400000,
            "cpu/a/cpu.cfs_period_us": 100000,
        },
    )
    assert (limits.available_bytes(), limits.usable_cores()) == (3 * GIB, 4)


def test_a_container_sees_its_limit_at_the_root_whatever_its_path_says(cgroups):
    limit = {"memory.limit_in_bytes": 4 * GIB, "memory.usage_in_bytes": GIB}
    cgroups("4:memory:/docker/abc\n", **{f"memory/{name}": n for name, n in limit.items()})
    assert limits.available_bytes() == 3 * GIB


@pytest.mark.parametrize(
    ("folder", "limit", "used", "prefix"),
    [
        ("", "memory.max", "memory.current", ""),
        ("memory/", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ],
)
def test_files_kept_in_memory_are_free(cgroups, folder, limit, used, prefix):
    statistics = f"{prefix}inactive_file {GIB}\n{prefix}active_file {GIB}\n{prefix}anon {GIB}"
    files = {limit: 4 * GIB, used: 4 * GIB, "memory.stat": statistics}
    cgroups("4:memory:/\n0::/\n", **{f"{folder}{name}": text for name, text in files.items()})
    assert limits.available_bytes() == 2 * GIB
