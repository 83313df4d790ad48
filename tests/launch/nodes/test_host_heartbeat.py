"""Who speaks for a host that shares no file system with the others."""

import pytest

from launch.node_status import NodeStatus
from launch.nodes.host_heartbeat import send_status
from launch.supervise.status_file import write_host_status


def node(role: str, index: int, state: str) -> NodeStatus:
    return NodeStatus(role=role, index=index, state=state)


@pytest.fixture
def status_file(tmp_path):
    nodes = [node("actor", 4, "waiting"), node("actor", 5, "running"), node("actor", 6, "running")]
    path = tmp_path / "status.json"
    write_host_status(path, "running", started=1.0, nodes=[*nodes, node("tunnel", 2, "running")])
    return path


@pytest.mark.parametrize(("index", "rows"), [(4, 0), (5, 4), (6, 0)])
def test_the_first_actor_that_runs_speaks_for_all_nodes_of_its_host(status_file, index, rows):
    said = []
    send_status(status_file, index, said.append)
    assert len(said) == rows
    assert not rows or [row["node_role"] for row in said] == ["actor", "actor", "actor", "tunnel"]


@pytest.mark.parametrize("text", [None, "?", "{}", '{"nodes": [1]}'])
def test_a_status_that_cannot_be_read_does_not_end_an_actor(tmp_path, text):
    path = tmp_path / "status.json"
    if text is not None:
        path.write_text(text)
    send_status(path, 0, lambda row: pytest.fail("nothing to say"))
