"""The two kinds of pods of a run: the learner's host and an actor host, as objects."""

from typing import Any

from launch.config import Config
from launch.engines.host_size import ACTOR_MIB, learner_mib
from launch.engines.kubernetes import names
from launch.engines.kubernetes.settings import pairs_of, tolerations_of
from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS
from launch.engines.record import EngineRecord

# That of the Dockerfile, by number: only so can a cluster see that it is not root.
_USER = 1000
_ACTOR_GRACE_SECONDS = 60
_READER_SECONDS = 3600  # then it ends by itself, if nobody was left to delete it
_TMP = {"name": "tmp", "mountPath": "/tmp"}
# The root file system is read-only, so what libraries keep for themselves goes to /tmp.
_ENVIRONMENT = {
    "HOME": "/tmp",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "NUMBA_CACHE_DIR": "/tmp/numba",
    names.IN_POD: "1",
}


def learner_pod(record: EngineRecord, config: Config) -> dict[str, Any]:
    """The template of the learner's pod, which has the volume."""
    options, sizes = record.kubernetes, record.sizes
    args = ["host", "--run-dir", names.RUN_DIR, "--groups", *LEARNER_GROUPS]
    args += [*_given("gate.pem"), "--print-logs", "--come-back"]
    resources = {
        "cpu": str(sizes.learner_cpus),
        "memory": sizes.learner_mem or f"{learner_mib(config)}Mi",
        **pairs_of("learner_resources", options.learner_resources),
    }
    container = _container(record, args, resources)
    container["ports"] = [{"name": "gate", "containerPort": config.replay.port}]
    container["volumeMounts"].append({"name": "run", "mountPath": names.VOLUME})
    claim = {"claimName": names.base(record)}
    return _template(
        record,
        "learner",
        container,
        keys=f"{names.learner(record)}-key",
        volumes=[{"name": "run", "persistentVolumeClaim": claim}],
        grace_seconds=sizes.drain_seconds,
        node_selector=pairs_of("learner_node_selector", options.learner_node_selector),
        tolerations=tolerations_of("learner_tolerations", options.learner_tolerations),
        priority_class=options.learner_priority_class,
    )


def actor_pod(record: EngineRecord) -> dict[str, Any]:
    """The template of an actor host's pod, which has nothing to lose."""
    options, per_host = record.kubernetes, record.hosts.actors_per_host
    index = "$(JOB_COMPLETION_INDEX)"
    args = ["host", "--groups", *ACTOR_GROUPS, "--index", index]
    args += [*_given(f"actor-{index}.pem"), "--come-back"]
    memory = record.sizes.actor_mem or f"{per_host * ACTOR_MIB}Mi"
    return _template(
        record,
        "actor",
        _container(record, args, {"cpu": str(per_host), "memory": memory}),
        keys=f"{names.actor(record)}-keys",
        volumes=[],
        grace_seconds=_ACTOR_GRACE_SECONDS,
        node_selector=pairs_of("actor_node_selector", options.actor_node_selector),
        tolerations=tolerations_of("actor_tolerations", options.actor_tolerations),
        priority_class=options.actor_priority_class,
    )


def reader_pod(record: EngineRecord) -> dict[str, Any]:
    """A pod that does nothing, with the volume of a run that has no learner: to copy from."""
    options = record.kubernetes
    container = _container(record, [], {"cpu": "100m", "memory": "256Mi"})
    container["command"] = ["sleep", str(_READER_SECONDS)]
    container["volumeMounts"] = [_TMP, {"name": "run", "mountPath": names.VOLUME, "readOnly": True}]
    template = _template(
        record,
        "reader",
        container,
        keys=None,
        volumes=[{"name": "run", "persistentVolumeClaim": {"claimName": names.base(record)}}],
        grace_seconds=1,
        # Where the learner can be, its volume can be too; its devices are not asked for.
        node_selector=pairs_of("learner_node_selector", options.learner_node_selector),
        tolerations=tolerations_of("learner_tolerations", options.learner_tolerations),
        priority_class=None,
    )
    metadata = {**template["metadata"], "name": f"{names.base(record)}-reader"}
    spec = {**template["spec"], "activeDeadlineSeconds": _READER_SECONDS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _given(key: str) -> list[str]:
    config = f"{names.CONFIG_FOLDER}/{names.CONFIG_FILE}"
    return ["--config", config, "--key", f"{names.KEYS_FOLDER}/{key}"]


def _container(record: EngineRecord, args: list[str], resources: dict[str, str]) -> dict[str, Any]:
    return {
        "name": names.CONTAINER,
        "image": record.kubernetes.image,
        "args": args,
        "env": [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()],
        # As much as it may use: such a pod is the last that a node under pressure evicts.
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            _TMP,
            {"name": "config", "mountPath": names.CONFIG_FOLDER, "readOnly": True},
            {"name": "keys", "mountPath": names.KEYS_FOLDER, "readOnly": True},
        ],
        # The last lines say why a host failed; status shows them.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _template(
    record: EngineRecord,
    component: str,
    container: dict[str, Any],
    *,
    keys: str | None,
    volumes: list[dict[str, Any]],
    grace_seconds: int,
    node_selector: dict[str, str],
    tolerations: list[dict[str, str]],
    priority_class: str | None,
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace_seconds,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}, *volumes],
    }
    if keys is not None:
        secret_volume = {"secretName": keys, "defaultMode": 0o440}
        spec["volumes"].append({"name": "config", "configMap": {"name": names.base(record)}})
        spec["volumes"].append({"name": "keys", "secret": secret_volume})
    secret = record.kubernetes.image_pull_secret
    for key, value in (
        ("nodeSelector", node_selector),
        ("tolerations", tolerations),
        ("priorityClassName", priority_class),
        ("imagePullSecrets", [] if secret is None else [{"name": secret}]),
    ):
        if value:
            spec[key] = value
    return {"metadata": {"labels": names.labels(record, component)}, "spec": spec}
