"""What an actor host says by telemetry, and the file that is made of it."""

import json

import pytest

from launch.monitor.host_rows import HostFiles, hosts_by_telemetry, role_of, rows_of
from launch.supervise.status_file import read_hosts, write_host_status
from reverb_server.telemetry import decode_row, encode_row


def node(index: int, **said: object) -> dict:
    return {
        "role": "actor",
        "index": index,
        "host": "n1",
        "pid": 100 + index,
        "state": "running",
        "restarts": 0,
        "exit_code": None,
        "progress": f"step {index}",
        "progress_age_seconds": 0.5,
        **said,
    }


def sent(path, host: int) -> list[dict]:
    """A status file as rows that went through the table."""
    rows = rows_of(json.loads(path.read_text()))
    stamped = [{"time": 1.0, "frames": 0, **row, "role": role_of(host)} for row in rows]
    return [decode_row(encode_row(row)) for row in stamped]


@pytest.fixture
def written(tmp_path):
    """The status of a host with more nodes than fit into one row."""
    path = tmp_path / "status.json"
    nodes = [*(node(i) for i in range(64)), {**node(0), "role": "tunnel"}]
    write_host_status(path, "running", started=1.0, nodes=nodes)
    return path


def test_a_status_that_came_by_telemetry_reads_like_one_that_was_written_here(local_run, written):
    others = HostFiles(local_run).take(sent(written, 3))
    assert others == []
    _, [status] = read_hosts(local_run, 4)
    assert status.alive and status.state == "running"  # this process wrote it
    assert status.nodes == json.loads(written.read_text())["nodes"]
    assert hosts_by_telemetry(local_run) == [3]


def test_later_rows_replace_what_was_said_of_a_node(local_run, written):
    files = HostFiles(local_run)
    files.take(sent(written, 0))
    write_host_status(written, "running", started=1.0, nodes=[node(5, restarts=2)])
    files.take(sent(written, 0))
    _, [status] = read_hosts(local_run, 1)
    assert len(status.nodes) == 65
    assert [n["restarts"] for n in status.nodes if n["index"] == 5] == [2]


def test_rows_that_are_no_hosts_are_left_to_others_and_junk_is_dropped(local_run):
    metrics = [{"role": "actor/0", "frames": 1}, {"role": 3}, {"role": "host/x"}, {"time": 1.0}]
    junk = [
        {"role": "host/1"},
        {"role": "host/1", "node_role": 1, "node_index": 0},
        {"role": "host/1", "node_role": "actor", "node_index": "0"},
    ]
    assert HostFiles(local_run).take([*metrics, *junk]) == metrics
    assert not (local_run.root / "hosts").exists()


def test_no_host_can_fill_the_memory_or_the_disk_with_nodes(local_run, monkeypatch):
    monkeypatch.setattr("launch.monitor.host_rows._MAX_NODES", 3)
    rows = [{"role": f"host/{i}", "node_role": "actor", "node_index": i} for i in range(9)]
    HostFiles(local_run).take(rows)
    assert len(list((local_run.root / "hosts").iterdir())) == 3


def test_hosts_that_ended_or_wrote_for_themselves_need_not_be_told(local_run, written):
    files = HostFiles(local_run)
    for host, state in enumerate(["running", "stopped", "failed"]):
        write_host_status(written, state, started=1.0, nodes=[node(host)])
        files.take(sent(written, host))
    write_host_status(local_run.host_file(7), "running", started=1.0)
    local_run.host_file(8).write_text("?")
    assert hosts_by_telemetry(local_run) == [0]
