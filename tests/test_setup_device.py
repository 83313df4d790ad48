"""`make setup DEVICE=...`: what it would install, and the locks that it installs from."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
VERSIONS, DEVICES = ("3.11", "3.10"), ("cuda", "tpu")
DEVICE_LOCKS = [(version, device) for version in VERSIONS for device in DEVICES]


def pins(lock: str) -> dict[str, str]:
    """Package -> version and hashes, as a lock has them."""
    return dict(re.findall(r"^([\w-]+)==((?:.*\\\n)*.*)", (ROOT / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize(("version", "device"), DEVICE_LOCKS)
def test_a_device_lock_holds_only_what_comes_on_top(version, device):
    base, extra = (
        pins(f"requirements-{version}.lock"),
        pins(f"requirements-{version}-{device}.lock"),
    )
    assert base and extra
    assert not base.keys() & extra.keys()
    assert all("--hash=sha256:" in pin for pin in extra.values())
    assert "://" not in (ROOT / f"requirements-{version}-{device}.lock").read_text()
    assert ("libtpu" if device == "tpu" else "nvidia-cudnn-cu12") in extra


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plugin_is_of_the_same_version_as_jax(version):
    def number(pin: str) -> str:
        return pin.split()[0]

    jax = number(pins(f"requirements-{version}.lock")["jax"])
    cuda = pins(f"requirements-{version}-cuda.lock")
    assert number(cuda["jax-cuda12-plugin"]) == number(cuda["jax-cuda12-pjrt"]) == jax


@pytest.fixture
def checkout(tmp_path):
    """What `make setup` reads, with a .venv that was set up for a device."""
    for path in (ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("requirements-*")):
        shutil.copy(path, tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")

    def set_up(device: str | None) -> pathlib.Path:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv" / "pyvenv.cfg").write_text("version = 3.11.7\n")
        if device is not None:
            (tmp_path / ".venv" / f".setup-3.11{device}").touch()
        return tmp_path

    return set_up


def planned(folder: pathlib.Path, *flags: str) -> str:
    """The commands that `make setup` would run."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "setup", *flags],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_new_environment_is_for_the_cpu_unless_told(checkout):
    folder = checkout(None)
    assert "-r requirements-3.11.lock" in planned(folder)
    assert "cuda.lock" not in planned(folder) and "touch .venv/.setup-3.11\n" in planned(folder)
    with_cuda = planned(folder, "DEVICE=cuda")
    assert with_cuda.index("-r requirements-3.11.lock") < with_cuda.index("3.11-cuda.lock")
    assert "touch .venv/.setup-3.11-cuda\n" in with_cuda


@pytest.mark.parametrize("device", ["", "-cuda", "-tpu"])
def test_an_environment_keeps_its_device_and_follows_its_locks(checkout, device):
    folder = checkout(device)
    assert "up to date" in planned(folder) or "Nothing to be done" in planned(folder)
    changed = folder / f"requirements-3.11{device}.lock"
    os.utime(changed, (2**31, 2**31))
    again = planned(folder)
    assert f"-r {changed.name}" in again and "--clear" not in again


@pytest.mark.parametrize(
    ("built", "asked"), [("", "cuda"), ("-cuda", "cpu"), ("-cuda", "tpu"), ("-tpu", "cuda")]
)
def test_another_device_is_another_environment(checkout, built, asked):
    plan = planned(checkout(built), f"DEVICE={asked}")
    assert "--clear" in plan
    assert re.findall(r"-r requirements-3.11-(\w+).lock", plan) == ([asked] * (asked != "cpu"))


def test_agents_of_a_checkout_that_its_group_can_write_to_are_made_ones_own(checkout):
    """Under umask 002, as many have it, `vantage watch agents/pong` would refuse them."""
    folder = checkout(None)
    [command] = [line for line in planned(folder).splitlines() if "agents" in line]
    (folder / "agents" / "pong").mkdir(parents=True)
    (folder / "agents" / "pong").chmod(0o775)
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert (folder / "agents" / "pong").stat().st_mode & 0o777 == 0o755


def test_an_unknown_device_is_refused(checkout):
    assert "DEVICE=gpu is none of cpu cuda tpu" in planned(checkout(""), "DEVICE=gpu")
