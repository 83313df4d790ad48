"""A real Kubernetes control plane on this machine, on the loopback alone, for tests.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are taken from the folder that
KUBEBUILDER_ASSETS names, as developers of controllers have it. There is no kubelet: nodes are
those of `process_node.py`.
"""

import json
import os
import pathlib
import secrets
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any

import portpicker
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from launch.supervise.node_process import die_with_parent

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
STORAGE_CLASS = "folders"
# What runs and their nodes need, and nothing that would ask for more.
_CONTROLLERS = (
    *("job-controller", "endpointslice-controller", "persistentvolume-binder-controller"),
    *("garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller"),
    *("pod-garbage-collector-controller", "resourcequota-controller", "namespace-controller"),
    "persistentvolumeclaim-protection-controller",
)
_UP_SECONDS = 180.0
_DOWN_SECONDS = 30.0


def missing() -> str | None:
    """Why there can be no control plane here; None if there can."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if folder is None:
        return f"KUBEBUILDER_ASSETS names no folder with {', '.join(PROGRAMS)}"
    absent = [name for name in PROGRAMS if not (pathlib.Path(folder) / name).exists()]
    if absent:
        return f"KUBEBUILDER_ASSETS={folder} has no {', '.join(absent)}"
    return "needs root, for network namespaces" if os.geteuid() != 0 else None


class Api:
    """The API server, as an administrator."""

    def __init__(self, server: str, token: str):
        self._server, self._token = server, token
        self._context = ssl.create_default_context()
        # Its certificate is made anew every time, and the loopback is nobody else's.
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def __call__(self, method: str, path: str, body: Any = None, *, kind: str = "") -> Any:
        """What it answers; raises HTTPError."""
        content = f"application/{kind}+json" if kind else "application/json"
        request = urllib.request.Request(
            f"{self._server}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": content},
        )
        with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
            return json.loads(answer.read() or b"{}")

    def make(self, path: str, item: dict[str, Any]) -> None:
        """Makes an object that may be there already."""
        try:
            self("POST", path, item)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise


class ControlPlane:
    """The programs, each a child of this process."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._programs = pathlib.Path(os.environ["KUBEBUILDER_ASSETS"])
        self._processes: list[subprocess.Popen] = []
        self.server = f"https://127.0.0.1:{portpicker.pick_unused_port()}"
        self.tokens = {name: secrets.token_hex(16) for name in ("admin", "jane")}
        self.api = Api(self.server, self.tokens["admin"])
        self.kubeconfig = folder / "kubeconfig"

    def up(self) -> None:
        """Returns when the API server answers and the others have been started."""
        etcd = f"http://127.0.0.1:{portpicker.pick_unused_port()}"
        peers = f"http://127.0.0.1:{portpicker.pick_unused_port()}"
        self._write_files()
        self._start(
            "etcd",
            f"--data-dir={self._folder}/etcd",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        )
        self._start("kube-apiserver", f"--etcd-servers={etcd}", *self._server_options())
        self._wait_for_server()
        shared = (f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0")
        controllers = f"--controllers={','.join(_CONTROLLERS)}"
        # A node that falls silent is noticed within a test's patience.
        grace = "--node-monitor-grace-period=20s"
        self._start("kube-controller-manager", *shared, controllers, grace)
        self._start("kube-scheduler", *shared)
        self._make_storage()

    def down(self) -> None:
        """Ends what `up` started."""
        for process in reversed(self._processes):
            process.kill()
            process.wait(_DOWN_SECONDS)

    def logs(self) -> str:
        """The last words of the programs."""
        return "\n".join(f"{p.name}: {p.read_text()[-1500:]}" for p in self._folder.glob("*.log"))

    def _server_options(self) -> list[str]:
        port = self.server.rpartition(":")[2]
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self._folder}/certificates",
            f"--token-auth-file={self._folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.85.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._folder}/account.pem",
            f"--service-account-signing-key-file={self._folder}/account.pem",
            # Nobody makes accounts here. Without tolerations of its own a pod leaves a lost node at
            # once, not after five minutes.
            "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds",
        ]

    def _write_files(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        (self._folder / "account.pem").write_bytes(pem)
        admin, jane = self.tokens["admin"], self.tokens["jane"]
        accounts = f'{admin},admin,1,"system:masters"\n{jane},jane,2\n'
        (self._folder / "tokens.csv").write_text(accounts)
        self.kubeconfig.write_text(json.dumps(self._kubectl_config()))

    def _kubectl_config(self) -> dict[str, Any]:
        cluster = {"server": self.server, "insecure-skip-tls-verify": True}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": n, "user": {"token": t}} for n, t in self.tokens.items()],
            "contexts": [
                {"name": name, "context": {"cluster": "test", "user": name}} for name in self.tokens
            ],
        }

    def _make_storage(self) -> None:
        """A class of volumes that are folders, and a few of them."""
        notes = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.api.make(
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "metadata": {"name": STORAGE_CLASS, "annotations": notes},
                "provisioner": "kubernetes.io/no-provisioner",
            },
        )
        for number in range(8):
            path = self._folder / f"volume-{number}"
            path.mkdir()
            spec = {
                "capacity": {"storage": "100Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": STORAGE_CLASS,
                "hostPath": {"path": str(path)},
            }
            item = {"metadata": {"name": f"volume-{number}"}, "spec": spec}
            self.api.make("/api/v1/persistentvolumes", item)

    def _start(self, name: str, *options: str) -> None:
        log = (self._folder / f"{name}.log").open("w")
        self._processes.append(
            subprocess.Popen(
                [str(self._programs / name), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(os.getpid()),
            )
        )

    def _wait_for_server(self) -> None:
        deadline = time.monotonic() + _UP_SECONDS
        while True:
            try:
                self.api("GET", "/api/v1/namespaces/default")
                return
            except OSError:  # not there, not ready, or without a namespace yet
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.5)
