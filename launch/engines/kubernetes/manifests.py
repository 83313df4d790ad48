"""All objects of a run, as `kubectl apply` takes them."""

import base64
import pathlib
from collections.abc import Sequence
from typing import Any

from launch.config import Config
from launch.engines.kubernetes import names
from launch.engines.kubernetes.pods import actor_pod, learner_pod
from launch.engines.record import EngineRecord
from launch.engines.share import config_text
from launch.errors import ExitCode
from launch.gate import keys
from launch.run_dir import RunDir

Manifest = dict[str, Any]

_LEARNER_FAILURES = 6  # in all; being evicted or drained is none
_ACTOR_FAILURES = 5  # of each index
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# A node that is drained, gone or given to someone else.
_DISRUPTED = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}


def run_manifests(record: EngineRecord, config: Config, keys_of: RunDir | None) -> list[Manifest]:
    """Everything, in the order it is to be made; without keys where none have been made."""
    return [
        config_map(record, config),
        *secrets(record, keys_of),
        volume_claim(record),
        service(record, config),
        *network_policies(record, config),
        learner_job(record, config),
        actor_job(record),
    ]


def config_map(record: EngineRecord, config: Config) -> Manifest:
    """What hosts are given; nothing secret."""
    data = {names.CONFIG_FILE: config_text(config, record)}
    return _object("v1", "ConfigMap", record, names.base(record), data=data)


def secrets(record: EngineRecord, keys_of: RunDir | None) -> list[Manifest]:
    """The gate's key for the learner's pod, the actor hosts' for theirs; never the authority's."""
    actors = [keys.actor_key(index) for index in range(record.hosts.actor_hosts)]
    return [
        _secret(record, f"{names.learner(record)}-key", [keys.GATE], keys_of),
        _secret(record, f"{names.actor(record)}-keys", actors, keys_of),
    ]


def _secret(
    record: EngineRecord, name: str, files: Sequence[str], keys_of: RunDir | None
) -> Manifest:
    data = {} if keys_of is None else {file: _encoded(keys_of.keys / file) for file in files}
    return _object("v1", "Secret", record, name, type="Opaque", data=data)


def _encoded(path: pathlib.Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def volume_claim(record: EngineRecord) -> Manifest:
    """The volume of the run directory, which outlives jobs and pods."""
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": record.kubernetes.storage}},
    }
    if record.kubernetes.storage_class is not None:
        spec["storageClassName"] = record.kubernetes.storage_class
    return _object("v1", "PersistentVolumeClaim", record, names.base(record), spec=spec)


def service(record: EngineRecord, config: Config) -> Manifest:
    """A name for whatever pod the learner is in: headless, so it is that pod's own address."""
    spec = {
        "clusterIP": "None",
        "selector": names.labels(record, "learner"),
        "ports": [{"name": "gate", "port": config.replay.port}],
        "publishNotReadyAddresses": True,
    }
    return _object("v1", "Service", record, names.learner(record), spec=spec)


def network_policies(record: EngineRecord, config: Config) -> list[Manifest]:
    """The run's own actors reach the gate and nothing else; nobody else reaches any pod of it."""
    learner, actor = ({"matchLabels": names.labels(record, c)} for c in ("learner", "actor"))
    gate = [{"protocol": "TCP", "port": config.replay.port}]
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    admits = {
        "podSelector": learner,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": actor}], "ports": gate}],
    }
    confines = {
        "podSelector": actor,
        "policyTypes": ["Ingress", "Egress"],
        "egress": [{"to": [{"podSelector": learner}], "ports": gate}, {"ports": dns}],
    }
    return [
        _object("networking.k8s.io/v1", "NetworkPolicy", record, name, spec=spec)
        for name, spec in ((names.learner(record), admits), (names.actor(record), confines))
    ]


def learner_job(record: EngineRecord, config: Config) -> Manifest:
    """One pod at a time. It comes back wherever its volume can go, until the run is over."""
    spec = {
        "backoffLimit": _LEARNER_FAILURES,
        # Two learners would write one volume: the next pod waits until the last one has ended.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": _failure_policy("FailJob"),
        "template": learner_pod(record, config),
    }
    return _job(record, names.learner(record), "learner", spec)


def actor_job(record: EngineRecord) -> Manifest:
    """Actor hosts by number. One that fails for good is missing, and the others play on."""
    spec = {
        "completionMode": "Indexed",
        "completions": record.hosts.actor_hosts,
        "parallelism": record.hosts.actor_hosts,
        "backoffLimitPerIndex": _ACTOR_FAILURES,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": _failure_policy("FailIndex"),
        "template": actor_pod(record),
    }
    return _job(record, names.actor(record), "actor", spec)


def _failure_policy(bad_input: str) -> Manifest:
    """A host that cannot belong to the run will not tomorrow; one that made room did not fail."""
    rules = [_on_exit(bad_input, ExitCode.BAD_INPUT), _on_exit("Ignore", ExitCode.COME_BACK)]
    return {"rules": [*rules, _DISRUPTED]}


def _on_exit(action: str, code: ExitCode) -> Manifest:
    when = {"containerName": names.CONTAINER, "operator": "In", "values": [int(code)]}
    return {"action": action, "onExitCodes": when}


def _job(record: EngineRecord, name: str, component: str, spec: Manifest) -> Manifest:
    job = _object("batch/v1", "Job", record, name, spec=spec)
    job["metadata"]["labels"] = names.labels(record, component)
    if record.kubernetes.queue is not None:
        job["metadata"]["labels"][_QUEUE_LABEL] = record.kubernetes.queue
    return job


def to_judge(objects: Sequence[Manifest]) -> list[Manifest]:
    """What the cluster is asked about before a run is made.

    Jobs have another name, because one that has ended could not be changed. Their pods are there
    too: quotas and policies are about pods, and a job passes whatever becomes of its own.
    """
    jobs = [_renamed(item) for item in objects if item["kind"] == "Job"]
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**job["metadata"], **job["spec"]["template"]["metadata"]},
            "spec": job["spec"]["template"]["spec"],
        }
        for job in jobs
    ]
    return [*(item for item in objects if item["kind"] != "Job"), *jobs, *pods]


def _renamed(item: Manifest) -> Manifest:
    return {**item, "metadata": {**item["metadata"], "name": f"{item['metadata']['name']}-judged"}}


def _object(version: str, kind: str, record: EngineRecord, name: str, **rest: Any) -> Manifest:
    metadata: Manifest = {"name": name, "labels": names.labels(record)}
    if record.kubernetes.namespace is not None:
        metadata["namespace"] = record.kubernetes.namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
