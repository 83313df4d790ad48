"""Whatever the files of a run say: a result or one line, and nothing written.

A file that a run wrote is changed at random, in its meaning or in its bytes, and read by every
command that reads it. The archive of a checkpoint is in tests/learner/test_checkpoint.py.
"""

import copy
import json
import pathlib
import random
import shutil

import hypothesis
import hypothesis.strategies as st
import pytest

pytest.importorskip("rliable", reason="rliable is in the full environment only")

from launch import config_checks
from launch.cli import main as cli
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord
from launch.errors import InputError
from launch.node_status import NodeStatus
from launch.run_dir import RunDir
from launch.suite.folder import prepare_folder
from launch.supervise import status_file
from report.build import build_report
from report.final_scores import table_of
from report.methods import methods_of
from report.metrics_file import MetricsFile
from report.runs import find_runs
from tests.launch.tiny_run import tiny_config
from tests.report.synthetic_runs import REFERENCES

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        [
            *(10**400, -(10**400), 2**63, 1.7e308, -1, 0, {}, [], [[[]]], {"": {"": []}}),
            *("\x1b]0;x\x07", "../../../x", r"$\frac{1$", "\ud800", "a\nb", "[/red]", "x" * 10_000),
            *("running", "stopping", "slurm", "hosts", "no_such:Name"),
        ]
    ),
    st.recursive(st.none() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)),
)
NODE = NodeStatus(role="actor", index=0, host="h", pid=7, state="running")
FUZZ = hypothesis.settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run over two hosts with everything that a run writes about itself."""
    run_dir = RunDir(tmp_path_factory.mktemp("whole") / "run")
    run_dir.create(tiny_config())
    EngineRecord("hosts", "c0ffee", HostsOptions(2, 3), SlurmOptions(account="lab")).save(run_dir)
    for path in (run_dir.status_file, run_dir.host_file(0)):
        path.parent.mkdir(exist_ok=True)
        status_file.write_host_status(path, "running", started=1.0, nodes=[NODE, NODE])
    rows = [
        {"time": 10.0 * i, "role": role, "frames": 100 * i, "eval_return": float(i), "loss": 0.1}
        for i in range(4)
        for role in ("learner", "actor/0", "evaluator", "replay")
    ]
    MetricsFile(run_dir.metrics_file).append(rows)
    (run_dir.root.parent / "suite.json").write_text('{"runs": ["run", "b"], "suite_id": "c0ffee"}')
    return run_dir.root.parent


@pytest.fixture
def world(whole, tmp_path, monkeypatch):
    """A copy of it, and nobody to wait for."""
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)
    shutil.copytree(whole, tmp_path / "runs")
    return tmp_path


def places_in(value, path=()):
    """The path to everything in a JSON value."""
    yield path
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from places_in(value[key], (*path, key))


@st.composite
def changed(draw, text: str) -> bytes:
    """A JSON text with another value somewhere, or without one, or with other bytes."""
    if draw(st.integers(0, 3)) == 0:
        data = bytearray(text.encode())
        start = draw(st.integers(0, len(data)))
        data[start : start + draw(st.integers(0, 40))] = draw(st.binary(max_size=20))
        return bytes(data)
    value = {"all": copy.deepcopy(json.loads(text))}
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from([p for p in places_in(value) if p]))
        inner = value
        for key in path:
            inner = inner[key]
        if path and draw(st.integers(0, 4)) == 0:
            del inner[last]
        else:
            inner[last] = copy.deepcopy(draw(JUNK))
    return json.dumps(value.get("all")).encode(errors="surrogatepass")


def tree(folder: pathlib.Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


def check(capsys, world, *args):
    """A result or one line, for any terminal; nothing has changed but `out.png`."""
    (world / "out.png").unlink(missing_ok=True)
    before = tree(world)
    code = cli.run(args)
    said = capsys.readouterr()
    assert code in (0, 2)
    for line in (said.out + said.err).splitlines():
        assert line.isprintable(), line
    if code == 2:
        assert said.err.splitlines()[-1].startswith("vantage: error: ")
    after = tree(world)
    after.pop(str(world / "out.png"), None)
    assert after == before
    return code


@pytest.mark.parametrize(
    "name", ["config.json", "status.json", "engine.json", "hosts/actor-0.json"]
)
@FUZZ
@hypothesis.given(data=st.data())
def test_status_of_a_run_whose_files_say_anything(world, capsys, name, data):
    path = world / "runs" / "run" / name
    kept = path.read_bytes()
    try:
        path.write_bytes(data.draw(changed(kept.decode())))
        check(capsys, world, "status", str(path.parents[name.count("/")]))
        check(capsys, world, "status", str(path.parents[name.count("/")]), "--json")
        check(capsys, world, "list", str(world / "runs"))
    finally:
        path.write_bytes(kept)


@FUZZ
@hypothesis.given(data=st.data())
def test_a_config_that_says_anything_is_one_that_can_run_or_is_refused(world, data):
    run_dir = RunDir(world / "runs" / "run")
    kept = run_dir.config_file.read_bytes()
    try:
        run_dir.config_file.write_bytes(data.draw(changed(kept.decode())))
        try:
            config_checks.check_config(run_dir.load_config())
        except InputError as error:
            assert str(error)
    finally:
        run_dir.config_file.write_bytes(kept)


@FUZZ
@hypothesis.given(data=st.data())
def test_metrics_that_say_anything(world, capsys, data):
    path = world / "runs" / "run" / "metrics.jsonl"
    kept = path.read_bytes()
    lines = kept.decode().splitlines()
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    try:
        picked = rng.sample(range(len(lines)), k=4)
        written = [
            data.draw(changed(line)) if number in picked else line.encode()
            for number, line in enumerate(lines)
        ]
        path.write_bytes(b"\n".join(written))
        check(capsys, world, "status", str(path.parent))
        check(capsys, world, "list", str(path.parent), "--json")
        find_runs(world / "runs", REFERENCES, lambda problem: None)
    finally:
        path.write_bytes(kept)


@FUZZ
@hypothesis.given(data=st.data())
def test_a_config_that_says_anything_in_a_report(world, data):
    """All that is computed for a report, without the drawing."""
    path = world / "runs" / "run" / "config.json"
    kept = path.read_bytes()
    said: list[str] = []
    try:
        path.write_bytes(data.draw(changed(kept.decode())))
        runs = find_runs(world / "runs", REFERENCES, said.append)
        table_of(methods_of(runs, said.append))
        assert all(run.game.isprintable() and run.algorithm.isprintable() for run in runs)
        assert runs or said
    finally:
        path.write_bytes(kept)


@hypothesis.settings(FUZZ, max_examples=5)
@hypothesis.given(data=st.data())
def test_a_drawn_report_and_a_comparison_of_what_says_anything(world, capsys, data):
    path = world / "runs" / "run" / "config.json"
    stored = json.loads(path.read_text())
    kept = path.read_bytes()
    try:
        for section, name in (("environment", "game"), ("learner", "algorithm")):
            stored["config"][section][name] = data.draw(JUNK)
        path.write_text(json.dumps(stored))
        check(capsys, world, "compare", str(path.parent), "--out", str(world / "out.png"))
        before = tree(world)
        try:
            build_report(
                world / "runs",
                world / "report",
                references=REFERENCES,
                warn=lambda problem: None,
                resamples=2,
            )
        except ValueError as error:
            assert "no runs found" in str(error)
        assert {p for p in tree(world) if not p.startswith(str(world / "report"))} == set(before)
    finally:
        path.write_bytes(kept)
        shutil.rmtree(world / "report", ignore_errors=True)


@FUZZ
@hypothesis.given(data=st.data())
def test_a_suite_that_says_anything_is_continued_or_refused(world, data):
    path = world / "runs" / "suite.json"
    kept = path.read_bytes()
    try:
        path.write_bytes(data.draw(changed(kept.decode())))
        try:
            known = prepare_folder(world / "runs", [])
            assert known.suite_id.isalnum() and all(name.isprintable() for name in known.runs)
        except InputError as error:
            assert str(path) in str(error)
    finally:
        path.write_bytes(kept)
