"""Whether a run gets a network of its own, and what is said where it gets none."""

import pytest

from launch.engines import isolate
from launch.errors import InputError
from launch.supervise.namespace import NoNamespaceError


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
    assert "port 7777 is open to everyone" in said and "not permitted" in said
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
