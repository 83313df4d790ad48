"""What kubectl says of pods and jobs, and how its refusals are told."""

import os
import shutil

import pytest

from launch.engines.kubernetes import cluster
from launch.engines.options import KubernetesOptions
from launch.errors import InputError
from tests.launch.engines.kubernetes.conftest import ended, job, pod, waiting

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}


@pytest.mark.parametrize(
    ("item", "state", "reason"),
    [
        (pod("actor", index=3), "running", ""),
        (pod("learner", phase="Pending"), "pending", ""),
        (
            pod("learner", phase="Pending", conditions=[UNSCHEDULABLE]),
            "pending",
            "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        ),
        (
            pod("learner", phase="Pending", **waiting("ErrImagePull", "not\x1bfound")),
            "pending",
            "ErrImagePull: not?found",
        ),
        (
            pod("actor", phase="Failed", **ended(2, "one\nvantage: error: host x: no key\n")),
            "failed",
            "exit code 2: vantage: error: host x: no key",
        ),
        (pod("actor", phase="Failed", **ended(137)), "failed", "exit code 137: Error"),
        (pod("actor", phase="Succeeded", **ended(0)), "succeeded", ""),
        (pod("actor", phase="Failed", reason="Evicted", message="low"), "failed", "Evicted: low"),
    ],
)
def test_a_pod_says_what_it_does_and_why_not(item, state, reason):
    found = cluster.parse_pod(item)
    assert (found.state, found.reason) == (state, reason)


def test_a_pod_that_is_deleted_is_leaving_whatever_its_phase():
    item = pod("actor", index=3)
    item["metadata"]["deletionTimestamp"] = "2026-11-18T16:00:00Z"
    found = cluster.parse_pod(item)
    assert (found.state, found.index, found.running, found.ended) == ("leaving", 3, False, False)


def condition(kind: str, status: str = "True") -> dict:
    return {"type": kind, "status": status, "reason": "Because", "message": "of that"}


@pytest.mark.parametrize(
    ("conditions", "state", "reason"),
    [
        ([], "active", ""),
        ([condition("FailureTarget")], "active", ""),
        ([condition("Complete", "False")], "active", ""),
        ([condition("SuccessCriteriaMet"), condition("Complete")], "complete", "Because: of that"),
        ([condition("Failed")], "failed", "Because: of that"),
    ],
)
def test_a_job_is_at_work_until_it_is_complete_or_failed(conditions, state, reason):
    found = cluster.parse_job(job("learner", *conditions))
    assert (found.component, found.state, found.reason) == ("learner", state, reason)


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (
            'Error from server (NotFound): namespaces "nope" not found',
            cluster.NotFoundError,
            '(NotFound): namespaces "nope" not found',
        ),
        (
            "Error from server (Forbidden): jobs.batch is forbidden: User "
            '"jane" cannot create resource "jobs" in API group "batch" in the namespace "lab"',
            cluster.ForbiddenError,
            'User "jane" cannot create resource "jobs"',
        ),
        (
            "Warning: would violate PodSecurity\nError from server (Forbidden): pods "
            '"x" is forbidden: exceeded quota: small, requested: cpu=4, used: cpu=0, limited: 1',
            cluster.ForbiddenError,
            "exceeded quota: small, requested: cpu=4",
        ),
        ('error: context "nope" does not exist', InputError, 'refused: context "nope" does not'),
        ("", InputError, "it gave no reason"),
    ],
)
def test_a_refusal_is_one_line_of_its_kind(kubectl, words, kind, said):
    kubectl.refuses("get pods", words)
    with pytest.raises(InputError) as caught:
        cluster.call(KubernetesOptions(), ["get", "pods"])
    assert type(caught.value) is kind
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_context_and_namespace_are_passed_on_and_answers_are_bounded(kubectl):
    options = KubernetesOptions(context="far", namespace="lab")
    cluster.call(options, ["get", "nodes"])
    [(args, _)] = kubectl.asked("nodes")
    assert args == "--context=far --namespace=lab --request-timeout=30s get nodes"


def test_without_kubectl_there_is_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InputError, match="no kubectl in PATH"):
        cluster.call(KubernetesOptions(), ["get", "pods"])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (KubernetesOptions(context="nope"), "context"),
        (KubernetesOptions(), "localhost:1 was refused|connection refused"),
    ],
)
def test_the_real_kubectl_is_understood_too(monkeypatch, tmp_path, options, said):
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://localhost:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", os.fspath(config))
    with pytest.raises(InputError, match=said):
        cluster.call(options, ["get", "pods", "--output=json"])
