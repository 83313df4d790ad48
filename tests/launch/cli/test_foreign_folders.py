"""Folders that a stranger made: every command has a result or one line, and names are safe."""

import json
import os
import pathlib
import re

import pytest

pytest.importorskip("rliable", reason="rliable is in the full environment only")

from launch.cli import main as cli
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord
from launch.run_dir import RunDir
from launch.supervise import status_file
from tests.launch.tiny_run import tiny_config
from tests.report.synthetic_runs import write_run

MARKUP = "<script>alert(1)</script>|`x`[y](http://z)"
NAMES = [
    "../../../owned",
    "/owned",
    "..",
    ".",
    "a/b",
    "nul\0byte",
    r"$\frac{1$",
    "$x$",
    "_hidden",
    "=cmd()",
    "\x1b]0;owned\x07\x1b[2J",
    "two\nlines\r\u2028",
    "\u202eturned",
    "\ud800",
    "x" * 100_000,
    MARKUP,
    "ゲーム",
    " ",
    "",
    ["pong"],
    {"a": 1},
    None,
    7,
]


def tree(folder: pathlib.Path) -> dict[str, tuple[int, int]]:
    """What lies in a folder, and when it was last changed."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A place for runs and a place for output, deep enough to see what climbs out of it."""
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b" / "c")
    return tmp_path


def call(capsys, world: pathlib.Path, *args: str) -> tuple[int, str, str]:
    """Runs a command; whatever it does, the terminal is safe and only `out` has changed."""
    before = tree(world)
    code = cli.run(args)
    said = capsys.readouterr()
    for line in (said.out + said.err).splitlines():
        assert line.isprintable(), line
    after = tree(world)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    allowed = re.compile(r"a/b/c(/out(/.*)?|/out\.png)?")
    assert all(allowed.fullmatch(name) for name in changed), changed
    if code == 2:
        assert said.err.splitlines()[-1].startswith("vantage: error: ")
    else:
        assert code == 0
    return code, said.out, said.err


def report(capsys, world, runs="runs"):
    return call(capsys, world, "report", runs, "--out", "out", "--resamples", "5")


def compare(capsys, world, *runs):
    return call(capsys, world, "compare", *runs, "--out", "out.png")


@pytest.mark.parametrize("field", ["game", "algorithm"])
@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_any_name_gives_a_comparison_or_one_line(world, capsys, field, name):
    write_run(pathlib.Path("runs/a"), **{field: name})
    code, _, err = compare(capsys, world, "runs/a")
    assert code == (0 if isinstance(name, str) and name.strip() else 2), err


@pytest.mark.parametrize("name", ["../../../owned", r"$\frac{1$", "\x1b[2J\n", MARKUP, ["pong"]])
def test_a_report_holds_any_name_as_text(world, capsys, name):
    """As a game, as an algorithm and as a setting, beside a run of the usual names."""
    write_run(pathlib.Path("runs/usual"), seed=1)
    write_run(pathlib.Path("runs/game"), game=name)
    write_run(pathlib.Path("runs/algorithm"), algorithm=name)
    write_run(pathlib.Path("runs/setting"), n_step=name, seed=2)
    code, _, err = report(capsys, world)
    assert code == 0
    assert ("is not a run's config" in err) == isinstance(name, list)
    page = pathlib.Path("out/index.html").read_text()
    assert "<script>alert" not in page and "\x1b" not in page
    summary = pathlib.Path("out/summary.md").read_text()
    assert not re.search(r"(?<!\\)(<script|\[y\]|`x)", summary)


def test_two_games_never_share_a_file(world, capsys):
    for number, game in enumerate(("a/b", "a:b", "a-b", "pong")):
        write_run(pathlib.Path(f"runs/{number}"), game=game)
    assert report(capsys, world)[0] == 0
    files = sorted(path.name for path in pathlib.Path("out/games").glob("*.png"))
    assert len(files) == 4 and files[-1] == "pong.png"
    assert all(re.fullmatch(r"[\w-]+\.png", name) for name in files)


def test_names_of_folders_are_text_too(world, capsys):
    folders = [f"runs/{name}" for name in ("\x1b[2Jrun", "two\nlines", "$x_", "[/red]", "=1+1")]
    for seed, folder in enumerate(folders):
        write_run(pathlib.Path(folder), seed=seed)
        (pathlib.Path(folder) / "metrics.jsonl").open("a").write("damaged\n")
    assert report(capsys, world)[0] == 0
    rows = pathlib.Path("out/runs.csv").read_text().splitlines()
    assert len(rows) == 6 and any(row.startswith("'=1+1,") for row in rows)
    assert compare(capsys, world, *folders)[0] == 0
    assert call(capsys, world, "list")[0] == 0


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e308, 1.5, True, "7", None, 0, [1]])
@pytest.mark.parametrize("field", ["frames", "seed", "action_repeat"])
def test_any_number_gives_a_comparison_or_one_line(world, capsys, field, number):
    path = write_run(pathlib.Path("runs/a")) / "config.json"
    stored = json.loads(path.read_text())
    section = stored["config"]["environment"] if field == "action_repeat" else stored["config"]
    section[field] = number
    path.write_text(json.dumps(stored))
    code, _, err = compare(capsys, world, "runs/a")
    assert code == (0 if (field, number) == ("seed", 0) else 2)
    assert code == 0 or field in err


@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e999", "NaN", "1" + "0" * 400, '"x"', "[]"])
def test_any_score_is_drawn_or_left_out(world, capsys, value):
    path = write_run(pathlib.Path("runs/a"))
    with (path / "metrics.jsonl").open("a") as file:
        file.write(f'{{"time": 1, "role": "evaluator", "frames": 9e3, "eval_return": {value}}}\n')
        file.write(f'{{"time": {value}, "role": "learner", "frames": {value}}}\n')
    assert compare(capsys, world, "runs/a")[0] == 0


def plant_pipe(path):
    os.mkfifo(path)


def plant_endless_file(path):
    path.symlink_to("/dev/zero")


def plant_folder(path):
    path.mkdir()


def plant_deep(path):
    path.write_text("[" * 100_000)


def plant_large(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


PLANTS = [plant_pipe, plant_endless_file, plant_folder, plant_deep, plant_large]


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl"])
@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_no_file_of_a_run_is_neither_waited_for_nor_read_to_its_end(
    world, capsys, name, plant
):
    path = write_run(pathlib.Path("runs/bad")) / name
    path.unlink()
    plant(path)
    code, _, err = compare(capsys, world, "runs/bad")
    assert code == 2 and str(path) in err


@pytest.mark.parametrize("plant", [plant_pipe, plant_deep])
def test_what_is_no_file_of_a_run_costs_a_report_no_other_run(world, capsys, plant):
    write_run(pathlib.Path("runs/good"), seed=2)
    planted = [
        write_run(pathlib.Path("runs/bad")) / "config.json",
        write_run(pathlib.Path("runs/worse"), seed=3) / "metrics.jsonl",
        pathlib.Path("runs/suite.json"),
    ]
    for path in planted:
        path.unlink(missing_ok=True)
        plant(path)
    code, _, err = report(capsys, world)
    assert code == 0
    # A pipe under the name of a config is no run at all.
    assert all(str(path) in err for path in planted[plant is plant_pipe :])


def whole_run(actor_hosts: int = 2) -> RunDir:
    """A run over hosts, with everything that `status` and `logs` read."""
    run_dir = RunDir(pathlib.Path("runs/a"))
    run_dir.create(tiny_config())
    EngineRecord("hosts", "c0ffee", HostsOptions(actor_hosts, 3), SlurmOptions()).save(run_dir)
    for path in (run_dir.status_file, run_dir.host_file(0), run_dir.log_file("actor", 0)):
        path.parent.mkdir(exist_ok=True)
        status_file.write_host_status(path, "finished", started=1.0)
    run_dir.metrics_file.write_text('{"time": 1, "role": "learner", "frames": 4}\n')
    return run_dir


@pytest.mark.parametrize(
    "name", ["config.json", "metrics.jsonl", "status.json", "engine.json", "hosts/actor-0.json"]
)
@pytest.mark.parametrize("plant", PLANTS)
def test_status_of_what_is_no_file_of_a_run_is_one_line_that_names_it(
    world, capsys, monkeypatch, name, plant
):
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)
    path = whole_run().root / name
    path.unlink()
    plant(path)
    files = len(os.listdir("/proc/self/fd"))
    for flags in ([], ["--json"]):
        code, out, err = call(capsys, world, "status", "runs/a", *flags)
        if name == "metrics.jsonl" and plant in (plant_deep, plant_large):
            assert code == 0  # a last line that is torn
        elif name in ("status.json", "hosts/actor-0.json"):
            assert code == 0 and f"{path} cannot be read" in out
        else:
            assert code == 2 and str(path) in err
    assert call(capsys, world, "list", "runs")[0] == 0
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize("index", ["3000000000", "99999", "-1", "x", "1" * 200])
def test_status_looks_for_no_host_that_the_run_cannot_have(world, capsys, monkeypatch, index):
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)
    run_dir = whole_run()
    said = {**json.loads(run_dir.host_file(0).read_text()), "state": "running", "host": "evil"}
    path = run_dir.host_file(0).with_name(f"actor-{index}.json")
    path.write_text(json.dumps({**said, "by_telemetry": True}))
    code, out, _ = call(capsys, world, "status", "runs/a", "--json")
    assert code == 0 and len(json.loads(out)["hosts"]) == 2 and "evil" not in out


@pytest.mark.parametrize("plant", [plant_pipe, plant_endless_file, plant_folder])
def test_a_log_that_is_no_file_is_neither_waited_for_nor_read(world, capsys, plant):
    path = whole_run().log_file("learner", 0)
    plant(path)
    path.with_name("\x1b[2J.log").write_text("\x1b[2Jsaid\n")
    code, out, err = call(capsys, world, "logs", "runs/a")
    assert (
        code == 0
        and "actor-0 | " in out
        and "?[2J | ?[2Jsaid\n" in out
        and "learner-0 | " not in out
    )
    assert err == f"vantage: warning: {path}: not a plain file; passed over\n"
    code, _, err = call(capsys, world, "logs", "runs/a", "learner-0")
    assert code == 2 and "no log of 'learner-0'" in err


@pytest.mark.parametrize("name", ["out", "out/index.html", "out/games", "out/games/pong.png"])
def test_a_link_in_the_way_is_not_written_through(world, capsys, name):
    write_run(pathlib.Path("runs/a"))
    mine = world / "mine"
    if name in ("out", "out/games"):
        mine.mkdir()
    else:
        mine.write_text("mine")
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).symlink_to(mine)
    code, _, err = report(capsys, world)
    assert code == 2 and f"cannot write '{name}'" in err
    pathlib.Path("out.png").symlink_to(mine)
    code, _, err = compare(capsys, world, "runs/a")
    assert code == 2 and "cannot write 'out.png'" in err
