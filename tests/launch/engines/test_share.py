"""Hosts that share no file system: what they are given, and the run directory they make of it."""

import dataclasses
import io
import json
import stat
import sys

import pytest

from launch.cli import main as cli
from launch.config import PRESETS
from launch.engines import host, share
from launch.engines.options import HostsOptions
from launch.engines.record import load_engine
from launch.errors import InputError
from launch.gate import keys
from launch.run_dir import RunDir

PORT = 4711
LEARNER = ("--groups", "replay", "learner", "evaluator", "monitor")


@pytest.fixture
def run_dir(tmp_path, capsys):
    """A run whose actor hosts get a file each."""
    run_dir = RunDir(tmp_path / "run")
    flags = ["--actor-hosts", "2", "--actors-per-host", "3", "--run-dir", str(run_dir.root)]
    way = ["--learner-address", "node7", "--port", str(PORT)]
    assert cli.run(["train", "--engine", "hosts", *flags, *way]) == 0
    commands = capsys.readouterr().out
    assert f"ssh ACTOR_HOST_1 vantage host --bundle - < {run_dir.bundle(1)}" in commands
    return run_dir


@pytest.fixture
def seen(monkeypatch):
    """Stops a host before its preflight; holds what it found in its run directory."""
    found = {}

    def look(self):
        run_dir = self._run_dir
        found.update(
            root=run_dir.root,
            mode=stat.S_IMODE(run_dir.root.stat().st_mode),
            config=run_dir.load_config(),
            address=run_dir.read_address(),
            names=[str(name) for name in self._names()],
            key=keys.read_key(self._key_file, self._record.run_id),
            files={str(p.relative_to(run_dir.root)) for p in run_dir.root.rglob("*")},
        )
        return 0

    monkeypatch.setattr(host._Host, "run", look)
    return found


def test_a_bundle_is_all_that_an_actor_host_needs(run_dir, seen):
    bundle = run_dir.bundle(1)
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert stat.S_IMODE(bundle.parent.stat().st_mode) == 0o700
    assert bundle.stat().st_size < 10_000
    assert cli.run(["host", "--bundle", str(bundle)]) == 0
    assert seen["config"] == run_dir.load_config()
    assert seen["address"] == f"node7:{PORT}"
    assert seen["names"] == ["actor-3", "actor-4", "actor-5"]
    # Its own folder, for its own eyes, with its own key alone; gone afterwards.
    assert seen["root"] != run_dir.root and seen["mode"] == 0o700
    assert [name for name in seen["files"] if "pem" in name] == ["keys/actor-1.pem"]
    assert not seen["root"].exists()


def test_a_bundle_may_come_by_standard_input(run_dir, seen, monkeypatch):
    text = run_dir.bundle(0).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli.run(["host", "--bundle", "-"]) == 0
    assert seen["names"] == ["actor-0", "actor-1", "actor-2"]


def test_config_and_key_may_be_two_files(run_dir, seen, tmp_path):
    text = share.config_text(run_dir.load_config(), load_engine(run_dir))
    assert "PRIVATE" not in text
    (tmp_path / "config.json").write_text(text)
    given = ("--config", str(tmp_path / "config.json"), "--key", str(run_dir.keys / "actor-0.pem"))
    assert cli.run(["host", *given, "--groups", "actor"]) == 0
    assert seen["address"] == f"node7:{PORT}"

    # The learner's host keeps what it makes: in a run directory of its own.
    given = (*given[:3], str(run_dir.keys / "gate.pem"))
    volume = tmp_path / "volume" / "run"
    assert cli.run(["host", *given, *LEARNER, "--run-dir", str(volume)]) == 0
    assert seen["root"] == volume and seen["key"].path.name == "gate.pem"
    assert (volume / "config.json").exists() and seen["mode"] == 0o700


def test_files_that_are_older_than_their_host_are_waited_for(run_dir, seen, tmp_path, monkeypatch):
    config, record = run_dir.load_config(), load_engine(run_dir)
    given = tmp_path / "config.json"
    given.write_text(share.config_text(config, record))
    key = tmp_path / "actor-2.pem"
    flags = ["host", "--config", str(given), "--key", str(key), "--groups", "actor", "--index", "2"]

    def arrive(seconds: float) -> None:
        """The cluster hands out the key first, then the config with one host more."""
        if not key.exists():
            key.write_text((run_dir.keys / keys.actor_key(0)).read_text())
            return
        more = dataclasses.replace(record, hosts=HostsOptions(3, 3, "node7"))
        given.write_text(share.config_text(config, more))

    monkeypatch.setattr(share.time, "sleep", arrive)
    assert cli.run([*flags, "--come-back"]) == 0
    assert seen["names"] == ["actor-6", "actor-7", "actor-8"]
    key.unlink()
    assert cli.run(flags) == 2  # by hand nothing comes later
    monkeypatch.setattr(share, "_FILES_SECONDS", -1.0)
    assert cli.run([*flags, "--come-back"]) == 2


def learner_share(run_dir: RunDir) -> share.Share:
    text = share.config_text(run_dir.load_config(), load_engine(run_dir))
    return share.Share(json.loads(text), (run_dir.keys / "gate.pem").read_text(), None)


def test_a_learners_folder_goes_on_with_its_own_run_alone(run_dir, tmp_path):
    volume = RunDir(tmp_path / "volume")
    given = learner_share(run_dir)
    share.unpack(given, volume, keys.GATE)
    volume.stop_file.touch()
    share.unpack(given, volume, keys.GATE)
    assert volume.stop_file.exists()  # the same start of the run, which was told to stop
    record = dict(given.stored["engine"], run_id="decade")
    share.unpack(
        dataclasses.replace(given, stored={**given.stored, "engine": record}), volume, keys.GATE
    )
    assert not volume.stop_file.exists()  # it was resumed
    other = dataclasses.replace(PRESETS["cpu"], seed=7)
    with pytest.raises(InputError, match="seed=7: the run was started with seed="):
        share.unpack(
            dataclasses.replace(
                given, stored={**given.stored, "config": dataclasses.asdict(other)}
            ),
            volume,
            keys.GATE,
        )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--bundle", "missing.json"], "bundle 'missing.json' cannot be read: No such file"),
        (["--bundle", "junk.json"], "bundle 'junk.json' is none that vantage train wrote"),
        (["--bundle", "list.json"], "bundle 'list.json' is none that vantage train wrote"),
        (["--bundle", "x", "--run-dir", "y"], "--bundle holds all; drop --run-dir"),
        (["--config", "x"], "--config and --key go together"),
        (["--config", "x", "--key", "y", "--groups", "actor"], "'x' cannot be read"),
        (["--config", "junk.json", "--key", "junk.json", "--groups", "actor"], "no config of a"),
        (["--config", "list.json", "--key", "junk.json", "--groups", "actor"], "no run's config"),
        (["--groups", "actor"], "a host needs --run-dir, --bundle, or --config and --key"),
        (["--config", "list.json", "--key", "junk.json", *LEARNER], "needs --run-dir: checkpoints"),
    ],
)
def test_a_host_that_is_given_something_else_is_refused(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "junk.json").write_text("?")
    (tmp_path / "list.json").write_text("[]")
    assert said in refuse("host", *flags)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--learner-address", "node7"], "start the run with --learner-address and --port"),
        (["--learner-address", "a b", "--port", "1"], "learner_address=a b is no name or address"),
    ],
)
def test_hosts_that_could_not_find_the_gate_are_refused_at_once(refuse, tmp_path, flags, said):
    run = tmp_path / "run"
    assert said in refuse("train", "--engine", "hosts", "--run-dir", str(run), *flags)
    assert not run.exists()


def test_new_keys_make_new_bundles_and_those_of_before_are_gone(run_dir):
    before = json.loads(run_dir.bundle(0).read_text())
    resume = ["--run-dir", str(run_dir.root), "--resume", "--actor-hosts", "1"]
    assert cli.run(["train", *resume]) == 0
    after = json.loads(run_dir.bundle(0).read_text())
    assert before["key"] != after["key"]
    assert not run_dir.bundle(1).exists()
