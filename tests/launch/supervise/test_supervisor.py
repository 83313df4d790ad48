"""The supervisor, with real processes that do next to nothing."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from launch import heartbeat
from launch.errors import ExitCode
from launch.heartbeat import Beat, Phase
from launch.layout import NodeName
from launch.supervise.node_process import NodeProcess, NodeSpec, Program
from launch.supervise.supervisor import Outcome, StopStep, Supervisor

WAIT_SECONDS = 60.0
FOREVER = "import time\nwhile True: time.sleep(0.05)"
STUBBORN = f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(LOG, 'a') as f: f.write('up')
{FOREVER}
"""
POLITE = f"""
import signal, sys
def leave(*_):
    open(LOG, 'a').write(NAME + ' ')
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open(READY, 'w').close()
{FOREVER}
"""


def beat(role: str, phase: Phase, number: object = 0) -> str:
    """A statement that beats for a node of the role; the number may be an expression."""
    line = heartbeat.encode(role, Beat(phase, 0)).replace(b"0\n", b"%d\n")
    return f"import os; os.write(int(os.environ[{heartbeat.VARIABLE!r}]), {line!r} % ({number}))"


class Site:
    """A folder with supervised scripts, and what happened to them."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.events: list[str] = []
        self.order_file = root / "order"
        self.order_file.touch()

    def spec(self, role: str, code: str, **values: object) -> NodeSpec:
        name = NodeName(role, 0)
        header = f"NAME={str(name)!r}; LOG={str(self.order_file)!r}; READY={self.ready(name)!r}\n"
        return NodeSpec(
            name=name,
            start=Program([sys.executable, "-S", "-c", header + code], dict(os.environ)),
            log_file=self.root / f"{name}.log",
            **{"stuck_seconds": WAIT_SECONDS, **values},
        )

    def ready(self, name: NodeName) -> str:
        return str(self.root / f"{name}.ready")

    def supervisor(
        self, specs: list[NodeSpec], *, stop_when=lambda: False, on_tick=lambda: None, **options
    ) -> Supervisor:
        deadline = time.monotonic() + WAIT_SECONDS

        def tick(nodes: Sequence[NodeProcess]) -> None:
            assert len(nodes) == len(specs)
            assert time.monotonic() < deadline, self.events
            on_tick()

        options.setdefault("stop_steps", [StopStep(frozenset({"a", "b", "main"}), 10.0)])
        options.setdefault("finish_steps", options["stop_steps"])
        options.setdefault("end_asked", lambda: Outcome.STOPPED if stop_when() else None)
        options.setdefault("status_file", self.root / "status.json")
        return Supervisor(
            specs,
            finishing_role="main",
            restart_variable="RESTART",
            on_tick=tick,
            on_event=self.events.append,
            **options,
        )

    def states(self) -> dict[str, str]:
        nodes = json.loads((self.root / "status.json").read_text())["nodes"]
        return {f"{node['role']}-{node['index']}": node["state"] for node in nodes}


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setattr("launch.supervise.supervisor._TICK_SECONDS", 0.02)
    return Site(tmp_path)


def test_a_run_finishes_when_its_main_node_is_done(site):
    supervisor = site.supervisor([site.spec("a", FOREVER), site.spec("main", "pass")])
    assert supervisor.run() is Outcome.FINISHED
    assert site.states() == {"a-0": "stopped", "main-0": "done"}


def test_a_node_that_fails_is_started_again_and_told_how_often(site):
    code = "import os, sys\nsys.exit(1 if os.environ['RESTART'] == '0' else 0)"
    assert site.supervisor([site.spec("main", code)]).run() is Outcome.FINISHED
    assert any("main-0 restarted (1)" in event for event in site.events)


def test_nodes_stop_in_the_order_of_the_steps(site):
    specs = [site.spec(role, POLITE) for role in ("a", "b", "main")]
    steps = [StopStep(frozenset({role}), 10.0) for role in ("b", "main", "a")]

    def all_up() -> bool:
        return all(pathlib.Path(site.ready(spec.name)).exists() for spec in specs)

    supervisor = site.supervisor(specs, stop_when=all_up, stop_steps=steps)
    assert supervisor.run() is Outcome.STOPPED
    assert site.order_file.read_text().split() == ["b-0", "main-0", "a-0"]


def test_a_node_that_will_not_stop_is_killed(site):
    def up() -> bool:
        return site.order_file.read_text() == "up"

    supervisor = site.supervisor(
        [site.spec("main", STUBBORN)],
        stop_when=up,
        stop_steps=[StopStep(frozenset({"main"}), 0.1)],
    )
    assert supervisor.run() is Outcome.STOPPED
    assert any("main-0 did not stop" in event for event in site.events)
    assert site.states() == {"main-0": "stopped"}


def test_a_second_interrupt_kills_at_once_and_blames_no_node(site):
    main = site.spec("main", f"{beat('main', Phase.UPDATING)}\n{POLITE}", saves=True)
    asked: list[bool] = []

    def up() -> bool:
        both = site.order_file.read_text() == "up" and os.path.exists(site.ready(main.name))
        asked.extend([True] * both)
        return both

    supervisor = site.supervisor(
        [site.spec("a", STUBBORN), main],
        stop_when=up,
        stop_steps=[StopStep(frozenset({role}), WAIT_SECONDS) for role in ("a", "main")],
        on_tick=lambda: supervisor.kill() if asked else None,
    )
    assert supervisor.run() is Outcome.KILLED
    assert site.events == []
    assert json.loads((site.root / "status.json").read_text())["state"] == "killed"


def test_an_interrupt_while_the_last_scores_are_awaited_stops_in_order(site):
    scores = site.spec("a", POLITE)

    def interrupted() -> bool:
        return supervisor._run_state == "stopping" and os.path.exists(site.ready(scores.name))

    supervisor = site.supervisor(
        [scores, site.spec("main", "pass")],
        stop_when=interrupted,
        finish_steps=[StopStep(frozenset({"a"}), WAIT_SECONDS, ask=False)],
    )
    assert supervisor.run() is Outcome.STOPPED
    assert site.states() == {"a-0": "stopped", "main-0": "done"}
    assert site.order_file.read_text() == "a-0 "


def test_a_node_known_to_end_by_itself_is_waited_for(site):
    code = f"import time\nwhile not open({str(site.order_file)!r}).read(): time.sleep(0.01)"
    last = "open(LOG, 'w').write('x')"
    finish = [StopStep(frozenset({"a"}), 30.0, ask=False)]
    supervisor = site.supervisor(
        [site.spec("a", code), site.spec("main", last)],
        stop_steps=[StopStep(frozenset({"a", "main"}), 10.0)],
        finish_steps=finish,
    )
    assert supervisor.run() is Outcome.FINISHED
    assert site.states() == {"a-0": "done", "main-0": "done"}


def test_a_node_that_keeps_failing_ends_the_run_with_its_last_words(site, monkeypatch):
    monkeypatch.setattr("launch.supervise.node_process._MAX_FAILURES", 2)
    code = "import sys\nprint('no such game')\nsys.exit(3)"
    assert (
        site.supervisor([site.spec("a", code), site.spec("main", FOREVER)]).run() is Outcome.FAILED
    )
    assert any("a-0 failed 2 times in a row: no such game" in event for event in site.events)


def test_a_node_that_gives_up_is_not_started_again_and_has_the_last_word(site):
    code = f"import sys\nprint('diverged after update 7')\nsys.exit({int(ExitCode.GIVE_UP)})"
    supervisor = site.supervisor([site.spec("a", code), site.spec("main", FOREVER)])
    assert supervisor.run() is Outcome.HOPELESS
    assert site.events == ["a-0 gave up: diverged after update 7"]
    status = json.loads((site.root / "status.json").read_text())
    assert status["state"] == "failed for good"
    assert {node["role"]: node["restarts"] for node in status["nodes"]} == {"a": 0, "main": 0}


def test_a_node_that_a_signal_suspended_is_killed_and_started_again(site, monkeypatch):
    monkeypatch.setattr("launch.supervise.node_process.SUSPENDED_SECONDS", 0.3)
    code = """
import os, signal
if os.environ['RESTART'] == '0':
    os.kill(os.getpid(), signal.SIGSTOP)
"""
    assert site.supervisor([site.spec("main", code)]).run() is Outcome.FINISHED
    assert any("main-0 was suspended" in event for event in site.events)


HANGS_ONCE = f"""
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR2)
{beat("main", Phase.UPDATING, 1234)}
if os.environ['RESTART'] != '0': sys.exit(0)
def deadlock():
    {FOREVER.replace(chr(10), chr(10) + "    ")}
deadlock()
"""


def test_a_node_that_stands_still_says_where_and_is_killed_and_started_again(site):
    waiting = f"""
import time
while True:
    {beat("a", Phase.WAITING_FOR_PARAMETERS)}
    time.sleep(0.01)
"""
    specs = [site.spec("main", HANGS_ONCE, stuck_seconds=1.0), site.spec("a", waiting)]
    assert site.supervisor(specs).run() is Outcome.FINISHED
    assert site.events == [
        f"main-0 made no progress for 1 s (last: update 1,234): killed; see {specs[0].log_file}",
        "main-0 restarted (1)",
    ]
    assert "in deadlock" in specs[0].log_file.read_text()


def test_a_node_that_stands_still_again_and_again_fails_the_run_and_names_itself(site, monkeypatch):
    monkeypatch.setattr("launch.supervise.node_process._MAX_FAILURES", 2)
    specs = [site.spec("a", FOREVER), site.spec("main", FOREVER, stuck_seconds=0.01)]
    assert site.supervisor(specs).run() is Outcome.FAILED
    said = r"main-0 failed 2 times in a row: made no progress for \d+ s \(last: starting\)"
    assert any(re.match(said, event) for event in site.events)
    assert not any(event.startswith("a-0") for event in site.events)


@pytest.mark.parametrize(("step", "outcome"), [(0, Outcome.FAILED), (10, Outcome.FINISHED)])
def test_a_node_that_works_for_long_and_gets_no_further_keeps_failing(
    site, monkeypatch, step, outcome
):
    monkeypatch.setattr("launch.supervise.node_process._WORKED_SECONDS", 0.0)
    monkeypatch.setattr("launch.supervise.node_process._MAX_FAILURES", 3)
    monkeypatch.setattr("launch.supervise.node_process._MAX_BACKOFF_SECONDS", 0.0)
    code = f"""
import os, sys
life = int(os.environ['RESTART'])
{beat("main", Phase.UPDATING, f"100 + {step} * life")}
sys.exit(0 if life == 6 else 1)
"""
    assert site.supervisor([site.spec("main", code)]).run() is outcome


def test_a_node_held_by_a_debugger_is_left_alone(site, monkeypatch):
    monkeypatch.setattr("launch.supervise.node_process.state_of", lambda pid: "t")
    freed: list[bool] = []

    def forgiven(self, now: float) -> None:
        freed.append(True)
        monkeypatch.setattr("launch.supervise.node_process.state_of", lambda pid: "S")

    monkeypatch.setattr("launch.supervise.progress.Progress.forgive", forgiven)
    assert (
        site.supervisor([site.spec("main", HANGS_ONCE, stuck_seconds=0.1)]).run()
        is Outcome.FINISHED
    )
    assert freed == [True]


@pytest.fixture
def hurried(monkeypatch):
    """Nodes that fail are given up, or tried again, at once."""
    monkeypatch.setattr("launch.supervise.node_process._MAX_FAILURES", 2)
    monkeypatch.setattr("launch.supervise.node_process._MAX_BACKOFF_SECONDS", 0.0)


WAITS_FOR_FIVE = """
import time
while open(LOG).read().count('x') < 5: time.sleep(0.01)
"""


@pytest.mark.usefixtures("hurried")
def test_an_observer_may_fail_as_often_as_it_likes(site):
    fails = "import sys\nopen(LOG, 'a').write('x')\nprint('no ROM')\nsys.exit(1)"
    specs = [site.spec("a", fails, essential=False), site.spec("main", WAITS_FOR_FIVE)]
    assert site.supervisor(specs).run() is Outcome.FINISHED
    warnings = [event for event in site.events if event.startswith("warning")]
    assert warnings == [
        f"warning: a-0 failed 2 times in a row: no ROM (see {specs[0].log_file}); "
        "the run goes on without it"
    ]
    assert sum("a-0 ended" in event for event in site.events) == 1


@pytest.mark.usefixtures("hurried")
def test_a_node_that_waited_in_vain_for_another_is_not_blamed(site):
    victim = f"""
import sys
open(LOG, 'a').write('x')
print('no new parameters')
sys.exit({int(ExitCode.COME_BACK)})
"""
    supervisor = site.supervisor([site.spec("a", victim), site.spec("main", WAITS_FOR_FIVE)])
    assert supervisor.run() is Outcome.FINISHED
    assert "a-0 starts again, by no fault of its own: no new parameters" in site.events


@pytest.mark.usefixtures("hurried")
def test_what_is_to_end_by_itself_gets_another_try_if_it_fails_at_the_end(site):
    scores = """
import os, sys, time
while not os.path.exists(LOG + '.done'): time.sleep(0.01)
sys.exit(1 if os.environ['RESTART'] == '0' else 0)
"""
    specs = [
        site.spec("a", scores, essential=False),
        site.spec("main", "open(LOG + '.done', 'w').close()"),
    ]
    supervisor = site.supervisor(
        specs,
        stop_steps=[StopStep(frozenset({"a", "main"}), 10.0)],
        finish_steps=[StopStep(frozenset({"a"}), 30.0, ask=False)],
    )
    assert supervisor.run() is Outcome.FINISHED
    assert site.states() == {"a-0": "done", "main-0": "done"}


@pytest.mark.usefixtures("hurried")
def test_what_always_fails_is_not_waited_for_at_the_end(site):
    specs = [site.spec("a", "import sys; sys.exit(1)", essential=False), site.spec("main", "pass")]
    supervisor = site.supervisor(
        specs,
        stop_steps=[StopStep(frozenset({"a", "main"}), 10.0)],
        finish_steps=[StopStep(frozenset({"a"}), 1000.0, ask=False)],
    )
    assert supervisor.run() is Outcome.FINISHED


def test_a_node_that_has_finished_may_serve_on_until_it_is_told_to_stop(site, monkeypatch):
    # An interpreter may take long to start, here and now.
    patient = dataclasses.replace(Phase.STARTING.value, patience=1e6)
    monkeypatch.setattr(Phase.STARTING, "_value_", patient)
    code = f"{beat('main', Phase.FINISHED)}\n{POLITE}"
    supervisor = site.supervisor([site.spec("main", code, stuck_seconds=0.01)])
    assert supervisor.run() is Outcome.FINISHED
    assert site.states() == {"main-0": "stopped"}


@pytest.mark.parametrize(
    ("phase", "exit_code", "outcome"),
    [
        (Phase.UPDATING, 0, Outcome.STOPPED),
        (Phase.UPDATING, 1, Outcome.UNSAVED),
        (Phase.STARTING, 1, Outcome.STOPPED),  # there was nothing to save
    ],
)
def test_a_stop_without_a_last_checkpoint_is_no_orderly_stop(site, phase, exit_code, outcome):
    leave = POLITE.replace("sys.exit(0)", f"sys.exit({exit_code})")
    spec = site.spec("main", f"{beat('main', phase)}\n{leave}", saves=True)
    up = pathlib.Path(site.ready(spec.name))
    assert site.supervisor([spec], stop_when=up.exists).run() is outcome


def test_nodes_of_a_host_that_was_replaced_are_killed_and_its_status_is_the_others(site):
    spec = site.spec("main", POLITE)
    up = pathlib.Path(site.ready(spec.name))

    def replaced() -> Outcome | None:
        if not up.exists():
            return None
        (site.root / "status.json").write_text("the other's")
        return Outcome.REPLACED

    supervisor = site.supervisor([spec], end_asked=replaced)
    assert supervisor.run() is Outcome.REPLACED
    assert (site.root / "status.json").read_text() == "the other's"
    assert site.order_file.read_text() == ""  # it was not asked to leave


def test_of_a_run_whose_folder_is_gone_no_node_is_blamed_for_what_it_cannot_save(site):
    leave = POLITE.replace("sys.exit(0)", "sys.exit(1)")
    spec = site.spec("main", f"{beat('main', Phase.UPDATING)}\n{leave}", saves=True)
    up = pathlib.Path(site.ready(spec.name))
    lost = site.root / "run"
    lost.mkdir()

    def gone() -> Outcome | None:
        if not up.exists():
            return None
        shutil.rmtree(lost, ignore_errors=True)
        return Outcome.LOST

    supervisor = site.supervisor([spec], end_asked=gone, status_file=lost / "status.json")
    assert supervisor.run() is Outcome.LOST
    assert site.order_file.read_text() == "main-0 "  # it was asked to leave, in order
    assert site.events == []
    assert not lost.exists()


def test_the_status_tells_how_far_a_node_is_and_for_how_long_it_has_said_nothing(site):
    spec = site.spec("main", f"{beat('main', Phase.UPDATING, 5000)}\n{POLITE}")
    up = pathlib.Path(site.ready(spec.name))
    site.supervisor([spec], stop_when=up.exists).run()
    [node] = json.loads((site.root / "status.json").read_text())["nodes"]
    assert node["progress"] == "update 5,000"
    assert 0.0 <= node["progress_age_seconds"] < WAIT_SECONDS


def test_a_node_whose_log_cannot_be_written_runs_without_one(site):
    (site.root / "file").touch()
    spec = dataclasses.replace(site.spec("main", "pass"), log_file=site.root / "file" / "x.log")
    assert site.supervisor([spec]).run() is Outcome.FINISHED


def test_a_folder_that_was_deleted_is_not_made_anew_for_a_log(site):
    log = site.root / "run" / "logs" / "main-0.log"
    spec = dataclasses.replace(site.spec("main", "pass"), log_file=log)
    assert site.supervisor([spec]).run() is Outcome.FINISHED
    assert not (site.root / "run").exists()


def test_a_status_file_that_cannot_be_written_is_reported_once_and_costs_nothing(site):
    supervisor = site.supervisor([site.spec("main", "pass")], status_file=site.root / "no" / "x")
    assert supervisor.run() is Outcome.FINISHED
    assert sum("cannot write" in event for event in site.events) == 1


def test_no_child_outlives_a_supervisor_that_is_killed(tmp_path):
    code = f"""
import pathlib
from tests.launch.supervise.test_supervisor import FOREVER, Site
site = Site(pathlib.Path({str(tmp_path)!r}))
site.supervisor([site.spec("main", FOREVER), site.spec("a", FOREVER)]).run()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=pathlib.Path(__file__).parents[3])
    pids = wait_for(lambda: running_pids(tmp_path / "status.json", 2))
    parent.send_signal(signal.SIGKILL)
    parent.wait(WAIT_SECONDS)
    wait_for(lambda: all(not is_alive(pid) for pid in pids))


def running_pids(status_file: pathlib.Path, number: int) -> list[int]:
    if not status_file.exists():
        return []
    nodes = json.loads(status_file.read_text())["nodes"]
    pids = [node["pid"] for node in nodes if node["state"] == "running"]
    return pids if len(pids) == number else []


def is_alive(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_for(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not (result := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result
