"""`vantage train --engine kubernetes`: has the cluster judge the run, then makes its objects."""

import contextlib
import dataclasses
import time
from typing import Any

from launch.config import Config
from launch.engines.kubernetes import cluster, manifests, names
from launch.engines.kubernetes.yaml_text import yaml_text
from launch.engines.record import EngineRecord
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir
from launch.terminal import say, warn
from report.counted import counted

_START_SECONDS = 60.0  # for the learner's pod to show whether it can start
_POLL_SECONDS = 1.0


def prepare(
    record: EngineRecord, config: Config, former: EngineRecord | None
) -> tuple[EngineRecord, Config]:
    """The record and the config of a run whose gate is known by a name; a resumed one keeps its."""
    if former is not None and former.engine == "kubernetes":
        name = names.base(former)
    else:
        name = names.new_name(record.run_id)
    record = dataclasses.replace(record, cluster_name=name)
    hosts = dataclasses.replace(record.hosts, learner_address=names.learner(record))
    port = config.replay.port or names.GATE_PORT
    replay = dataclasses.replace(config.replay, port=port)
    return (
        dataclasses.replace(record, hosts=hosts),
        dataclasses.replace(config, replay=replay),
    )


def show(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    """Prints what would be applied, but for the keys: they are made when the run is."""
    del run_dir
    print("# The keys of both Secrets are made by `vantage train`, and printed by nobody.")
    print(yaml_text(manifests.run_manifests(record, config, None)), end="")


def check_cluster(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    """Has the cluster judge the objects, and a pod of each kind, before anything is written."""
    del run_dir
    objects = manifests.run_manifests(record, config, None)
    cluster.apply(record, manifests.to_judge(objects), judge=True)
    _check_storage(record)


def _check_storage(record: EngineRecord) -> None:
    """The API server takes a claim of any class, and it would wait for ever."""
    try:
        found = cluster.get(record, "storageclasses")["items"]
    except cluster.ForbiddenError:
        return  # not everybody may look; then `vantage status` says what the claim waits for
    known = [item["metadata"]["name"] for item in found]
    asked = record.kubernetes.storage_class
    if asked is not None and asked not in known:
        raise InputError(f"storage_class={asked} is unknown; this cluster has {_listed(known)}")
    if asked is None and not any(map(_is_default, found)):
        raise InputError(
            f"this cluster has no default storage class; choose with --storage-class from "
            f"{_listed(known)}"
        )


def _is_default(item: dict[str, Any]) -> bool:
    notes = item["metadata"].get("annotations", {})
    return notes.get("storageclass.kubernetes.io/is-default-class") == "true"


def _listed(known: list[str]) -> str:
    return ", ".join(known) or "none"


def check_idle(record: EngineRecord) -> None:
    """A run can be continued only when its former jobs have ended."""
    active = [job.name for job in cluster.jobs(record) if job.state == "active"]
    if active:
        raise InputError(
            f"the run is still in the cluster (jobs {', '.join(active)}); `vantage stop` it first"
        )


def start_run(record: EngineRecord, config: Config, run_dir: RunDir) -> ExitCode:
    """Makes the objects; when one of them is refused, none is left."""
    cluster.delete(record)  # jobs that have ended cannot be changed, and keys are new
    had_volume = _has_volume(record)
    try:
        cluster.apply(record, manifests.run_manifests(record, config, run_dir))
        waits = _wait_for_learner(record)
    except InputError:
        _clear(record, with_volume=not had_volume)
        raise
    hosts = record.hosts
    each = counted(hosts.actors_per_host, "actor")
    say(f"job {names.learner(record)}: the learner's host")
    count = counted(hosts.actor_hosts, "actor host")
    say(f"job {names.actor(record)}: {count} with {each} each")
    if waits:
        say(f"the learner's pod waits: {waits}")
    say(f"watch with: vantage status {run_dir.root}")
    say(f"stop with:  vantage stop {run_dir.root}")
    return ExitCode.DONE


def _has_volume(record: EngineRecord) -> bool:
    try:
        cluster.get(record, "persistentvolumeclaim", names.base(record))
    except cluster.NotFoundError:
        return False
    return True


def _clear(record: EngineRecord, *, with_volume: bool) -> None:
    with contextlib.ExitStack() as stack:
        if with_volume:
            stack.callback(cluster.delete, record, kinds="persistentvolumeclaims", wait=False)
        try:
            cluster.delete(record)
        except InputError as error:
            # What went wrong first is what the user has to hear.
            warn(f"objects with {names.INSTANCE}={names.base(record)} may be left: {error}")


def _wait_for_learner(record: EngineRecord) -> str:
    """Why the learner's pod has not started yet; refuses a pod that never will."""
    deadline = time.monotonic() + _START_SECONDS
    reason = "no pod yet"
    while time.monotonic() < deadline:
        learners = [pod for pod in cluster.pods(record) if pod.component == "learner"]
        for pod in learners:
            if pod.running or pod.ended:
                return ""
            if pod.cannot_pull:
                raise InputError(f"image={record.kubernetes.image} cannot be pulled: {pod.reason}")
            reason = pod.reason or pod.state
        refused = None if learners else cluster.refused_pods(record)
        if refused is not None:
            raise InputError(f"the cluster makes no pod for the run: {refused}")
        time.sleep(_POLL_SECONDS)
    return reason
