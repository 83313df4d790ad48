"""A run in a real Kubernetes cluster of three nodes: scaled, killed, cut off, drained, resumed.

The control plane is real; nodes run pods as processes (`process_node.py`). Needs root and the
programs of a control plane: KUBEBUILDER_ASSETS=FOLDER pytest -s tests/cluster -k kubernetes
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from launch.engines.kubernetes import cluster as cluster_lib
from launch.engines.record import load_engine
from launch.invocation import vantage_command
from launch.run_dir import RunDir
from report.metrics_file import read_rows
from tests.cluster import kubernetes_plane, process_node
from tests.cluster.kubernetes_plane import ControlPlane
from tests.cluster.process_node import MISSING_IMAGE, ROOT, Pod, ProcessNode

MISSING = kubernetes_plane.missing() or (
    "no kubectl in PATH" if shutil.which("kubectl") is None else None
)
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

WAIT_SECONDS = 600.0  # bounds a hang; a step needs half a minute, more on a loaded machine
IMAGE = "vantage:test"
PODS = "/api/v1/namespaces/default/pods"
FLAGS = (
    "--network=tiny",
    "--frames=100000000",
    "--warmup-steps=200",
    "--replay-capacity-steps=5000",
    "--publish-period-updates=20",
    "--eval-period-frames=100000000",
    "--eval-episodes=1",
    "--max-episode-frames=400",
    "--report-seconds=1",
    "--envs-per-actor=2",
    "--samples-per-insert=8",
    "--checkpoint-seconds=5",
    "--replay-checkpoint-seconds=10",
    "--stale-params-seconds=30",
    "--actors-per-host=1",
    "--learner-cpus=1",
)


class Cluster:
    """The control plane, three nodes, and kubectl for both."""

    def __init__(self, folder: pathlib.Path):
        self.plane = ControlPlane(folder)
        self.plane.up()
        process_node.make_bridge()
        nodes = folder / "nodes"
        nodes.mkdir()
        self.nodes = {
            name: ProcessNode(name, number, self.plane.api, nodes / name)
            for number, name in enumerate(("k1", "k2", "k3"))
        }
        programs = folder / "bin"
        programs.mkdir()
        real = shutil.which("kubectl")
        script = f"{sys.executable} -m tests.cluster.kubectl_of_nodes {real} {nodes}"
        (programs / "kubectl").write_text(f'#!/bin/sh\ncd {ROOT} && exec {script} "$@"\n')
        (programs / "kubectl").chmod(0o755)
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(self.plane.kubeconfig),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }

    def down(self) -> None:
        for node in self.nodes.values():
            node.close()
        process_node.remove_bridge()
        self.plane.down()

    def kubectl(self, *args: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", *args],
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def find(self, name: str) -> tuple[ProcessNode, Pod]:
        """A pod, and the node that it is on."""
        for node in self.nodes.values():
            for pod in list(node.pods.values()):
                if pod.item["metadata"]["name"] == name:
                    return node, pod
        raise KeyError(name)


class Run:
    """A run as its user sees it, from a workstation."""

    def __init__(self, cluster: Cluster, folder: pathlib.Path):
        self.cluster, self.run_dir = cluster, RunDir(folder)

    def vantage(self, *args: str, code: int = 0) -> str:
        done = subprocess.run(
            vantage_command(*args),
            cwd=ROOT,
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    def train(self, *flags: str, code: int = 0) -> str:
        engine = ("--engine=kubernetes", f"--image={IMAGE}", f"--run-dir={self.run_dir.root}")
        return self.vantage("train", *engine, *FLAGS, *flags, code=code)

    def pods(self, component: str) -> list[cluster_lib.Pod]:
        """Pods of a kind that run."""
        base = load_engine(self.run_dir).cluster_name
        path = f"{PODS}?labelSelector=app.kubernetes.io/instance%3D{base}"
        found = map(cluster_lib.parse_pod, self.cluster.plane.api("GET", path)["items"])
        return [pod for pod in found if pod.component == component and pod.running]

    def pod_of(self, index: int) -> str:
        """The pod of an actor host, once it runs."""
        self.wait(f"actor host {index} runs", lambda: index in self.indices())
        return next(pod.name for pod in self.pods("actor") if pod.index == index)

    def node_of_learner(self) -> str | None:
        return next((pod.node for pod in self.pods("learner")), None)

    def indices(self) -> set[int | None]:
        return {pod.index for pod in self.pods("actor")}

    @property
    def volume(self) -> RunDir:
        """The run directory in the cluster."""
        base = load_engine(self.run_dir).cluster_name
        claim = self.cluster.plane.api(
            "GET", f"/api/v1/namespaces/default/persistentvolumeclaims/{base}"
        )
        name = claim["spec"]["volumeName"]
        found = self.cluster.plane.api("GET", f"/api/v1/persistentvolumes/{name}")
        return RunDir(pathlib.Path(found["spec"]["hostPath"]["path"]) / "run")

    def rows(self) -> list[dict[str, Any]]:
        path = self.volume.metrics_file
        return list(read_rows(path)) if path.exists() else []

    def updates(self) -> int:
        rows = [row for row in self.rows() if row["role"] == "learner"]
        return max((row.get("updates", 0) for row in rows), default=0)

    def wait(self, what: str, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not _holds(condition):
            assert time.monotonic() < deadline, f"{what}: {self.report()}"
            time.sleep(1.0)
        print(f"{time.strftime('%T')} {what}", flush=True)

    def wait_for_progress(self, *actors: int) -> None:
        """Waits until these actors have played, and the learner has learned, since now."""
        before, updates = len(self.rows()), self.updates()
        wanted = {f"actor/{index}" for index in actors}
        self.wait(
            f"actors {actors} play",
            lambda: wanted <= {row["role"] for row in self.rows()[before:]},
        )
        self.wait("the learner learns", lambda: self.updates() > updates)

    def report(self) -> str:
        logs = [
            f"{pod.item['metadata']['name']} on {node.name}: {pod.log.read_text()[-2000:]}"
            for node in self.cluster.nodes.values()
            for pod in node.pods.values()
            if pod.log.exists()
        ]
        return "\n".join([self.cluster.kubectl("get", "pods,jobs", "--output=wide"), *logs])


def _holds(condition: Callable[[], Any]) -> bool:
    """Whether it holds; a server that does not answer for a moment is asked again."""
    try:
        return bool(condition())
    except OSError:
        return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        found = Cluster(tmp_path_factory.mktemp("kubernetes"))
        stack.callback(found.down)
        yield found


@pytest.fixture
def run(cluster, tmp_path):
    return Run(cluster, tmp_path / "run")


def status_of(cluster: Cluster, job: str) -> dict[str, Any]:
    """What the cluster says of a job."""
    return cluster.plane.api("GET", f"/apis/batch/v1/namespaces/default/jobs/{job}")["status"]


def left(cluster: Cluster) -> list[str]:
    """What runs have in the cluster."""
    kinds = "jobs,pods,services,configmaps,secrets,networkpolicies,persistentvolumeclaims"
    selector = "--selector=app.kubernetes.io/name=vantage"
    return cluster.kubectl("get", kinds, selector, "--output=name").split()


def test_a_run_that_the_cluster_does_not_take_is_refused_and_leaves_nothing(cluster, run):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    spec = {"hard": {"limits.cpu": "1", "limits.memory": "1Gi"}}
    cluster.kubectl("create", "namespace", "tight")
    cluster.kubectl("-n", "tight", "apply", "-f", "-", text=json.dumps({**quota, "spec": spec}))
    for flags, said in (
        (["--namespace=nope"], 'namespaces "nope" not found'),
        (["--context=nope"], 'context "nope" does not exist'),
        (["--context=jane"], 'User "jane" cannot'),
        (["--storage-class=nope"], "storage_class=nope is unknown; this cluster has folders"),
        (["--namespace=tight"], "exceeded quota: small"),
        ([f"--image={MISSING_IMAGE}"], "cannot be pulled: ErrImagePull: not found"),
    ):
        message = run.train(*flags, code=2)
        assert said in message and message.count("\n") == 1, message
        assert not run.run_dir.root.exists()
        run.wait(f"nothing is left of {flags}", lambda: not left(cluster))


def test_a_run_trains_over_three_nodes_and_survives_what_clusters_do(cluster, run, tmp_path):
    root = str(run.run_dir.root)
    run.train("--actor-hosts=2")
    run.wait("the volume is bound", lambda: run.volume.metrics_file.exists())
    run.wait_for_progress(0, 1)
    assert "learner-0 | " in run.vantage("logs", root, "learner-0")
    hosts = json.loads(run.vantage("status", root, "--json"))["nodes"]
    assert {(n["role"], n["index"]) for n in hosts} >= {("learner", 0), ("actor", 0), ("tunnel", 1)}

    # More actor hosts, then fewer.
    run.vantage("scale", root, "--actor-hosts", "4")
    run.wait_for_progress(0, 1, 2, 3)
    run.vantage("scale", root, "--actor-hosts", "3")
    run.wait("one host less", lambda: run.indices() == {0, 1, 2})

    # An actor's pod is killed: by no fault of its own, so its place is taken.
    name = run.pod_of(1)
    _, pod = cluster.find(name)
    os.killpg(pod.process.pid, signal.SIGKILL)
    run.wait("another pod", lambda: 1 in run.indices() and run.pod_of(1) != name)
    run.wait_for_progress(0, 1, 2)

    # The learner's node is drained: it saves, ends with 75, and goes on elsewhere.
    [learner] = run.pods("learner")
    updates = run.updates()
    only = "--pod-selector=app.kubernetes.io/component=learner"
    cluster.kubectl("drain", learner.node, "--delete-emptydir-data", only)
    _, pod = cluster.find(learner.name)
    assert pod.process.wait(WAIT_SECONDS) == 75
    run.wait("a learner elsewhere", lambda: run.node_of_learner() not in (None, learner.node))
    run.wait_for_progress(0, 1, 2)
    assert run.updates() > updates
    cluster.kubectl("uncordon", learner.node)

    # A host that cannot belong to the run fails for good, alone.
    base = load_engine(run.run_dir).cluster_name
    junk = json.dumps({"data": {"actor-2.pem": "Pw=="}})
    cluster.kubectl("patch", "secret", f"{base}-actor-keys", f"--patch={junk}")
    _, pod = cluster.find(run.pod_of(2))
    os.killpg(pod.process.pid, signal.SIGKILL)
    job = f"{base}-actor"
    run.wait("index 2 fails", lambda: status_of(cluster, job).get("failedIndexes") == "2")
    run.wait_for_progress(0, 1)

    # What it learned comes out while it trains, and it stops in order.
    run.vantage("fetch", root, str(tmp_path / "copy"))
    assert list((tmp_path / "copy" / "checkpoints").glob("*.npz"))
    run.vantage("stop", root)
    updates = run.updates()
    run.wait("only the volume is left", lambda: left(cluster) == [f"persistentvolumeclaim/{base}"])

    # From the volume, with new keys, also after nothing of it was left running.
    run.vantage("train", f"--run-dir={root}", "--resume", "--actor-hosts=2")
    run.wait_for_progress(0, 1)
    assert run.updates() > updates
    run.vantage("stop", root)
    run.vantage("fetch", root, str(tmp_path / "copy"))


def test_a_node_that_is_lost_costs_its_actors_alone(cluster, run):
    root = str(run.run_dir.root)
    run.train("--actor-hosts=3")
    run.wait("the volume is bound", lambda: run.volume.metrics_file.exists())
    run.wait_for_progress(0, 1, 2)
    [learner] = run.pods("learner")
    lost = next(pod for pod in run.pods("actor") if pod.node != learner.node)
    node = cluster.nodes[lost.node]
    node.cut()
    others = [p.index for p in run.pods("actor") if p.node != lost.node]
    run.wait_for_progress(*others)
    # Its pods are kept until someone says that the node is gone.
    cluster.kubectl("delete", "node", lost.node, "--wait=false")
    run.wait("it has none of them", lambda: lost.node not in {p.node for p in run.pods("actor")})
    run.wait("its hosts are elsewhere", lambda: run.indices() == {0, 1, 2})
    run.wait_for_progress(0, 1, 2)
    node.heal()
    run.vantage("stop", root)


def test_a_run_that_is_over_ends_all_its_pods(cluster, run):
    run.train("--actor-hosts=2", "--frames=20000")
    base = load_engine(run.run_dir).cluster_name

    for component in ("learner", "actor"):
        job = f"{base}-{component}"
        run.wait(f"{job} is complete", lambda job=job: "completionTime" in status_of(cluster, job))
    assert status_of(cluster, f"{base}-actor")["completedIndexes"] == "0,1"
    run.vantage("stop", str(run.run_dir.root))
