"""Starting a run in a cluster: judged first, then all of it or nothing."""

import base64
import json
import shutil
import subprocess

import pytest
import yaml

from launch.cli import main as cli
from launch.engines.kubernetes import start
from launch.engines.record import load_engine
from tests.launch.engines.kubernetes.conftest import job, pod, waiting

TRAIN = ("train", "--engine=kubernetes", "--image=vantage:1")


def applied(kubectl) -> list[list[str]]:
    """Kinds of what was applied for good, call by call."""
    calls = [text for args, text in kubectl.asked(" apply ") if "--dry-run" not in args]
    return [[item["kind"] for item in json.loads(text)["items"]] for text in calls]


def test_dry_run_prints_manifests_without_keys_and_asks_nobody(capsys, kubectl, tmp_path):
    run = tmp_path / "run"
    assert cli.run([*TRAIN, "--dry-run", f"--run-dir={run}", "--actor-hosts=2"]) == 0
    text = capsys.readouterr().out
    comments = text.partition("\n# }\n")[0].splitlines()
    config = json.loads("\n".join(line.removeprefix("# ") for line in [*comments, "# }"]))
    assert config["config"]["actor"]["actors"] == 4
    kinds = [item["kind"] for item in yaml.safe_load_all(text)]
    assert kinds.count("Job") == kinds.count("NetworkPolicy") == kinds.count("Secret") == 2
    assert "PRIVATE" not in text
    assert not kubectl.calls and not run.exists()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")
def test_the_real_kubectl_reads_the_manifests(capsys, tmp_path, monkeypatch):
    assert cli.run([*TRAIN, "--dry-run", f"--run-dir={tmp_path / 'run'}"]) == 0
    text = capsys.readouterr().out
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    # To label what it is given is one of the things that kubectl does without a server.
    command = ["kubectl", "label", "--local", "--filename=-", "a=b", "--output=name"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 9


def test_a_run_is_judged_before_it_is_made(run, record, kubectl):
    [(args, text), *_] = kubectl.asked(" apply ")
    assert "--dry-run=server" in args and "--namespace=lab" in args
    # Pods too: quotas and policies are about them, and jobs pass in any case.
    assert [item["kind"] for item in json.loads(text)["items"]].count("Pod") == 2
    [kinds] = applied(kubectl)
    assert "Pod" not in kinds and len(kinds) == 9
    [made] = [text for args, text in kubectl.asked(" apply ") if "--dry-run" not in args]
    secret = next(item for item in json.loads(made)["items"] if item["kind"] == "Secret")
    assert b"PRIVATE KEY" in base64.b64decode(secret["data"]["gate.pem"])
    assert record.hosts.learner_address == f"{record.cluster_name}-learner"


FORBIDDEN = (
    'Error from server (Forbidden): pods "vantage-1-learner-judged" is forbidden: exceeded quota: '
    "small, requested: limits.cpu=4, used: limits.cpu=0, limited: limits.cpu=1"
)


@pytest.mark.parametrize(
    ("pattern", "words", "said"),
    [
        ("apply .*--dry-run", 'Error from server (NotFound): namespaces "x" not found', '"x" not'),
        ("apply .*--dry-run", FORBIDDEN, "exceeded quota: small, requested: limits.cpu=4"),
    ],
)
def test_what_the_cluster_would_refuse_is_refused_before_anything_is_made(
    refuse, kubectl, tmp_path, pattern, words, said
):
    kubectl.refuses(pattern, words)
    assert said in refuse(*TRAIN, f"--run-dir={tmp_path / 'run'}")
    assert not applied(kubectl) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("classes", "flags", "said"),
    [
        (["a", "b"], ["--storage-class=c"], "storage_class=c is unknown; this cluster has a, b"),
        (["a"], [], "no default storage class; choose with --storage-class from a"),
        ([], [], "choose with --storage-class from none"),
    ],
)
def test_a_volume_that_would_wait_for_ever_is_refused(
    refuse, kubectl, tmp_path, classes, flags, said
):
    kubectl.says("get storageclasses", {"items": [{"metadata": {"name": c}} for c in classes]})
    assert said in refuse(*TRAIN, f"--run-dir={tmp_path / 'run'}", *flags)
    assert not applied(kubectl) and not (tmp_path / "run").exists()


def test_who_may_not_look_at_storage_classes_may_still_train(kubectl, tmp_path):
    kubectl.refuses(
        "get storageclasses",
        'Error from server (Forbidden): storageclasses.storage.k8s.io is forbidden: User "jane" '
        'cannot list resource "storageclasses" in API group "storage.k8s.io" at the cluster scope',
    )
    assert cli.run([*TRAIN, f"--run-dir={tmp_path / 'run'}"]) == 0


PULL = waiting("ErrImagePull", 'failed to pull image "vantage:1": not found')


def no_image(kubectl) -> str:
    kubectl.says("get pods", {"items": [pod("learner", phase="Pending", **PULL)]})
    return "image=vantage:1 cannot be pulled: ErrImagePull: failed to pull image"


def half(kubectl) -> str:
    kubectl.refuses("apply (?!.*--dry-run)", "Error from server (Timeout): the server timed out")
    return "(Timeout): the server timed out"


@pytest.mark.parametrize("spoil", [no_image, half])
def test_a_run_that_cannot_start_leaves_nothing_behind(refuse, kubectl, tmp_path, spoil):
    said = spoil(kubectl)
    assert said in refuse(*TRAIN, f"--run-dir={tmp_path / 'run'}")
    *_, deleted, volume = kubectl.asked(" delete |^delete ")
    assert "jobs,services,configmaps,secrets,networkpolicies" in deleted[0]
    assert "persistentvolumeclaims" in volume[0]
    assert "app.kubernetes.io/instance=vantage-" in deleted[0] and "--all" not in deleted[0]
    assert not (tmp_path / "run").exists()


def test_a_quota_that_allows_no_pod_is_named(kubectl, record, monkeypatch):
    kubectl.says("get pods", {"items": []})
    event = {"involvedObject": {"name": record.cluster_name + "-learner"}}
    message = 'Error creating: pods "x" is forbidden: exceeded quota: small'
    kubectl.says("get events", {"items": [{**event, "message": message}]})
    with pytest.raises(start.InputError, match="makes no pod for the run: Error creating"):
        start._wait_for_learner(record)


def test_a_pod_that_only_waits_is_no_failure(kubectl, record, monkeypatch):
    monkeypatch.setattr(start, "_START_SECONDS", 0.5)
    reason = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "gpu",
    }
    kubectl.says("get pods", {"items": [pod("learner", phase="Pending", conditions=[reason])]})
    assert start._wait_for_learner(record) == "Unschedulable: gpu"


def test_resuming_keeps_the_name_and_the_volume_and_makes_new_keys(kubectl, run, record):
    kubectl.says("get jobs", {"items": []})
    kubectl.says("get persistentvolumeclaim", {"kind": "PersistentVolumeClaim"})
    before = (run.keys / "gate.pem").read_text()
    resume = ["train", f"--run-dir={run.root}", "--resume"]
    assert cli.run(resume) == 0
    after = load_engine(run)
    assert after.cluster_name == record.cluster_name and after.run_id != record.run_id
    assert (run.keys / "gate.pem").read_text() != before
    # When it cannot start, what it learned is still there.
    no_image(kubectl)
    assert cli.run(resume) == 2
    assert not kubectl.asked("delete persistentvolumeclaims")
    assert run.config_file.exists()


def test_a_run_that_is_still_in_the_cluster_is_not_resumed(refuse, kubectl, run):
    message = refuse("train", f"--run-dir={run.root}", "--resume")
    assert "still in the cluster (jobs vantage-1-learner, vantage-1-actor)" in message
    complete = {"type": "Complete", "status": "True"}
    jobs = [job("learner", complete), job("actor", complete)]
    kubectl.says("get jobs", {"items": jobs})
    assert cli.run(["train", f"--run-dir={run.root}", "--resume"]) == 0


def test_a_run_is_not_resumed_where_its_checkpoints_are_not(refuse, run, tmp_path, kubectl):
    flags = (f"--run-dir={run.root}", "--resume", "--engine")
    assert "are in a Kubernetes cluster; bring them here" in refuse("train", *flags, "local")
    local = tmp_path / "local"
    assert cli.run(["train", "--engine=hosts", f"--run-dir={local}"]) == 0
    message = refuse(*TRAIN, f"--run-dir={local}", "--resume")
    assert "are here, not in a Kubernetes cluster" in message
