"""Whether a run gets a network of its own, and what is said where it gets none."""

import os
import subprocess
import sys

import pytest

from launch.engines import isolate
from launch.errors import InputError
from launch.invocation import vantage_command
from launch.supervise.namespace import NoNamespaceError, make_namespace
from tests.launch.live_run import ROOT
from tests.launch.no_namespaces import forbid_namespaces

SECONDS = 120.0  # bounds a hang
MOVE = """
import os, sys
from launch.engines.isolate import move_to_own_network
move_to_own_network()
code = "from launch.engines.isolate import move_to_own_network as move; move()"
code += "; import os; print(os.readlink('/proc/self/ns/net'))"
child = __import__("subprocess").run([sys.executable, "-c", code], capture_output=True, text=True)
print(os.getpid(), os.readlink("/proc/self/ns/net"), child.stdout.strip(), *sys.argv[1:])
sys.exit(7)
"""


@pytest.fixture
def without_namespaces(monkeypatch):
    def refuse():
        raise NoNamespaceError("Operation not permitted; this machine does not let users")

    monkeypatch.setattr(isolate, "make_namespace", refuse)


@pytest.mark.usefixtures("without_namespaces")
def test_where_there_can_be_no_namespace_one_line_says_that_the_port_is_open(capsys):
    assert isolate.namespace_for("auto", 7777) is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Reverb's port 7777 is open to everyone" in said and "not permitted" in said
    assert "firewall" in said


@pytest.mark.usefixtures("without_namespaces")
def test_what_was_asked_for_and_cannot_be_had_is_refused(refuse, tmp_path):
    with pytest.raises(InputError, match="--isolate: Operation not permitted"):
        isolate.namespace_for("yes", 7777)
    message = refuse("train", "--isolate", f"--run-dir={tmp_path / 'run'}")
    assert "--isolate: Operation not permitted" in message
    assert not (tmp_path / "run").exists()


def test_a_tpu_keeps_the_hosts_network_unless_it_is_asked_not_to(monkeypatch, capsys):
    made = []
    monkeypatch.setattr(isolate, "make_namespace", lambda: made.append(1))
    monkeypatch.setattr(isolate, "_on_tpu_host", lambda: True)
    assert isolate.namespace_for("auto", 7777) is None
    assert not made and "a TPU needs the host's network" in capsys.readouterr().err
    isolate.namespace_for("yes", 7777)
    assert made


def test_nothing_is_said_of_a_port_that_is_meant_to_be_open(capsys):
    assert isolate.namespace_for("no", 7777) is None
    assert capsys.readouterr().err == ""


def outcome_of(*command: str) -> tuple[subprocess.Popen, str, str]:
    """A process of ours that has ended, and what it said."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
    return child, *child.communicate(timeout=SECONDS)


@pytest.fixture
def namespaces():
    try:
        make_namespace().close()
    except NoNamespaceError as error:
        pytest.skip(f"no namespaces here: {error}")


@pytest.mark.usefixtures("namespaces")
def test_what_measures_is_the_same_process_in_a_network_of_its_own():
    child, said, complaint = outcome_of(sys.executable, "-c", MOVE, "one", "and two")
    assert (child.returncode, complaint) == (7, "")
    pid, network, network_of_children, *arguments = said.split()
    assert int(pid) == child.pid and arguments == ["one", "and", "two"]
    assert network == network_of_children != os.readlink("/proc/self/ns/net")


def test_what_measures_where_there_can_be_no_namespace_says_so_once_and_goes_on():
    child, said, complaint = outcome_of(*forbid_namespaces(sys.executable, "-c", MOVE))
    assert child.returncode == 7
    assert complaint.count("\n") == 1 and "is open to everyone who can reach this" in complaint
    _, network, network_of_children = said.split()
    assert network == network_of_children == os.readlink("/proc/self/ns/net")


def test_a_profile_is_what_measures():
    refused = vantage_command("profile", "--seconds=0")
    child, _, complaint = outcome_of(*forbid_namespaces(*refused))
    first, second = complaint.splitlines()
    assert "is open to everyone" in first and second.startswith("vantage: error: seconds=0")
    assert child.returncode == 2


def test_the_drivers_modules_are_loaded_before_a_namespace_forbids_it(tmp_path, monkeypatch):
    helper = tmp_path / "nvidia-modprobe"
    helper.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(isolate, "_UVM", str(tmp_path / "uvm"))
    isolate._load_gpu_modules()
    assert (tmp_path / "called").read_text() == "-c 0 -u\n"
    (tmp_path / "called").unlink()
    (tmp_path / "uvm").touch()
    isolate._load_gpu_modules()
    assert not (tmp_path / "called").exists()
