"""A cluster that is not there, and a run in it."""

import pytest

from launch.cli import main as cli
from launch.engines.kubernetes import start
from launch.engines.record import load_engine
from launch.run_dir import RunDir
from tests.launch.engines.kubernetes.fake_kubectl import FakeKubectl

BASE = "app.kubernetes.io/instance"


@pytest.fixture
def kubectl(tmp_path, monkeypatch):
    """kubectl of a cluster with a default storage class, in which every pod starts at once."""
    fake = FakeKubectl(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(start, "_POLL_SECONDS", 0.0)
    notes = {"storageclass.kubernetes.io/is-default-class": "true"}
    fake.says(
        "get storageclasses", {"items": [{"metadata": {"name": "std", "annotations": notes}}]}
    )
    fake.says("get pods", {"items": [pod("learner")]})
    fake.refuses(
        "get persistentvolumeclaim",
        'Error from server (NotFound): persistentvolumeclaims "vantage-1" not found',
    )
    return fake


@pytest.fixture
def run(tmp_path, kubectl, capsys):
    """A run that was started in the cluster; its jobs are at work."""
    run_dir = RunDir(tmp_path / "run")
    flags = ["--image=vantage:1", "--actor-hosts=2", "--actors-per-host=3", "--namespace=lab"]
    assert cli.run(["train", "--engine=kubernetes", f"--run-dir={run_dir.root}", *flags]) == 0
    assert "watch with: vantage status" in capsys.readouterr().out
    kubectl.says("get jobs", {"items": [job("learner"), job("actor")]})
    return run_dir


@pytest.fixture
def record(run):
    return load_engine(run)


def pod(component: str, *, index: int | None = None, phase: str = "Running", **status) -> dict:
    """A pod, as the API server describes it."""
    labels = {"app.kubernetes.io/component": component}
    if index is not None:
        labels["batch.kubernetes.io/job-completion-index"] = str(index)
    name = f"vantage-1-{component}-{index or 0}-x7x2p"
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": "node-1"} if phase != "Pending" else {},
        "status": {"phase": phase, **status},
    }


def job(component: str, *conditions: dict) -> dict:
    """A job, as the API server describes it."""
    labels = {"app.kubernetes.io/component": component}
    metadata = {"name": f"vantage-1-{component}", "labels": labels}
    return {"metadata": metadata, "status": {"conditions": list(conditions)}}


def waiting(reason: str, message: str = "") -> dict:
    """The status of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"state": state}]}


def ended(code: int, message: str = "") -> dict:
    """The status of a container that has ended."""
    state = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
    return {"containerStatuses": [{"state": state}]}
