"""A node of a cluster that runs pods as processes in a network namespace, with volumes as folders.

It does what a kubelet does, as far as the pods of a run need it: registers a Node and renews its
lease, starts what the scheduler bound to it, reports how it is, ends what is deleted. Names of
headless Services are written to the namespace's hosts file, from the cluster's EndpointSlices.
`kubectl exec` and `kubectl logs`, which need a kubelet's own server, are answered by
`kubectl_of_nodes.py` from the file that nodes keep of their pods.
"""

import base64
import contextlib
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import urllib.error
from typing import Any

from launch.supervise.node_process import die_with_parent
from tests.cluster.kubernetes_plane import Api

ROOT = pathlib.Path(__file__).parents[2]
MISSING_IMAGE = "registry.example/missing:1"
_BRIDGE, _NETWORK = "vantage1", "10.84.0"
_PERIOD_SECONDS = 0.5
_LEASE_SECONDS = 4.0
_PATCH = "strategic-merge-patch"


class Pod:
    """A pod that this node has started."""

    def __init__(self, item: dict[str, Any], folder: pathlib.Path):
        self.item, self.folder = item, folder
        self.log = folder / "log"
        self.started = _now()
        self.mounts: dict[str, str] = {}
        self.process: subprocess.Popen | None = None
        self.kill_at: float | None = None

    def translate(self, text: str) -> str:
        """A path in the pod as the path that it is here."""
        for inside, outside in self.mounts.items():
            if text == inside or text.startswith(f"{inside}/"):
                return outside + text.removeprefix(inside)
        return text


class ProcessNode:
    """One node; its thread lives until `close`."""

    def __init__(self, name: str, number: int, api: Api, folder: pathlib.Path):
        self.name, self._api, self._folder = name, api, folder
        self.namespace = f"vantage-{name}"
        self.address = f"{_NETWORK}.{10 + number}"
        self.pods: dict[str, Pod] = {}  # by uid
        self.cut_off = False
        self.problem: str | None = None
        self._hosts = pathlib.Path("/etc/netns") / self.namespace / "hosts"
        self._leased_at = 0.0
        self._closing = threading.Event()
        folder.mkdir()
        self._join_network()
        self._register()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends its pods and leaves nothing behind."""
        self._closing.set()
        self._thread.join(60)
        for pod in self.pods.values():
            if pod.process is not None and pod.process.poll() is None:
                os.killpg(pod.process.pid, signal.SIGKILL)
                pod.process.wait(30)
        leave_network(self.namespace)

    def cut(self) -> None:
        """The node vanishes from the network; what runs on it runs on."""
        self.cut_off = True
        _ip("link", "set", self.namespace, "down")

    def heal(self) -> None:
        """The node is back."""
        _ip("link", "set", self.namespace, "up")
        self.cut_off = False

    def _join_network(self) -> None:
        leave_network(self.namespace)  # what a killed test left
        inside = ("-n", self.namespace)
        self._hosts.parent.mkdir(parents=True, exist_ok=True)
        self._hosts.write_text("127.0.0.1 localhost\n")
        _ip("netns", "add", self.namespace)
        peer = ("peer", "name", "eth0", "netns", self.namespace)
        _ip("link", "add", self.namespace, "type", "veth", *peer)
        _ip("link", "set", self.namespace, "master", _BRIDGE, "up")
        _ip(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip(*inside, "link", "set", "eth0", "up")
        _ip(*inside, "link", "set", "lo", "up")

    def _register(self) -> None:
        self._api.make("/api/v1/nodes", {"metadata": {"name": self.name}})
        size = {"cpu": "16", "memory": "64Gi", "pods": "20"}
        ready = {"type": "Ready", "status": "True", "reason": "Up", "lastHeartbeatTime": _now()}
        addresses = [{"type": "InternalIP", "address": self.address}]
        status = {"capacity": size, "allocatable": size, "addresses": addresses}
        status["conditions"] = [{**ready, "lastTransitionTime": _now()}]
        self._api("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status}, kind=_PATCH)

    def _run(self) -> None:
        while not self._closing.wait(_PERIOD_SECONDS):
            if self.cut_off:
                continue
            try:
                self._renew_lease()
                self._write_hosts()
                self._sync()
            except (OSError, KeyError) as error:
                self.problem = repr(error)  # the server is slow, or an object has just gone

    def _renew_lease(self) -> None:
        if time.monotonic() - self._leased_at < _LEASE_SECONDS:
            return
        self._leased_at = time.monotonic()
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {
            "holderIdentity": self.name,
            "leaseDurationSeconds": 20,
            "renewTime": _now(micro=True),
        }
        self._api.make(leases, {"metadata": {"name": self.name}, "spec": spec})
        self._api("PATCH", f"{leases}/{self.name}", {"spec": spec}, kind=_PATCH)
        # Healed after it was given up, it says itself that it is well.
        self._register()

    def _write_hosts(self) -> None:
        """In place: pods have the file mounted."""
        slices = self._api("GET", "/apis/discovery.k8s.io/v1/endpointslices")["items"]
        lines = ["127.0.0.1 localhost"]
        for item in slices:
            name = item["metadata"].get("labels", {}).get("kubernetes.io/service-name")
            for endpoint in item.get("endpoints") or []:
                lines += [f"{address} {name}" for address in endpoint["addresses"]]
        text = "\n".join(lines) + "\n"
        if text != self._hosts.read_text():
            self._hosts.write_text(text)

    def _sync(self) -> None:
        path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.name}"
        items = {item["metadata"]["uid"]: item for item in self._api("GET", path)["items"]}
        for uid, item in items.items():
            pod = self.pods.get(uid)
            if pod is not None:
                pod.item = item
            elif item["status"].get("phase") == "Pending":
                pod = self.pods[uid] = self._start(item)
            if pod is not None:
                self._follow(pod)
        for pod in (pod for uid, pod in self.pods.items() if uid not in items):
            # Deleted by force, as the pods of a node that was given up are.
            if pod.process is not None and pod.process.poll() is None:
                os.killpg(pod.process.pid, signal.SIGKILL)
        self._keep_record()

    def _start(self, item: dict[str, Any]) -> Pod:
        pod = Pod(item, self._folder / item["metadata"]["name"])
        pod.folder.mkdir(exist_ok=True)
        [container] = item["spec"]["containers"]
        if container["image"] == MISSING_IMAGE:
            state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
            self._report(pod, "Pending", state)
            return pod
        self._mount(pod, container)
        environment = self._environment(pod, container)
        args = [_expanded(arg, environment) for arg in container.get("args", [])]
        command = container.get("command") or [sys.executable, "-m", "launch"]
        with pod.log.open("ab") as log:
            pod.process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, *command, *map(pod.translate, args)],
                cwd=ROOT,
                env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent(os.getpid()),
            )
        self._report(pod, "Running", {"running": {"startedAt": pod.started}})
        return pod

    def _mount(self, pod: Pod, container: dict[str, Any]) -> None:
        volumes = {volume["name"]: volume for volume in pod.item["spec"]["volumes"]}
        for mount in container["volumeMounts"]:
            folder = self._folder_of(pod, volumes[mount["name"]])
            pod.mounts[mount["mountPath"]] = str(folder)

    def _folder_of(self, pod: Pod, volume: dict[str, Any]) -> pathlib.Path:
        core = f"/api/v1/namespaces/{pod.item['metadata']['namespace']}"
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            name = self._api("GET", f"{core}/persistentvolumeclaims/{claim}")["spec"]["volumeName"]
            found = self._api("GET", f"/api/v1/persistentvolumes/{name}")
            return pathlib.Path(found["spec"]["hostPath"]["path"])
        folder = pod.folder / volume["name"]
        folder.mkdir(exist_ok=True)
        if "configMap" in volume:
            found = self._api("GET", f"{core}/configmaps/{volume['configMap']['name']}")
            data = {name: text.encode() for name, text in found["data"].items()}
        elif "secret" in volume:
            found = self._api("GET", f"{core}/secrets/{volume['secret']['secretName']}")
            data = {name: base64.b64decode(text) for name, text in found["data"].items()}
        else:
            data = {}
        for name, content in data.items():
            (folder / name).write_bytes(content)
        return folder

    def _environment(self, pod: Pod, container: dict[str, Any]) -> dict[str, str]:
        found = {"TMPDIR": pod.translate("/tmp"), "SLURMD_NODENAME": ""}
        for variable in container.get("env", []):
            if "value" in variable:
                found[variable["name"]] = pod.translate(variable["value"])
            else:
                # The index of the job, which is a label of the pod.
                label = variable["valueFrom"]["fieldRef"]["fieldPath"].split("'")[1]
                metadata = pod.item["metadata"]
                found[variable["name"]] = {**metadata.get("annotations", {}), **metadata["labels"]}[
                    label
                ]
        return found

    def _follow(self, pod: Pod) -> None:
        """Reports that a pod has ended, and ends one that is to be deleted."""
        deleted = "deletionTimestamp" in pod.item["metadata"]
        code = None if pod.process is None else pod.process.poll()
        over = pod.item["status"].get("phase") in ("Succeeded", "Failed")
        if code is not None and not over:
            self._report(pod, "Failed" if code else "Succeeded", {"terminated": _ended(pod, code)})
        elif deleted and pod.process is None and not over:
            self._report(pod, "Failed", {"terminated": _ended(pod, 137)})
        elif deleted and code is None and not over:
            self._end(pod)
        elif deleted:
            self._forget(pod)

    def _end(self, pod: Pod) -> None:
        assert pod.process is not None
        if pod.kill_at is None:
            seconds = pod.item["metadata"].get("deletionGracePeriodSeconds", 30)
            pod.kill_at = time.monotonic() + seconds
            pod.process.send_signal(signal.SIGTERM)
        elif time.monotonic() > pod.kill_at:
            os.killpg(pod.process.pid, signal.SIGKILL)

    def _forget(self, pod: Pod) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.item["metadata"]["uid"]}}
        with contextlib.suppress(urllib.error.HTTPError):
            self._api("DELETE", _path(pod), body)

    def _report(self, pod: Pod, phase: str, state: dict[str, Any]) -> None:
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        container = {
            "name": "host",
            "image": pod.item["spec"]["containers"][0]["image"],
            "imageID": "none",
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        status = {
            "phase": phase,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "startTime": pod.started,
            "conditions": [{**ready, "lastTransitionTime": _now()}],
            "containerStatuses": [container],
        }
        self._api("PATCH", f"{_path(pod)}/status", {"status": status}, kind=_PATCH)

    def _keep_record(self) -> None:
        """What `kubectl exec` and `kubectl logs` need to know of the pods here."""
        found = {
            pod.item["metadata"]["name"]: {"mounts": pod.mounts, "log": str(pod.log)}
            for pod in self.pods.values()
        }
        path = self._folder / "pods.json"
        path.with_suffix(".new").write_text(json.dumps(found))
        os.replace(path.with_suffix(".new"), path)


def make_bridge() -> None:
    """The network that nodes join."""
    remove_bridge()
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{_NETWORK}.1/24", "dev", _BRIDGE)
    _ip("link", "set", _BRIDGE, "up")


def remove_bridge() -> None:
    """Takes it away again."""
    _ip("link", "del", _BRIDGE, check=False)


def leave_network(namespace: str) -> None:
    """Removes a node's namespace and what belongs to it."""
    _ip("netns", "del", namespace, check=False)
    _ip("link", "del", namespace, check=False)
    folder = pathlib.Path("/etc/netns") / namespace
    if folder.exists():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def _ended(pod: Pod, code: int) -> dict[str, Any]:
    lines = pod.log.read_text(errors="replace").splitlines() if pod.log.exists() else []
    # A process that a signal ended has the code that a shell gives it.
    return {
        "exitCode": code if code >= 0 else 128 - code,
        "reason": "Error" if code else "Completed",
        "message": "\n".join(lines[-5:]),
        "startedAt": pod.started,
        "finishedAt": _now(),
    }


def _expanded(text: str, environment: dict[str, str]) -> str:
    for name, value in environment.items():
        text = text.replace(f"$({name})", value)
    return text


def _path(pod: Pod) -> str:
    metadata = pod.item["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _now(*, micro: bool = False) -> str:
    now = datetime.datetime.now(datetime.timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _ip(*args: str, check: bool = True) -> None:
    subprocess.run(["ip", *args], check=check, capture_output=True, text=True, timeout=60)
