"""kubectl, each call with a time limit, and what it prints."""

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from launch.engines.cluster_command import run_cluster_command
from launch.engines.kubernetes import names
from launch.engines.options import KubernetesOptions
from launch.engines.record import EngineRecord
from launch.errors import InputError
from report.plain_text import plain, plain_value

_COMMAND_SECONDS = 120.0
_ANSWER_SECONDS = 30  # for one request, told to kubectl itself
# What a run may have in a cluster beside its volume.
_KINDS = "jobs,services,configmaps,secrets,networkpolicies"
_PULL_PROBLEMS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
_GONE = re.compile(r"\(NotFound\)|not found")
_FORBIDDEN = re.compile(r"\(Forbidden\)|forbidden")


class NotFoundError(InputError):
    """There is no such object."""


class ForbiddenError(InputError):
    """This user may not do that."""


@dataclasses.dataclass(frozen=True)
class Pod:
    """A pod of a run, as the cluster has it."""

    name: str
    component: str  # learner or actor
    index: int | None  # of an actor host
    state: str
    node: str
    reason: str  # why it waits or how it ended; empty while it runs
    exit_code: int | None

    @property
    def running(self) -> bool:
        """Whether its host is at work."""
        return self.state == "running"

    @property
    def ended(self) -> bool:
        """Whether it will never run again."""
        return self.state in ("succeeded", "failed")

    @property
    def cannot_pull(self) -> bool:
        """Whether its image is what it waits for in vain."""
        return self.reason.partition(":")[0] in _PULL_PROBLEMS


class Job(NamedTuple):
    """A job of a run."""

    name: str
    component: str
    state: str  # active, complete or failed
    reason: str


def pods(record: EngineRecord) -> list[Pod]:
    """The run's pods, those that have ended too."""
    found = get(record, "pods", f"--selector={names.selector(record)}")
    return sorted(map(parse_pod, found["items"]), key=lambda pod: (pod.component, pod.index or 0))


def jobs(record: EngineRecord) -> list[Job]:
    """The run's jobs."""
    found = get(record, "jobs", f"--selector={names.selector(record)}")
    return [parse_job(item) for item in found["items"]]


def parse_pod(item: dict[str, Any]) -> Pod:
    """A pod as kubectl describes it in JSON."""
    labels, status = item["metadata"].get("labels", {}), item.get("status", {})
    index = labels.get(names.INDEX)
    container = (status.get("containerStatuses") or [{}])[0].get("state", {})
    ended = container.get("terminated") or {}
    return Pod(
        name=item["metadata"]["name"],
        component=labels.get(names.COMPONENT, "?"),
        index=int(index) if index is not None and index.isdigit() else None,
        state="leaving" if "deletionTimestamp" in item["metadata"] else _phase(status),
        node=item.get("spec", {}).get("nodeName", ""),
        reason=_reason(status, container),
        exit_code=ended.get("exitCode"),
    )


def _phase(status: dict[str, Any]) -> str:
    return str(status.get("phase", "Unknown")).lower()


def _reason(status: dict[str, Any], container: dict[str, Any]) -> str:
    """Why a pod waits, or how it ended, in one line."""
    waits, ended = container.get("waiting") or {}, container.get("terminated") or {}
    if waits:
        return _said(waits)
    if ended:
        code = ended.get("exitCode")
        return "" if code == 0 else f"exit code {code}: {_last_line(ended)}"
    for condition in status.get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _said(condition)
    return _said(status)


def _said(about: dict[str, Any]) -> str:
    said = [about.get("reason"), about.get("message")]
    return ": ".join(plain(text.strip()) for text in said if text)


def _last_line(ended: dict[str, Any]) -> str:
    lines = str(ended.get("message") or ended.get("reason") or "no reason").strip().splitlines()
    return plain(lines[-1]) if lines else "no reason"


def parse_job(item: dict[str, Any]) -> Job:
    """A job as kubectl describes it in JSON."""
    labels = item["metadata"].get("labels", {})
    for condition in item.get("status", {}).get("conditions", []):
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            state, reason = condition["type"].lower(), _said(condition)
            break
    else:
        state, reason = "active", ""
    return Job(item["metadata"]["name"], labels.get(names.COMPONENT, "?"), state, reason)


def refused_pods(record: EngineRecord) -> str | None:
    """Why the cluster makes no pod of a job (a quota, a policy); None if it says nothing."""
    try:
        found = get(record, "events", "--field-selector=reason=FailedCreate")
    except ForbiddenError:
        return None  # not everybody may look
    base = names.base(record)
    said = [e["message"] for e in found["items"] if e["involvedObject"]["name"].startswith(base)]
    return plain(said[-1]) if said else None


def apply(record: EngineRecord, objects: Sequence[dict[str, Any]], *, judge: bool = False) -> None:
    """Makes the objects, or brings them up to date; `judge` has the cluster say what it would."""
    flags = ["--server-side", "--field-manager=vantage", "--filename=-"]
    if judge:
        flags.append("--dry-run=server")
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    call(record.kubernetes, ["apply", *flags], text=json.dumps(listed))


def patch(record: EngineRecord, kind: str, name: str, change: dict[str, Any]) -> None:
    """Changes an object in place."""
    call(record.kubernetes, ["patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}"])


def delete(
    record: EngineRecord, *, kinds: str = _KINDS, component: str | None = None, wait: bool = True
) -> None:
    """Deletes the run's objects of these kinds; its volume stays unless it is one of them."""
    flags = [f"--selector={names.selector(record, component)}", "--ignore-not-found"]
    # Pods go before their job does: what comes next may need their volume.
    flags += ["--cascade=foreground", f"--wait={wait}".lower()]
    seconds = record.sizes.drain_seconds + _COMMAND_SECONDS
    call(record.kubernetes, ["delete", kinds, *flags], seconds=seconds)


def get(record: EngineRecord, *what: str) -> dict[str, Any]:
    """Objects as JSON; texts in it are safe to show."""
    return plain_value(json.loads(call(record.kubernetes, ["get", *what, "--output=json"])))


def call(
    options: KubernetesOptions,
    command: Sequence[str],
    *,
    text: str | None = None,
    seconds: float = _COMMAND_SECONDS,
) -> str:
    """What kubectl prints; raises InputError, in one line, with what it says when it fails."""
    done = run_cluster_command(
        [*kubectl(options), *_answer_time(command[0]), *command],
        text=text,
        seconds=seconds,
        absent=NO_KUBECTL,
        late=f"kubectl {command[0]} did not answer within {seconds:.0f} s; is the cluster up?",
    )
    if done.returncode != 0:
        raise _refusal(command[0], done.stderr)
    return done.stdout


def _answer_time(verb: str) -> list[str]:
    # Where it waits for something to happen, the time limit of the whole call has to do.
    waits = verb in ("delete", "exec", "wait")
    return [] if waits else [f"--request-timeout={_ANSWER_SECONDS}s"]


NO_KUBECTL = "no kubectl in PATH; install it, it talks to the cluster"


def kubectl(options: KubernetesOptions) -> list[str]:
    """kubectl for the cluster and the namespace that were asked for."""
    command = ["kubectl"]
    if options.context is not None:
        command.append(f"--context={options.context}")
    if options.namespace is not None:
        command.append(f"--namespace={options.namespace}")
    return command


def _refusal(verb: str, said: str) -> InputError:
    lines = [line.strip() for line in said.strip().splitlines() if not line.startswith("Warning:")]
    # Of several objects that are refused for one reason, one line is enough.
    text = plain(lines[-1]) if lines else "it gave no reason"
    text = re.sub(r"^error: |^Error from server ?", "", text)
    kind = ForbiddenError if _FORBIDDEN.search(text) else InputError
    kind = NotFoundError if kind is InputError and _GONE.search(text) else kind
    return kind(f"kubectl {verb} refused: {text}")
