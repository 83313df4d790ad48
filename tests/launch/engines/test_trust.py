"""Whose run directory, whose network: refused unless they are the user's own."""

import os
import pathlib
import stat
import subprocess
import sys

import pytest

from launch.cli import main as cli
from launch.engines import isolate
from launch.errors import InputError
from launch.invocation import vantage_command
from launch.run_dir import RunDir
from tests.launch.tiny_run import tiny_config

ROOT = pathlib.Path(__file__).parents[3]
PACKAGES = ("actors", "learner", "reverb_server", "report", "tabular", "launch")


@pytest.fixture
def run_dir(tmp_path):
    made = RunDir(tmp_path / "run")
    made.create(tiny_config())
    return made


def resume(run_dir, capsys):
    code = cli.run(["train", "--run-dir", str(run_dir.root), "--resume"])
    return code, capsys.readouterr().err


def test_a_run_directory_is_the_owners_alone(tmp_path):
    old = os.umask(0)
    try:
        RunDir(tmp_path / "run").create(tiny_config())
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_run_directory_others_can_write_to_is_refused_untouched(run_dir, capsys, mode):
    before = run_dir.config_file.read_bytes()
    run_dir.root.chmod(mode)
    code, message = resume(run_dir, capsys)
    assert code == 2 and "can be written by others" in message and message.count("\n") == 1
    assert run_dir.config_file.read_bytes() == before
    assert [p.name for p in run_dir.root.iterdir()] == ["config.json"]


def test_a_run_directory_of_someone_else_is_refused(run_dir, capsys, monkeypatch):
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    code, message = resume(run_dir, capsys)
    assert code == 2 and "belongs to user" in message


def test_a_node_does_not_run_in_a_folder_others_can_write_to(run_dir):
    run_dir.root.chmod(0o777)
    with pytest.raises(InputError, match="can be written by others"):
        run_dir.check_trusted()
    done = subprocess.run(
        [sys.executable, "-m", "launch.supervise.node_entry", str(run_dir.root), "monitor", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1 and "can be written by others" in done.stderr


def test_a_run_directory_has_one_run_at_a_time(run_dir):
    with run_dir.lock(), pytest.raises(InputError, match="in use"):
        run_dir.lock()
    run_dir.lock().close()


def test_nothing_of_ours_reads_or_writes_pickles():
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            assert "import pickle" not in text and "cloudpickle" not in text, path
            assert "allow_pickle=True" not in text, path


PROBE = """
import socket
from launch.engines import isolate
try:
    isolate._unshare()
except OSError as error:
    print("refused", error)
    raise SystemExit
isolate._raise_loopback()
with socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    server.listen()
    socket.create_connection(server.getsockname(), 5).close()
print([name for _, name in socket.if_nameindex()])
"""


def test_an_isolated_process_has_a_loopback_and_nothing_else():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if done.stdout.startswith("refused"):
        pytest.skip(f"no user namespaces here: {done.stdout}")
    interfaces = set(done.stdout.split("'")[1::2])
    # Kernels add tunnels of their own, which lead nowhere while they are down.
    assert "lo" in interfaces and not any(name.startswith(("eth", "en")) for name in interfaces)


def test_an_isolated_command_is_the_same_command(tmp_path):
    flags = ("--isolate", "--game", "pongg", "--run-dir", str(tmp_path / "run"))
    done = subprocess.run(
        vantage_command("train", *flags),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "did you mean pong" in done.stderr or "--isolate" in done.stderr


def test_a_process_started_isolated_is_not_isolated_again(monkeypatch):
    assert not isolate.is_isolated()
    monkeypatch.setenv("VANTAGE_ISOLATED", "1")
    assert isolate.is_isolated()
