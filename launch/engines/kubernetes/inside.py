"""Commands in a pod of the run: where its volume is, and with it the run directory."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import IO

from launch.engines.kubernetes import cluster, names
from launch.engines.kubernetes.pods import reader_pod
from launch.engines.record import EngineRecord
from launch.errors import InputError
from report.plain_text import plain

_START_SECONDS = 300  # for a pod that is made to read the volume
_END_SECONDS = 30.0


def running_learner(record: EngineRecord) -> str | None:
    """The name of the learner's pod, if it is at work."""
    found = [pod.name for pod in cluster.pods(record) if pod.component == "learner" and pod.running]
    return found[0] if found else None


def run_in(record: EngineRecord, pod: str, command: Sequence[str]) -> str:
    """What a command in a pod prints; raises InputError, in one line, when it fails."""
    return cluster.call(record.kubernetes, _exec(pod, command))


@contextlib.contextmanager
def output_of(record: EngineRecord, pod: str, command: Sequence[str]) -> Iterator[IO[bytes]]:
    """What a command in a pod writes, as it comes; raises InputError when it fails in the end."""
    try:
        process = subprocess.Popen(
            [*cluster.kubectl(record.kubernetes), *_exec(pod, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError:
        raise InputError(cluster.NO_KUBECTL) from None
    with process:
        assert process.stdout is not None and process.stderr is not None
        try:
            yield process.stdout
            process.wait(_END_SECONDS)
        except BaseException:
            process.kill()
            raise
        if process.returncode != 0:
            said = process.stderr.read(4096).decode(errors="replace").strip().splitlines()
            raise InputError(f"kubectl exec failed: {plain(said[-1] if said else 'no reason')}")


def _exec(pod: str, command: Sequence[str]) -> list[str]:
    return ["exec", pod, f"--container={names.CONTAINER}", "--", *command]


@contextlib.contextmanager
def pod_with_volume(record: EngineRecord) -> Iterator[str]:
    """A pod that sees the run directory: the learner's, or one made for this, and gone after."""
    learner = running_learner(record)
    if learner is not None:
        yield learner
        return
    reader = reader_pod(record)
    name = reader["metadata"]["name"]
    try:
        cluster.apply(record, [reader])
        flags = ["--for=condition=Ready", f"--timeout={_START_SECONDS}s"]
        seconds = _START_SECONDS + _END_SECONDS
        cluster.call(record.kubernetes, ["wait", f"pod/{name}", *flags], seconds=seconds)
        yield name
    finally:
        cluster.delete(record, kinds="pods", component="reader", wait=False)
