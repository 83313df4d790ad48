"""A real Slurm cluster of three hosts on one Linux machine, for tests; needs root.

A host is a network namespace with an address of its own on a bridge, and a slurmd in it; slurmctld
and a munged of the cluster's own run outside. All hosts see the machine's files, so any folder is a
shared one. Every process is a child in the foreground, ended by `down`.

By hand: `python tests/cluster/slurm_cluster.py` runs one until Ctrl-C.
"""

import os
import pathlib
import re
import secrets
import socket
import subprocess
import tempfile
import time

from launch.supervise.node_process import die_with_parent

HOSTS = ("h1", "h2", "h3")
LEARN, ACT = "learn", "act"  # partitions: h1, and the other two
# Not the usual ports: there may be a Slurm of its own on the machine.
SLURMCTLD_PORT, SLURMD_PORT = 26817, 26818
_NETWORK = "10.83.0"
_BRIDGE = "vantage0"
_UP_SECONDS = 120.0
_DOWN_SECONDS = 30.0


class SlurmCluster:
    """Three hosts, two partitions."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._config = folder / "slurm.conf"
        self._processes: list[subprocess.Popen] = []
        self.environment = {**os.environ, "SLURM_CONF": str(self._config)}

    def up(self) -> None:
        """Returns when all hosts are idle."""
        self._remove_network()  # what a killed test left
        self._write_files()
        self._make_network()
        self._start("munged", *_munged_options(self._folder), "--foreground", "--force")
        _wait_for(lambda: (self._folder / "munge.socket").exists(), "munged is up")
        self._start("slurmctld", "-D")
        for host in HOSTS:
            self._start("ip", "netns", "exec", _namespace(host), "slurmd", "-D", "-N", host)
        _wait_for(lambda: all(s.startswith("idle") for s in self._states()), self._report)

    def down(self) -> None:
        """Ends everything that `up` started, whatever state it is in."""
        try:
            self.call("scancel", "--user=root")
            deadline = time.monotonic() + _DOWN_SECONDS
            while self.call("squeue", "--noheader") and time.monotonic() < deadline:
                time.sleep(0.5)
        except (subprocess.SubprocessError, OSError):
            pass  # there may be no controller to ask; its jobs die with the namespaces' daemons
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(_DOWN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_DOWN_SECONDS)
        self._remove_network()

    def cut(self, host: str) -> None:
        """The host vanishes from the network; what runs on it runs on."""
        _ip("link", "set", _link(host), "down")

    def heal(self, host: str) -> None:
        """The host is back."""
        _ip("link", "set", _link(host), "up")

    def call(self, *command: str) -> str:
        """One of Slurm's commands, as on a login node."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def on_host(self, host: str, *command: str) -> subprocess.CompletedProcess:
        """A command of whatever kind on one of the hosts, beside Slurm."""
        return subprocess.run(
            ["ip", "netns", "exec", _namespace(host), *command],
            capture_output=True,
            text=True,
            timeout=120,
        )

    def state(self, host: str) -> str:
        """What Slurm thinks of a host: idle, alloc, down*, ..."""
        return self.call("sinfo", "--noheader", f"--nodes={host}", "--format=%t").split()[0]

    def _states(self) -> list[str]:
        try:
            return [self.state(host) for host in HOSTS]
        except (subprocess.CalledProcessError, IndexError):
            return ["unknown"]

    def _start(self, *command: str) -> None:
        log = (self._folder / f"{command[0]}-{len(self._processes)}.log").open("w")
        self._processes.append(
            subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A test that is killed leaves no daemons behind.
                preexec_fn=die_with_parent(os.getpid()),
            )
        )

    def _report(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        tails = [f"{log.name}: {log.read_text()[-1000:]}" for log in logs]
        return "\n".join([f"hosts are {self._states()}", *tails])

    def _write_files(self) -> None:
        (self._folder / "state").mkdir()
        key = self._folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        (self._folder / "cgroup.conf").write_text(_cgroup_config())
        self._config.write_text(_slurm_config(self._folder))

    def _make_network(self) -> None:
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{_NETWORK}.1/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        for host in HOSTS:
            inside = ("-n", _namespace(host))
            _ip("netns", "add", _namespace(host))
            peer = ("peer", "name", "eth0", "netns", _namespace(host))
            _ip("link", "add", _link(host), "type", "veth", *peer)
            _ip("link", "set", _link(host), "master", _BRIDGE, "up")
            _ip(*inside, "addr", "add", f"{address(host)}/24", "dev", "eth0")
            _ip(*inside, "link", "set", "eth0", "up")
            _ip(*inside, "link", "set", "lo", "up")

    def _remove_network(self) -> None:
        for host in HOSTS:
            _ip("netns", "del", _namespace(host), check=False)
            _ip("link", "del", _link(host), check=False)
        _ip("link", "del", _BRIDGE, check=False)


def address(host: str) -> str:
    """The host's address on the bridge."""
    return f"{_NETWORK}.{10 + HOSTS.index(host)}"


def _slurm_config(folder: pathlib.Path) -> str:
    hosts = [f"NodeName={h} NodeAddr={address(h)} CPUs=1 RealMemory=16000" for h in HOSTS]
    lines = [
        "ClusterName=vantage",
        f"SlurmctldHost={socket.gethostname().partition('.')[0]}({_NETWORK}.1)",
        f"SlurmctldPort={SLURMCTLD_PORT}",
        f"SlurmdPort={SLURMD_PORT}",
        "SlurmUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/munge.socket",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        # Hosts are what this file says, not what the machine has.
        "SlurmdParameters=config_overrides",
        # Short, so that a lost host is noticed within a test's patience.
        "SlurmdTimeout=15",
        "KillWait=15",
        "SchedulerParameters=sched_interval=5",
        "ReturnToService=2",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd.%n.pid",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool.%n",
        *hosts,
        f"PartitionName={LEARN} Nodes=h1 MaxTime=INFINITE State=UP",
        f"PartitionName={ACT} Nodes=h2,h3 Default=YES MaxTime=INFINITE State=UP",
    ]
    return "\n".join(lines) + "\n"


def _cgroup_config() -> str:
    """slurmd loads a cgroup plugin even where nothing uses one."""
    version = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.", version)
    assert found, version
    if int(found.group(1)) < 23:
        return "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
    return "CgroupPlugin=disabled\n"


def _munged_options(folder: pathlib.Path) -> list[str]:
    names = {"socket": "socket", "key-file": "key", "pid-file": "pid"}
    named = [f"--{option}={folder}/munge.{suffix}" for option, suffix in names.items()]
    return [*named, f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munged.log"]


def _namespace(host: str) -> str:
    return f"vantage-{host}"


def _link(host: str) -> str:
    return f"vantage-{host}"


def _ip(*args: str, check: bool = True) -> None:
    subprocess.run(["ip", *args], check=check, capture_output=True, text=True, timeout=60)


def _wait_for(condition, describe) -> None:
    deadline = time.monotonic() + _UP_SECONDS
    while not condition():
        assert time.monotonic() < deadline, describe() if callable(describe) else describe
        time.sleep(0.5)


def main() -> None:
    """A cluster to try things on."""
    with tempfile.TemporaryDirectory(prefix="vantage-slurm-") as folder:
        os.chmod(folder, 0o755)
        cluster = SlurmCluster(pathlib.Path(folder))
        try:
            cluster.up()
            print(f"export SLURM_CONF={cluster.environment['SLURM_CONF']}  # Ctrl-C ends it")
            while True:
                time.sleep(1.0)
        except KeyboardInterrupt:
            pass
        finally:
            cluster.down()


if __name__ == "__main__":
    main()
