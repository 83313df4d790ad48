"""A run over three real Slurm hosts: scaled, cut off, drained, killed, stopped.

`make test-cluster` runs it, as root: it makes network namespaces and starts Slurm's daemons.
"""

import contextlib
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from launch.invocation import vantage_command
from launch.run_dir import RunDir
from report.metrics_file import read_rows
from tests.cluster.slurm_cluster import (
    ACT,
    HOSTS,
    LEARN,
    SLURMD_PORT,
    SlurmCluster,
    address,
)
from tests.launch.listening import listening_ports

pytestmark = pytest.mark.skipif(
    os.environ.get("VANTAGE_TEST_CLUSTER") != "1",
    reason="needs root and a Slurm of its own; `make test-cluster` runs it",
)

WAIT_SECONDS = 900.0  # bounds a hang; a step needs a minute or two, more on a loaded machine
CHECKPOINT_SECONDS = 5.0
ORPHAN_SECONDS = 20.0
HURRY_SECONDS = 15
WARM_SECONDS = 25.0  # a host killed sooner after its start is not requeued
ROOT = pathlib.Path(__file__).parents[2]
TRAIN_FLAGS = (
    "--engine=slurm",
    "--actor-hosts=2",
    "--actors-per-host=1",
    f"--learner-partition={LEARN}",
    f"--actor-partition={ACT}",
    "--learner-cpus=1",
    "--learner-mem=1000",
    "--actor-mem=1000",
    "--network=tiny",
    "--frames=100000000",
    "--warmup-steps=200",
    "--replay-capacity-steps=5000",
    "--publish-period-updates=20",
    "--eval-period-frames=100000000",
    "--eval-episodes=1",
    "--max-episode-frames=400",
    "--report-seconds=1",
    "--envs-per-actor=2",
    "--samples-per-insert=8",
    f"--checkpoint-seconds={CHECKPOINT_SECONDS}",
    "--replay-checkpoint-seconds=10",
)

SUITE_FLAGS = (
    *("--network", "--warmup", "--replay-capacity", "--publish", "--eval"),
    *("--max-episode", "--report", "--envs", "--samples"),
)


class Run:
    """A run as its user sees it, from the login node."""

    def __init__(self, cluster: SlurmCluster, folder: pathlib.Path):
        self.cluster = cluster
        self.run_dir = RunDir(folder)

    def vantage(self, *args: str, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run(
            vantage_command(*args),
            cwd=ROOT,
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    def train(self, *flags: str, code: int = 0) -> subprocess.CompletedProcess:
        flags = (*TRAIN_FLAGS, f"--run-dir={self.run_dir.root}", *flags)
        return self.vantage("train", *flags, code=code)

    def status(self) -> dict:
        return json.loads(self.vantage("status", str(self.run_dir.root), "--json").stdout)

    def jobs(self, role: str) -> dict[str, dict]:
        """Jobs of a role by their id, as the queue has them."""
        return {job["job_id"]: job for job in self.status()["jobs"] if job["name"].endswith(role)}

    def hosts_of(self, role: str) -> set[str]:
        return {node["host"] for node in self.status()["nodes"] if node["role"] == role}

    def host_of_actor(self, index: int) -> str:
        return json.loads(self.run_dir.host_file(index).read_text())["host"]

    def learner_pid(self) -> int:
        return json.loads(self.run_dir.status_file.read_text())["pid"]

    def kill_supervisor(self, status_file: pathlib.Path) -> int:
        """Kills the supervisor of a host, once it has run long enough to be worth a retry."""
        status = json.loads(status_file.read_text())
        self.wait_for("the host is warm", lambda: time.time() - status["started"] > WARM_SECONDS)
        os.kill(status["pid"], signal.SIGKILL)
        return status["pid"]

    def rows(self, role: str, since: float = 0.0) -> list[dict]:
        if not self.run_dir.metrics_file.exists():
            return []
        rows = read_rows(self.run_dir.metrics_file)
        return [row for row in rows if row["role"] == role and row["time"] >= since]

    def plays(self, actor: int, since: float) -> bool:
        rows = self.rows(f"actor/{actor}", since)
        return any(row.get("frames_per_second", 0) > 0 for row in rows)

    def learns(self, since: float) -> bool:
        updates = [row["updates"] for row in self.rows("learner", since)]
        return bool(updates) and updates[-1] > updates[0]

    def wait_for(self, what: str, condition) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not {what}: {self.status()}\n{self.logs()}"
            time.sleep(1.0)
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)

    def wait_for_play(self, *actors: int) -> None:
        """Every one of the actors, and the learner, make progress from now on."""
        now = time.time()
        for actor in actors:
            self.wait_for(f"actor {actor} plays", lambda actor=actor: self.plays(actor, now))
        self.wait_for("the learner learns", lambda: self.learns(now))

    def hurry(self, role: str) -> None:
        """Slurm lets a requeued job wait two minutes; an impatient user may shorten that.

        Not to nothing: a host refuses a job that starts in the second in which it ended there.
        """
        for job_id, job in self.jobs(role).items():
            # The job may start by itself in between.
            with contextlib.suppress(subprocess.CalledProcessError, ValueError):
                if job["reason"] == "BeginTime" and self._waits_for(job_id) > 2 * HURRY_SECONDS:
                    start = f"StartTime=now+{HURRY_SECONDS}"
                    self.cluster.call("scontrol", "update", f"JobId={job_id}", start)

    def _waits_for(self, job_id: str) -> float:
        """Seconds until a job of the queue may start."""
        said = self.cluster.call("squeue", "--noheader", f"--jobs={job_id}", "--format=%S")
        start = datetime.datetime.fromisoformat(said.strip())
        return (start - datetime.datetime.now()).total_seconds()

    def logs(self) -> str:
        return self.logs_of(self.run_dir.root / "logs")

    def logs_of(self, folder: pathlib.Path) -> str:
        # Slurm's own come first: they say how a host ended.
        logs = sorted(
            folder.iterdir(), key=lambda log: (not log.name.startswith("slurm-"), log.name)
        )
        return "\n".join(f"== {log.name}\n{log.read_text()[-1500:]}" for log in logs)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    cluster = SlurmCluster(folder)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


def test_what_the_cluster_does_not_have_is_refused_in_one_line(cluster, tmp_path):
    run = Run(cluster, tmp_path / "run")
    refused = {
        "--learner-partition=lern": f"learner_partition=lern is unknown; this cluster has {ACT}",
        "--learner-gres=gpu:1": "sbatch refused: Invalid generic resource",
        "--time=soon": "sbatch refused: Invalid --time",
    }
    for flag, said in refused.items():
        message = run.train(flag, code=2).stderr
        assert said in message and message.count("\n") == 1
        assert not run.run_dir.root.exists()
    assert cluster.call("squeue", "--noheader") == ""


def test_a_suite_is_queued_once_and_runs_to_its_end(cluster, tmp_path):
    login, out = Run(cluster, tmp_path / "unused"), tmp_path / "suite"
    grid = ("--games", "pong", "--algorithms", "va", "q", "--seeds", "1", "--frames", "4000")
    place = ("--engine=slurm", f"--learner-partition={ACT}", "--learner-cpus=1")
    flags = [f for f in TRAIN_FLAGS if f.startswith(SUITE_FLAGS)]

    def suite() -> str:
        asked = ("suite", *grid, *place, "--learner-mem=1000", "--out", str(out))
        return login.vantage(*asked, "--", *flags, "--serial").stdout

    assert "2 runs; logs in" in suite()
    again = suite()
    assert "runs; logs in" not in again and "in the queue: va on pong, seed 1" in again
    deadline = time.monotonic() + WAIT_SECONDS
    while "2 runs in" not in (said := suite()) or ": 2 done" not in said:
        assert time.monotonic() < deadline, (said, login.logs_of(out / "logs"))
        assert "runs; logs in" not in said, login.logs_of(out / "logs")
        time.sleep(3.0)
    # A run is done with its last evaluation; its job ends a moment later.
    while left := cluster.call("squeue", "--noheader"):
        assert time.monotonic() < deadline, left
        time.sleep(1.0)


def test_a_run_is_scaled_cut_off_drained_killed_and_stopped(cluster, tmp_path):
    run = Run(cluster, tmp_path / "run")
    run.train()
    run.wait_for("both actor hosts are up", lambda: len(run.hosts_of("actor")) == 2)
    run.wait_for_play(0, 1)
    assert run.hosts_of("learner") == {HOSTS[0]}
    assert run.hosts_of("actor") == {HOSTS[1], HOSTS[2]}
    assert run.run_dir.address_file.stat().st_mode & 0o777 == 0o600
    assert run.run_dir.read_address().startswith(f"{address(HOSTS[0])}:")
    assert run.status()["params_age_seconds"] is not None
    only_the_gate_answers(run)

    killing_an_actor_host(run)
    scaling(run)
    cutting(run)
    draining(run)
    killing_the_learner_host(run)

    run.vantage("stop", str(run.run_dir.root))
    status = run.status()
    assert status["state"] == "stopped" and status["jobs"] == []
    assert list(run.run_dir.checkpoints.glob("checkpoint-*.npz"))
    assert any(run.run_dir.replay.iterdir())
    assert "nothing to stop" in run.vantage("stop", str(run.run_dir.root), code=2).stderr


def only_the_gate_answers(run: Run) -> None:
    """Actors come through it; on the learner's host nothing else of the run listens."""
    assert run.hosts_of("gate") == {HOSTS[0]}
    assert run.hosts_of("tunnel") == {HOSTS[1], HOSTS[2]}
    gate = run.run_dir.read_address()
    ports = listening_ports(run.learner_pid())
    assert ports == {int(gate.rpartition(":")[2]), SLURMD_PORT}
    ask = f"import reverb; reverb.Client({gate!r}).server_info(timeout=5)"
    stranger = run.cluster.on_host(HOSTS[1], sys.executable, "-c", ask)
    assert stranger.returncode != 0 and "Traceback" in stranger.stderr
    said = run.run_dir.log_file("gate", 0).read_text()
    assert said.count("refused ") == said.count(f"refused {address(HOSTS[1])}: ") == 1


def killing_an_actor_host(run: Run) -> None:
    """Its task goes back to the queue; the other tasks of the array play on."""
    other = json.loads(run.run_dir.host_file(0).read_text())["pid"]
    before = run.kill_supervisor(run.run_dir.host_file(1))

    def is_back() -> bool:
        run.hurry("actor")
        return json.loads(run.run_dir.host_file(1).read_text())["pid"] != before

    run.wait_for("the actor host is back", is_back)
    run.wait_for_play(0, 1)
    assert json.loads(run.run_dir.host_file(0).read_text())["pid"] == other


def scaling(run: Run) -> None:
    """An actor host is dropped, and another one is added."""
    run.vantage("scale", str(run.run_dir.root), "--actor-hosts=1")
    assert len(run.jobs("actor")) == 1
    run.wait_for_play(0)
    run.vantage("scale", str(run.run_dir.root), "--actor-hosts=2")
    assert len(run.jobs("actor")) == 2
    run.wait_for_play(0, 1)


def cutting(run: Run) -> None:
    """A host is lost until Slurm gives it up; training goes on, and it rejoins."""
    lost = run.host_of_actor(1)
    run.cluster.cut(lost)
    run.wait_for(f"Slurm gave {lost} up", lambda: run.cluster.state(lost).startswith("down"))
    run.wait_for_play(0)
    run.cluster.heal(lost)
    run.wait_for(
        f"{lost} is back", lambda: run.cluster.state(lost).startswith(("idle", "alloc", "mix"))
    )
    # The healed host first ends what it was running. A job hurried onto it meanwhile fails to
    # launch, and Slurm then holds the job and drains the host.
    time.sleep(ORPHAN_SECONDS)
    run.hurry("actor")
    run.wait_for_play(0, 1)


def draining(run: Run) -> None:
    """The signal before a time limit: the learner's host checkpoints, leaves and comes back."""
    before, [job_id] = run.learner_pid(), run.jobs("learner")
    run.cluster.call("scancel", "--batch", "--signal=USR1", job_id)
    comes_back(run, before)
    assert "draining" in (run.run_dir.root / f"logs/slurm-learner-{job_id}.log").read_text()


def killing_the_learner_host(run: Run) -> None:
    """Its supervisor is killed: the job goes back to the queue and resumes from checkpoints."""
    before = run.kill_supervisor(run.run_dir.status_file)
    killed_at = time.time()
    comes_back(run, before)
    earlier = [r for r in run.rows("learner") if r["time"] < killed_at - 3 * CHECKPOINT_SECONDS]
    first = run.rows("learner", since=killed_at)[0]
    assert first["frames"] >= earlier[-1]["frames"]
    assert first["updates"] >= earlier[-1]["updates"]
    # Restored, and not filled anew: this is more than the warm-up.
    sizes = [row["size"] for row in run.rows("replay", since=killed_at) if "size" in row]
    assert sizes[0] > 200


def comes_back(run: Run, pid_before: int) -> None:
    address_before = run.run_dir.read_address()

    def is_back() -> bool:
        run.hurry("learner")
        return run.run_dir.read_address() != address_before

    run.wait_for("the learner's host is back", is_back)
    assert run.learner_pid() != pid_before
    run.wait_for_play(0, 1)
