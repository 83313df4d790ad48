"""What an actor host says by telemetry, and the file that is made of it."""

import dataclasses
import json

import pytest

from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord, load_engine
from launch.layout import MAX_CLUSTER_HOSTS
from launch.monitor.host_rows import HostFiles, hosts_by_telemetry, role_of
from launch.node_status import NodeStatus, from_json, to_row
from launch.run_dir import RunDir
from launch.supervise.status_file import read_hosts, write_host_status
from reverb_server.telemetry import decode_row, encode_row

HOSTS, ACTORS_PER_HOST = 4, 64


def node(index: int, role: str = "actor", restarts: int = 0) -> NodeStatus:
    return NodeStatus(
        role=role,
        index=index,
        host="n1",
        pid=100 + index,
        state="running",
        restarts=restarts,
        progress=f"step {index}",
        progress_age_seconds=0.5,
    )


def nodes_of(host: int) -> list[NodeStatus]:
    """More than fit into one row."""
    actors = range(host * ACTORS_PER_HOST, (host + 1) * ACTORS_PER_HOST)
    return [*(node(index) for index in actors), node(host, "tunnel")]


def sent(path, host: int) -> list[dict]:
    """A status file as rows that went through the table."""
    report, nodes = from_json(json.loads(path.read_text()))
    rows = [{"time": 1.0, "frames": 0, **to_row(report, node)} for node in nodes]
    return [decode_row(encode_row({**row, "role": role_of(host)})) for row in rows]


@pytest.fixture
def written(tmp_path):
    """The status of host 3."""
    path = tmp_path / "status.json"
    write_host_status(path, "running", started=1.0, nodes=nodes_of(3))
    return path


@pytest.fixture
def run(local_run):
    """A run whose hosts speak by telemetry."""
    record = EngineRecord("hosts", "c0ffee", HostsOptions(HOSTS, ACTORS_PER_HOST), SlurmOptions())
    record.save(local_run)
    return local_run


def host_files(run_dir: RunDir) -> list[str]:
    return sorted(path.name for path in run_dir.host_file(0).parent.glob("*"))


def test_a_status_that_came_by_telemetry_reads_like_one_that_was_written_here(run, written):
    others = HostFiles(run).take(sent(written, 3))
    assert others == []
    _, [status] = read_hosts(run, HOSTS)
    assert status.alive and status.state == "running"  # this process wrote it
    assert status.nodes == nodes_of(3)
    assert hosts_by_telemetry(run) == [3]


def test_later_rows_replace_what_was_said_of_a_node(run, written):
    files = HostFiles(run)
    files.take(sent(written, 3))
    write_host_status(written, "running", started=1.0, nodes=[node(200, restarts=2)])
    files.take(sent(written, 3))
    _, [status] = read_hosts(run, HOSTS)
    assert len(status.nodes) == 65
    assert [n.restarts for n in status.nodes if n.index == 200] == [2]


def test_rows_that_are_no_hosts_are_left_to_others_and_junk_is_dropped_and_counted(run, written):
    metrics = [{"role": "actor/0", "frames": 1}, {"role": 3}, {"role": "host/x"}, {"time": 1.0}]
    whole = sent(written, 3)[0]
    values = [None, -(2**50), 1.5, True, 2**70, 10**400, float("nan"), "0", "\ud800", "x" * 3000]
    junk = [{"role": "host/3"}, {**whole, "role": "host/4"}, {**whole, "role": "host/99999"}]
    junk += [{**whole, "node_index": value} for value in [*values, 0, 191, 256]]
    junk += [{**whole, "node_role": value} for value in [*values, "learner"]]
    junk += [{**whole, "pid": value} for value in values]
    files = HostFiles(run)
    assert files.take([*metrics, *junk]) == metrics
    assert (files.num_dropped, host_files(run)) == (len(junk), [])


def test_a_row_with_odd_values_does_not_make_a_hosts_file_unreadable(run, written):
    rows = sent(written, 3)
    odd = {"updated": float("nan"), "node_restarts": "\x1b[2J", "node_pid": [1]}
    files = HostFiles(run)
    files.take([*rows, *({**rows[0], name: value} for name, value in odd.items())])
    _, [status] = read_hosts(run, HOSTS)
    assert status.problem is None and status.nodes == nodes_of(3)


def test_a_local_run_has_no_hosts_whatever_telemetry_says(local_run, written):
    files = HostFiles(local_run)
    assert files.take([row for host in (0, 3, 99999) for row in sent(written, host)]) == []
    assert files.num_dropped == 3 * 65 and host_files(local_run) == []
    local_run.host_file(0).parent.mkdir()
    local_run.host_file(0).write_text(written.read_text()[:-1] + ', "by_telemetry": true}')
    assert hosts_by_telemetry(local_run) == []


def test_a_run_in_a_cluster_may_have_been_scaled_since(run, written):
    dataclasses.replace(load_engine(run), engine="kubernetes").save(run)
    last = MAX_CLUSTER_HOSTS - 1
    write_host_status(written, "running", started=1.0, nodes=[node(last * ACTORS_PER_HOST)])
    HostFiles(run).take(sent(written, last))
    assert hosts_by_telemetry(run) == [last]
    beyond = HostFiles(run)
    beyond.take(sent(written, MAX_CLUSTER_HOSTS))
    assert beyond.num_dropped == 1


def test_hosts_that_ended_or_wrote_for_themselves_need_not_be_told(run, written):
    files = HostFiles(run)
    for host, state in enumerate(["running", "stopped"]):
        nodes = [node(host * ACTORS_PER_HOST)]
        write_host_status(written, state, started=1.0, nodes=nodes)
        files.take(sent(written, host))
    write_host_status(run.host_file(2), "running", started=1.0)
    run.host_file(3).write_text("?")
    assert hosts_by_telemetry(run) == [0]
