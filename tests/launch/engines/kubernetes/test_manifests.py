"""The objects of a run: as they were when they were last looked through, and valid in any case.

After a change that is meant, `python -m tests.launch.engines.kubernetes.test_manifests` writes the
golden files anew; read their diff.
"""

import base64
import json
import pathlib

import hypothesis
import hypothesis.strategies as st
import kubernetes_validate
import pytest
import yaml

from launch.engines.kubernetes import manifests, settings
from launch.engines.kubernetes.pods import reader_pod
from launch.engines.kubernetes.yaml_text import yaml_text
from launch.engines.options import HostsOptions, KubernetesOptions, SlurmOptions
from launch.gate import keys
from launch.run_dir import RunDir
from tests.launch.engines.kubernetes.records import make_run

GOLDEN = pathlib.Path(__file__).parent / "golden"
# The oldest in which all fields are stable, and the newest whose schemas there are.
VERSIONS = ("1.34", "1.36")
TPU = {
    "namespace": "lab",
    "learner_resources": "google.com/tpu=4",
    "learner_node_selector": (
        "cloud.google.com/gke-tpu-accelerator=tpu-v5-lite-podslice,"
        "cloud.google.com/gke-tpu-topology=2x2"
    ),
    "actor_node_selector": "cloud.google.com/gke-spot=true",
    "actor_tolerations": "cloud.google.com/gke-spot=true:NoSchedule,maintenance:NoExecute",
    "learner_priority_class": "high",
    "actor_priority_class": "low",
    "storage_class": "premium-rwo",
    "storage": "200Gi",
    "queue": "team-a",
    "image_pull_secret": "registry",
}
RUNS = {
    "plain.yaml": {},
    "tpu_and_spot.yaml": {
        **TPU,
        "hosts": HostsOptions(64, 8),
        "sizes": SlurmOptions(learner_cpus=24, learner_mem="90Gi", drain_seconds=600),
    },
}


def text_of(name: str) -> str:
    """The objects of a run, without its config, which has tests of its own."""
    objects = manifests.run_manifests(*make_run(**RUNS[name]), None)
    objects[0]["data"] = dict.fromkeys(objects[0]["data"], "...")
    return yaml_text(objects)


@pytest.mark.parametrize("name", RUNS)
def test_manifests_are_those_that_were_looked_through(name):
    assert text_of(name) == (GOLDEN / name).read_text()


def check(item: dict) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(item, version, strict=True)


@pytest.mark.parametrize("name", RUNS)
def test_every_object_fits_the_published_schemas(name):
    record, config = make_run(**RUNS[name])
    objects = manifests.run_manifests(record, config, None)
    for item in [*objects, *manifests.to_judge(objects), reader_pod(record)]:
        check(item)


def test_an_object_that_does_not_fit_would_be_seen():
    job = manifests.actor_job(make_run()[0])
    job["spec"]["template"]["spec"]["containers"][0]["readOnlyRootFilesystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        check(job)


LABEL = st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?\Z")
NAME = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\Z")
PAIRS = st.dictionaries(LABEL, LABEL, max_size=3).map(
    lambda found: ",".join(f"{key}={value}" for key, value in found.items()) or None
)
EFFECT = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
TAINT = st.one_of(
    st.tuples(LABEL, EFFECT).map(lambda found: "{}:{}".format(*found)),
    st.tuples(LABEL, LABEL, EFFECT).map(lambda found: "{}={}:{}".format(*found)),
)
TAINTS = st.lists(TAINT, max_size=2).map(lambda found: ",".join(found) or None)
QUANTITY = st.tuples(st.integers(1, 10**6), st.sampled_from(["", "k", "M", "Mi", "Gi"])).map(
    lambda found: "{}{}".format(*found)
)
OPTIONS = st.builds(
    KubernetesOptions,
    image=st.from_regex(r"\A[a-z0-9]{1,10}(/[a-z0-9]{1,10}){0,2}(:[a-z0-9.]{1,9})?\Z"),
    namespace=st.none() | NAME,
    context=st.none() | st.text(st.characters(categories=["L", "N"]), min_size=1),
    learner_resources=st.none() | st.integers(1, 8).map("nvidia.com/gpu={}".format),
    learner_node_selector=PAIRS,
    actor_node_selector=PAIRS,
    learner_tolerations=TAINTS,
    actor_tolerations=TAINTS,
    learner_priority_class=st.none() | NAME,
    actor_priority_class=st.none() | NAME,
    storage_class=st.none() | NAME,
    storage=QUANTITY,
    queue=st.none() | NAME,
    image_pull_secret=st.none() | NAME,
)
SIZES = st.builds(
    SlurmOptions,
    learner_cpus=st.integers(1, 500),
    learner_mem=st.none() | QUANTITY,
    actor_mem=st.none() | QUANTITY,
    drain_seconds=st.integers(1, 10**5),
)
HOSTS = st.builds(HostsOptions, actor_hosts=st.integers(1, 99), actors_per_host=st.integers(1, 99))


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(OPTIONS, SIZES, HOSTS)
def test_whatever_is_asked_for_the_manifests_hold_what_they_promise(options, sizes, hosts):
    settings.check_options(options, sizes.host_sizes, hosts)
    record, config = make_run(hosts, sizes, **vars(options))
    objects = manifests.run_manifests(record, config, None)
    # What people read is what the cluster gets.
    assert list(yaml.safe_load_all(yaml_text(objects))) == objects
    found = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    assert len(found) == len(objects)
    for item in objects:
        assert item["metadata"].get("namespace") == options.namespace
        assert len(item["metadata"]["name"]) <= 52  # so that pods' names are not cut
    learner, actors = (item["spec"] for item in objects if item["kind"] == "Job")
    assert actors["completions"] == actors["parallelism"] == hosts.actor_hosts
    assert actors["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == str(
        hosts.actors_per_host
    )
    assert learner["template"]["spec"]["terminationGracePeriodSeconds"] >= sizes.drain_seconds
    for spec in (job["template"]["spec"] for job in (learner, actors)):
        check_confined(spec)
        names = {volume["name"] for volume in spec["volumes"]}
        assert names == {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}


def check_confined(spec: dict) -> None:
    """What no pod may do."""
    [container] = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert {"cpu", "memory"} <= container["resources"]["limits"].keys()


def test_a_few_of_those_fit_the_published_schemas_too():
    @hypothesis.settings(max_examples=3, deadline=None)
    @hypothesis.given(OPTIONS, SIZES, HOSTS)
    def fit(options, sizes, hosts):
        for item in manifests.run_manifests(*make_run(hosts, sizes, **vars(options)), None):
            kubernetes_validate.validate(item, VERSIONS[-1], strict=True)

    fit()


def test_secrets_hold_the_keys_of_their_pods_and_never_the_authoritys(tmp_path):
    record, config = make_run()
    run_dir = RunDir(tmp_path)
    keys.make_keys(run_dir.keys, record.run_id, record.hosts.actor_hosts)
    objects = manifests.run_manifests(record, config, run_dir)
    gate, actors = (item["data"] for item in objects if item["kind"] == "Secret")
    assert list(gate) == ["gate.pem"]
    assert list(actors) == ["actor-0.pem", "actor-1.pem", "actor-2.pem"]
    # Its end; all keys begin alike.
    private = (run_dir.keys / "authority.pem").read_text().partition("\n-----END PRIVATE")[0][-50:]
    assert private.strip()
    for text in [*gate.values(), *actors.values()]:
        assert private not in base64.b64decode(text).decode()
    others = [item for item in objects if item["kind"] != "Secret"]
    assert "PRIVATE" not in json.dumps(others)


def test_only_the_runs_own_actors_reach_the_gate_and_only_the_gate():
    record, config = make_run()
    admits, confines = (p["spec"] for p in manifests.network_policies(record, config))
    learner, actors = (
        job["spec"]["template"]["metadata"]["labels"] for job in jobs(record, config)
    )
    assert admits["podSelector"]["matchLabels"] == learner
    [rule] = admits["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": actors}}]
    assert [port["port"] for port in rule["ports"]] == [config.replay.port]
    assert confines["podSelector"]["matchLabels"] == actors
    assert "ingress" not in confines and set(confines["policyTypes"]) == {"Ingress", "Egress"}


def jobs(record, config) -> list[dict]:
    return [manifests.learner_job(record, config), manifests.actor_job(record)]


@pytest.mark.parametrize(("job", "action"), [(0, "FailJob"), (1, "FailIndex")])
def test_making_room_is_no_failure_and_bad_input_is_one_for_good(job, action):
    rules = jobs(*make_run())[job]["spec"]["podFailurePolicy"]["rules"]
    actions = [(r["action"], r.get("onExitCodes", {}).get("values")) for r in rules]
    assert actions == [(action, [2]), ("Ignore", [75]), ("Ignore", None)]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for run in RUNS:
        (GOLDEN / run).write_text(text_of(run))
