"""status, stop, scale, logs and fetch of a run in a cluster, from a workstation."""

import io
import json
import tarfile

import pytest

from launch.cli import main as cli
from launch.commands import fetch
from launch.engines.kubernetes.names import IN_POD
from launch.engines.record import load_engine
from tests.launch.engines.kubernetes.conftest import ended, job, pod

COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "code 2"}


def test_status_shows_pods_and_what_the_learners_host_says(kubectl, run, capsys):
    bad = pod("actor", index=1, phase="Failed", **ended(1, "host x: no replay"))
    kubectl.says("get pods", {"items": [bad, pod("learner"), pod("actor", index=0)]})
    kubectl.says("exec ", "/vantage/run: running\nframes 12k\n")
    assert cli.run(["status", str(run.root)]) == 0
    shown = capsys.readouterr().out
    assert f"{run.root}: active" in shown and "frames 12k" in shown
    assert "exit code 1: host x: no replay" in shown
    [(args, _)] = kubectl.asked("exec ")
    assert args.endswith(
        "exec vantage-1-learner-0-x7x2p --container=host -- vantage status /vantage/run"
    )


def test_status_as_json_has_both(kubectl, run, capsys):
    kubectl.says("exec ", json.dumps({"run": "/vantage/run", "frames": 5, "state": "running"}))
    assert cli.run(["status", str(run.root), "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert (seen["run"], seen["frames"], seen["state"]) == (str(run.root), 5, "running")
    assert seen["pods"][0]["component"] == "learner" and len(seen["jobs"]) == 2


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_status_without_a_learner_says_what_the_cluster_knows(kubectl, run, capsys, flags):
    kubectl.says("get pods", {"items": []})
    kubectl.says("get jobs", {"items": [job("learner", FAILED)]})
    assert cli.run(["status", str(run.root), *flags]) == 0
    shown = capsys.readouterr().out
    assert "failed" in shown and "code 2" in shown
    assert not kubectl.asked("exec ")


def test_status_in_the_pod_itself_asks_no_cluster(kubectl, run, capsys, monkeypatch):
    monkeypatch.setenv(IN_POD, "1")
    before = len(kubectl.calls)
    assert cli.run(["status", str(run.root)]) == 0
    assert "not started" in capsys.readouterr().out
    assert len(kubectl.calls) == before


def test_stop_drains_the_learner_then_deletes_all_but_the_volume(kubectl, run, capsys):
    # Stopped as soon as it is asked to.
    kubectl.says("get jobs", {"items": [job("learner", COMPLETE), job("actor")]})
    assert cli.run(["stop", str(run.root)]) == 0
    verbs = [args for args, _ in kubectl.asked("exec |delete ")][1:]  # the first cleared the way
    assert verbs[0].endswith("-- touch /vantage/run/stop")
    assert "delete jobs,services,configmaps,secrets,networkpolicies" in verbs[1]
    assert len(verbs) == 2 and "persistentvolumeclaims" not in verbs[1]
    assert "is kept" in capsys.readouterr().out


def test_stop_without_a_learner_at_work_deletes_at_once(kubectl, run, capsys):
    kubectl.says("get pods", {"items": [pod("learner", phase="Pending")]})
    assert cli.run(["stop", str(run.root)]) == 0
    assert "no learner was running" in capsys.readouterr().out
    assert not kubectl.asked("exec ")


def test_stop_of_a_learner_that_failed_says_so(kubectl, run, capsys):
    kubectl.says("get pods", {"items": []})
    kubectl.says("get jobs", {"items": [job("learner", FAILED)]})
    assert cli.run(["stop", str(run.root)]) == 1
    assert "failed: PodFailurePolicy: code 2" in capsys.readouterr().out


def test_stop_that_takes_too_long_says_how_to_end_it(kubectl, run, refuse):
    message = refuse("stop", str(run.root), "--timeout", "0")
    assert "is still stopping after 0 s" in message and "kubectl delete job vantage-" in message


def test_nothing_is_stopped_that_is_not_there(kubectl, run, refuse):
    kubectl.says("get jobs", {"items": []})
    assert "has no jobs in the cluster" in refuse("stop", str(run.root))


def test_scale_gives_new_hosts_their_keys_then_changes_both_numbers_at_once(kubectl, run):
    before = len(kubectl.calls)
    assert cli.run(["scale", str(run.root), "--actor-hosts", "5"]) == 0
    later = kubectl.calls[before:]
    applied = json.loads(next(text for args, text in later if " apply " in args))["items"]
    given, secret = applied
    assert json.loads(given["data"]["config.json"])["config"]["actor"]["actors"] == 15
    assert len(secret["data"]) == 5 and "gate.pem" not in secret["data"]
    args, _ = later[-1]
    assert '--patch={"spec": {"completions": 5, "parallelism": 5}}' in args
    record = load_engine(run)
    assert record.hosts.actor_hosts == 5 and record.hosts.learner_address is not None


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([], "no learner's job at work in the cluster (none)"),
        ([job("learner", COMPLETE), job("actor")], "no learner's job at work in the cluster"),
        ([job("learner"), job("actor", COMPLETE)], "no actors' job at work in the cluster"),
    ],
)
def test_a_run_that_is_not_at_work_is_not_scaled(kubectl, run, refuse, jobs, said):
    kubectl.says("get jobs", {"items": jobs})
    assert said in refuse("scale", str(run.root), "--actor-hosts", "5")
    assert load_engine(run).hosts.actor_hosts == 2


def test_a_run_is_not_scaled_to_nothing(run, refuse):
    # A job with no completions is complete for good.
    assert "actor_hosts=0 must be at least 1" in refuse("scale", str(run.root), "--actor-hosts=0")


@pytest.mark.parametrize(
    ("node", "selects"),
    [
        ("learner-0", "component=learner"),
        ("gate-0", "component=learner"),
        ("actor-4", "component=actor,batch.kubernetes.io/job-completion-index=1"),
        ("tunnel-1", "component=actor,batch.kubernetes.io/job-completion-index=1"),
    ],
)
def test_logs_are_those_of_the_node(kubectl, run, capsys, node, selects):
    kubectl.says(" logs ", f"{node} | mine\nother-7 | not mine\n{node} | mine\x1b[2J\n")
    assert cli.run(["logs", str(run.root), node, "--lines", "7"]) == 0
    assert capsys.readouterr().out == f"{node} | mine\n{node} | mine?[2J\n"
    [(args, _)] = kubectl.asked(" logs ")
    assert f"{selects} --tail=7" in args


def test_logs_of_files_are_told_alike(local_run, capsys, refuse):
    for name in ("learner-0", "actor-0"):
        path = local_run.log_file(*name.split("-"))
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"line {i}\n" for i in range(30)))
    assert cli.run(["logs", str(local_run.root), "actor-0", "--lines", "2"]) == 0
    assert capsys.readouterr().out == "actor-0 | line 28\nactor-0 | line 29\n"
    assert cli.run(["logs", str(local_run.root)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 40
    assert "no log of 'actor-9'" in refuse("logs", str(local_run.root), "actor-9")
    assert "'../x' is no node" in refuse("logs", str(local_run.root), "../x")
    assert "lines=-1 must be" in refuse("logs", str(local_run.root), "--lines", "-1")


def archive(*names: str, links: tuple[str, ...] = ()) -> bytes:
    """A tar stream with a file of each name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
        for name in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(member)
    return stream.getvalue()


def test_only_what_a_run_has_comes_out_of_an_archive(tmp_path):
    good = ("config.json", "metrics.jsonl", "checkpoints/checkpoint-7.npz", "events.out.1")
    bad = ("/etc/x", "../x", "checkpoints/../../x", "checkpoints/a/b/c", "keys/gate.pem", "lock")
    stream = archive(*good, *bad, links=("checkpoints/link", "best"))
    assert fetch.unpack(io.BytesIO(stream), tmp_path) == len(good)
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert found == set(good)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.is_file()} == {0o600}


def test_a_copy_that_is_cut_short_is_refused(tmp_path):
    with pytest.raises(fetch.InputError, match="cut short"):
        fetch.unpack(io.BytesIO(archive("config.json", "metrics.jsonl")[:700]), tmp_path)


def answer_with(kubectl, run, *names: str) -> None:
    """The pod's tar answers with the run's config and some files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(run.config_file, "config.json")
        for name in names:
            member = tarfile.TarInfo(name)
            tar.addfile(member, io.BytesIO())
    kubectl.says("exec .* -- sh -c", stream.getvalue().decode())


def test_fetch_copies_from_the_learners_pod_and_replaces_an_earlier_copy(kubectl, run, tmp_path):
    copy = tmp_path / "copy"
    answer_with(kubectl, run, "checkpoints/checkpoint-1.npz", "metrics.jsonl")
    assert cli.run(["fetch", str(run.root), str(copy)]) == 0
    answer_with(kubectl, run, "checkpoints/checkpoint-2.npz", "metrics.jsonl")
    assert cli.run(["fetch", str(run.root), str(copy)]) == 0
    assert [p.name for p in (copy / "checkpoints").iterdir()] == ["checkpoint-2.npz"]
    assert sorted(p.name for p in copy.iterdir()) == ["checkpoints", "config.json", "metrics.jsonl"]
    # A run of its own here: nothing leads back to the cluster.
    assert cli.run(["status", str(copy)]) == 0


def test_fetch_of_a_run_without_pods_makes_one_and_deletes_it(kubectl, run, tmp_path, capsys):
    kubectl.says("get pods", {"items": [pod("learner", phase="Succeeded")]})
    answer_with(kubectl, run)
    before = len(kubectl.calls)
    assert cli.run(["fetch", str(run.root), str(tmp_path / "copy")]) == 0
    verbs = [args.split("--namespace=lab ")[1] for args, _ in kubectl.calls[before:]]
    assert [v.split()[0 if not v.startswith("--") else 1] for v in verbs] == [
        *("get", "apply", "wait", "exec", "delete")
    ]
    assert "component=reader" in verbs[-1] and "delete pods" in verbs[-1]


def test_the_pod_of_a_fetch_that_fails_is_deleted_too(kubectl, run, tmp_path, refuse):
    kubectl.says("get pods", {"items": []})
    kubectl.refuses(" wait ", "error: timed out waiting for the condition on pods/vantage-1-reader")
    message = refuse("fetch", str(run.root), str(tmp_path / "copy"))
    assert "timed out waiting for the condition" in message
    assert "component=reader" in kubectl.calls[-1][0]


@pytest.mark.parametrize(
    "args", [["status"], ["logs"], ["stop"], ["scale", "--actor-hosts=1"], ["fetch", "copy"]]
)
def test_the_cluster_hears_nothing_of_a_folder_that_others_can_write_to(kubectl, run, refuse, args):
    before = len(kubectl.calls)
    run.root.chmod(0o777)
    command, *others = args
    assert "can be written by others" in refuse(command, str(run.root), *others)
    assert len(kubectl.calls) == before


def test_fetch_refuses_other_runs_and_other_folders(kubectl, run, refuse, tmp_path):
    assert cli.run(["train", "--engine=hosts", f"--run-dir={tmp_path / 'other'}"]) == 0
    message = refuse("fetch", str(tmp_path / "other"), str(tmp_path / "copy"))
    assert "is not in a Kubernetes cluster" in message
    message = refuse("fetch", str(run.root), str(run.root))
    assert "is no copy of a run" in message
