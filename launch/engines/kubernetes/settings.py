"""Flags that hold several values, resources and node selectors say; and the form of them all."""

import re

from launch.bounds import COUNT
from launch.engines.options import HostSizes, HostsOptions, KubernetesOptions
from launch.errors import InputError
from launch.layout import MAX_CLUSTER_HOSTS
from launch.names import check_printable

# As the API server checks them; a mistake is told before it is asked.
_KEY = r"(?:[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?"
_PAIR = re.compile(f"(?P<key>{_KEY})=(?P<value>{_VALUE})")
_TOLERATION = re.compile(
    f"(?P<key>{_KEY})(=(?P<value>{_VALUE}))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)"
)
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?([KMGTPE]i?|k)?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,1000}")
_NAMES = ("storage_class", "learner_priority_class", "actor_priority_class", "image_pull_secret")


def pairs_of(flag: str, text: str | None) -> dict[str, str]:
    """`key=value,key=value` as a dictionary."""
    found = {}
    for part in [] if text is None else text.split(","):
        pair = _PAIR.fullmatch(part)
        if pair is None:
            raise InputError(f"{flag}={text}: '{part}' is not key=value")
        found[pair["key"]] = pair["value"]
    return found


def tolerations_of(flag: str, text: str | None) -> list[dict[str, str]]:
    """`key=value:Effect,key:Effect`, as taints are written, as tolerations of them."""
    found = []
    for part in [] if text is None else text.split(","):
        taint = _TOLERATION.fullmatch(part)
        if taint is None:
            raise InputError(
                f"{flag}={text}: '{part}' is not key=value:Effect or key:Effect, with NoSchedule, "
                "PreferNoSchedule or NoExecute for Effect"
            )
        matched = {"key": taint["key"], "effect": taint["effect"]}
        if taint["value"] is None:
            found.append({**matched, "operator": "Exists"})
        else:
            found.append({**matched, "operator": "Equal", "value": taint["value"]})
    return found


def check_options(options: KubernetesOptions, sizes: HostSizes, hosts: HostsOptions) -> None:
    """Refuses what no cluster would take."""
    if hosts.actor_hosts > MAX_CLUSTER_HOSTS:
        raise InputError(
            f"actor_hosts={hosts.actor_hosts}: the keys of {MAX_CLUSTER_HOSTS} hosts at most fit "
            "into a Secret; give each more --actors-per-host"
        )
    if options.image is None:
        raise InputError("--engine kubernetes needs --image: the one that the Dockerfile builds")
    COUNT.check(learner_cpus=sizes.learner_cpus, drain_seconds=sizes.drain_seconds)
    _check_form("image", options.image, _IMAGE, "name of an image")
    _check_form("namespace", options.namespace, _NAMESPACE, "name of a namespace")
    for flag in _NAMES:
        _check_form(flag, getattr(options, flag), _NAME, "name of an object")
    _check_form("queue", options.queue, _NAME, "name of an object")
    _check_form("storage", options.storage, _QUANTITY, "quantity such as 20Gi")
    _check_form("learner_mem", sizes.learner_mem, _QUANTITY, "quantity such as 20Gi")
    _check_form("actor_mem", sizes.actor_mem, _QUANTITY, "quantity such as 20Gi")
    if options.context is not None:
        check_printable("context", options.context)
    for flag in ("learner_node_selector", "actor_node_selector"):
        pairs_of(flag, getattr(options, flag))
    for flag in ("learner_tolerations", "actor_tolerations"):
        tolerations_of(flag, getattr(options, flag))
    for name, amount in pairs_of("learner_resources", options.learner_resources).items():
        if not amount.isdigit() or int(amount) < 1:
            raise InputError(f"learner_resources: {name}={amount} is no number of devices")


def _check_form(flag: str, value: str | None, form: re.Pattern[str], kind: str) -> None:
    if value is not None:
        check_printable(flag, value)
        if form.fullmatch(value) is None:
            raise InputError(f"{flag}={value} is no {kind}")
