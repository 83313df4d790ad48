"""`vantage host`: one host's share of a run. Slurm calls it, and so may you on hosts of your own.

The host checks itself first (preflight), then supervises its nodes. The learner's host publishes
where it listens; an actor host waits for that. A host that is given its config and its key needs no
shared run directory: an actor host then works in one of its own, says by telemetry how it is, and
prints its logs. Exit codes: 0 the run is over, 75 start me again
(told so by SIGUSR1, after checkpoints), 130 interrupted, 1 this host failed, 2 it cannot belong to
the run.
"""

import contextlib
import pathlib
import socket
import sys
import tempfile
import time

import portpicker

from launch import config_checks
from launch.config import Config
from launch.engines.ending import KILLED_TEXT, UNSAVED_TEXT
from launch.engines.host_address import own_address
from launch.engines.host_checks import check_host
from launch.engines.host_request import complete, share_of
from launch.engines.isolate import namespace_for
from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS, HostRequest
from launch.engines.ownership import own_run
from launch.engines.record import EngineRecord, load_engine
from launch.engines.share import Share, gate_address, unpack
from launch.errors import ExitCode, InputError
from launch.gate import keys
from launch.gate.farewell import tell_over
from launch.gate.gate import tcp_listener
from launch.gate.tunnel import address_of, unix_listener
from launch.layout import NodeName, node_names
from launch.machine.host_name import this_host
from launch.monitor.host_rows import hosts_by_telemetry
from launch.run_dir import RunDir
from launch.supervise.file_age import file_age_seconds
from launch.supervise.namespace import Namespace
from launch.supervise.nodes_on_host import Apart, RelayNode, supervise_nodes
from launch.supervise.status_file import write_host_status
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome
from launch.terminal import complain, say, warn

# For actor hosts without a shared file system to ask again; gRPC does so within seconds.
_FAREWELL_SECONDS = 60.0
# Longer than it takes to drain, when nobody hears of hosts.
_HEARD_SECONDS = 300.0


def run_host(request: HostRequest) -> ExitCode:
    """Runs the host's nodes until the run is over, or this host must leave it."""
    try:
        share = share_of(request)
        request = complete(request, share)
        with contextlib.ExitStack() as held:
            return _run(request, share, held)
    except InputError as error:
        raise InputError(f"host {this_host()}: {error}") from None


def _run(request: HostRequest, share: Share | None, held: contextlib.ExitStack) -> ExitCode:
    plays = set(request.groups) == set(ACTOR_GROUPS)
    if request.run_dir is not None:
        run_dir = RunDir(request.run_dir)
    else:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="vantage-host-"))
        run_dir = RunDir(pathlib.Path(folder))
    run_dir.check_own()
    if share is not None:
        # Actor hosts come and go; the run belongs to the learner's.
        held.enter_context(contextlib.nullcontext() if plays else own_run(run_dir))
        unpack(share, run_dir, keys.actor_key(request.index) if plays else keys.GATE)
    record, config = _open(run_dir, request)
    if plays and share is not None:
        run_dir.publish_address(gate_address(config, record))
    host = _Host(run_dir, record, config, request)
    if share is None and not plays:
        held.enter_context(own_run(run_dir))
    return host.run()


def _open(run_dir: RunDir, request: HostRequest) -> tuple[EngineRecord, Config]:
    try:
        config = run_dir.load_config()
    except InputError as error:
        raise InputError(f"{error}; is it on a file system that all hosts share?") from None
    record = load_engine(run_dir)
    if record is None:
        raise InputError(
            f"'{run_dir.root}' is a local run; start one with --engine slurm or --engine hosts"
        )
    if request.run_id not in (None, record.run_id):
        raise InputError(
            f"'{run_dir.root}' holds run {record.run_id} here, not {request.run_id}; "
            "is it on a file system that all hosts share?"
        )
    return record, config


class _Host:
    """One host of the run, from its preflight to its exit code."""

    def __init__(self, run_dir: RunDir, record: EngineRecord, config: Config, request: HostRequest):
        self._run_dir, self._record, self._config = run_dir, record, config
        self._request = request
        self.plays = "actor" in request.groups
        # Whether the run directory is this host's alone.
        self._apart = self.plays and request.run_dir is None
        self._stop = StopSignals(term_comes_back=request.come_back)
        self._status_file = run_dir.host_file(request.index) if self.plays else run_dir.status_file
        self._key_file = run_dir.keys / (keys.actor_key(request.index) if self.plays else keys.GATE)
        if self.plays and request.index >= record.hosts.actor_hosts:
            raise InputError(
                f"index={request.index}, but the run has {record.hosts.actor_hosts} actor hosts "
                "(from 0); see `vantage scale`"
            )

    def run(self) -> ExitCode:
        """Checks the host, then runs its nodes."""
        if self._run_dir.stop_file.exists():
            say(f"{self._run_dir.root} is over; nothing to do for {this_host()}")
            if self.plays:  # how the run ended is in the learner's file
                self._write_state("stopped")
            return ExitCode.DONE
        keys.read_key(self._key_file, self._record.run_id)
        # Not the config's port, which is the gate's: it is what other hosts must reach.
        port = portpicker.pick_unused_port()
        namespace = None if self.plays else namespace_for(self._record.isolation, port)
        with namespace or contextlib.nullcontext():
            self._write_state("preflight")
            left = self._preflight()
            if left is not None:
                return left
            outcome = self._play() if self.plays else self._learn(port, namespace)
            return self._exit_code(outcome)

    def _play(self) -> Outcome:
        names = self._names()
        say(f"{this_host()}: actors {names[0].index} to {names[-1].index}")
        crowded = config_checks.crowd_warning(names)
        if crowded is not None:
            warn(f"host {this_host()}: {crowded}")
        with unix_listener() as listener:
            return supervise_nodes(
                self._config,
                self._run_dir,
                names,
                replay_address=address_of(listener),
                status_file=self._status_file,
                stop=self._stop,
                relay=self._tunnel(listener),
                print_logs=self._apart or self._request.print_logs,
                apart=Apart(self._request.index) if self._apart else None,
            )

    def _tunnel(self, listener: socket.socket) -> RelayNode:
        command = [sys.executable, "-m", "launch.gate.tunnel", str(self._key_file)]
        command += [str(self._run_dir.address_file), str(listener.fileno())]
        command.append(str(self._run_dir.stop_file))
        return RelayNode("tunnel", self._request.index, command, listener)

    def _names(self) -> list[NodeName]:
        """The nodes that are this host's."""
        if not self.plays:
            return [name for name in node_names(self._config) if name.role in LEARNER_GROUPS]
        per_host = self._record.hosts.actors_per_host
        first = self._request.index * per_host
        return [NodeName("actor", first + i) for i in range(per_host)]

    def _learn(self, port: int, namespace: Namespace | None) -> Outcome:
        with tcp_listener(self._config.replay.port) as listener:
            return self._learn_behind(listener, port, namespace)

    def _learn_behind(
        self, listener: socket.socket, port: int, namespace: Namespace | None
    ) -> Outcome:
        """Supervises replay and those who live with it; others come through the gate."""
        name = self._request.address or self._record.hosts.learner_address or own_address()
        outside = f"{name}:{listener.getsockname()[1]}"
        self._run_dir.publish_address(outside)
        say(f"{this_host()}: learner, gate to replay at {outside}")
        command = [sys.executable, "-m", "launch.gate.gate", str(self._key_file)]
        command += [str(listener.fileno()), str(port)]

        def taken_over() -> bool:
            return self._run_dir.read_address() not in (None, outside)

        outcome = supervise_nodes(
            self._config,
            self._run_dir,
            self._names(),
            replay_address=f"localhost:{port}",
            status_file=self._status_file,
            stop=self._stop,
            namespace=namespace,
            relay=RelayNode("gate", 0, command, listener),
            taken_over=taken_over,
            print_logs=self._request.print_logs,
        )
        over = outcome in (Outcome.FINISHED, Outcome.FAILED, Outcome.HOPELESS)
        if over and not taken_over():
            # Nobody else tells the actor hosts that the run is over.
            self._run_dir.stop_file.touch()
        if self._run_dir.stop_file.exists() and not taken_over():
            self._tell_hosts(listener)
        return outcome

    def _tell_hosts(self, listener: socket.socket) -> None:
        """Tells actor hosts that do not see the stop file."""
        hosts = [keys.actor_name(index) for index in self._hosts_heard_of()]
        key = keys.read_key(self._key_file, self._record.run_id)
        late = tell_over(listener, key, hosts, _FAREWELL_SECONDS)
        if late:
            say(f"{this_host()}: not told that the run is over: {', '.join(late)}")

    def _hosts_heard_of(self) -> list[int]:
        """Actor hosts that see no stop file, without those that left a while ago."""
        ages = {
            index: file_age_seconds(self._run_dir.host_file(index))
            for index in hosts_by_telemetry(self._run_dir)
        }
        return [index for index, age in ages.items() if (age or 0.0) < _HEARD_SECONDS]

    def _exit_code(self, outcome: Outcome) -> ExitCode:
        say(f"{this_host()}: {outcome.value}")
        if outcome in (Outcome.FAILED, Outcome.HOPELESS, Outcome.LOST):
            return ExitCode.FAILED
        if outcome is Outcome.UNSAVED:
            complain(f"host {this_host()}: {UNSAVED_TEXT}")
            return self._stop.exit_code_unsaved
        if outcome is Outcome.KILLED:
            complain(f"host {this_host()}: {KILLED_TEXT}")
            return ExitCode.FAILED
        if outcome is Outcome.STOPPED and self._stop.requested:
            return self._stop.exit_code
        return ExitCode.DONE

    def _preflight(self) -> ExitCode | None:
        """None when this host may join; else how it ends."""
        code, problem = check_host(
            self._run_dir,
            self._config,
            self._record,
            self._names(),
            plays=self.plays,
            key_file=self._key_file,
            stop=self._stop,
        )
        if code == ExitCode.DONE:
            return None
        if self._stop.requested:
            self._write_state("stopped")
            return self._stop.exit_code
        if self._run_dir.stop_file.exists():
            self._write_state("stopped")
            return ExitCode.DONE
        self._write_state("failed", problem=problem)
        complain(f"host {this_host()}: {problem}")
        if code == ExitCode.COME_BACK:
            return ExitCode.COME_BACK
        if not self.plays:
            self._run_dir.stop_file.touch()  # the run is this host's, and nobody will join it
        return ExitCode.FAILED

    def _write_state(self, state: str, *, problem: str | None = None) -> None:
        """Says what `vantage status` shows of this host while no supervisor writes."""
        try:
            self._status_file.parent.mkdir(exist_ok=True)
            write_host_status(self._status_file, state, started=time.time(), problem=problem)
        except OSError as error:
            raise InputError(f"cannot write '{self._status_file}': {error.strerror}") from None
