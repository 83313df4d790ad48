"""The keys of a run on disk, and those that are refused before any connection."""

import datetime

import pytest

from launch.errors import InputError
from launch.gate import keys

DAY = datetime.timedelta(days=1)


@pytest.fixture
def folder(tmp_path):
    keys.make_keys(tmp_path / "keys", "c0ffee", 2)
    return tmp_path / "keys"


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_every_host_has_a_key_that_its_owner_alone_can_read(folder):
    assert names(folder) == {"authority.pem", "gate.pem", "actor-0.pem", "actor-1.pem"}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    key = keys.read_key(folder / keys.actor_key(1), "c0ffee")
    assert key.run_id == "c0ffee"
    assert key.ends <= keys._now() + keys.VALID_DAYS * DAY


def test_a_hosts_key_does_not_hold_the_authoritys(folder):
    [authority_key] = (
        (folder / "authority.pem").read_text().split("-----BEGIN PRIVATE KEY-----")[1:]
    )
    secret = authority_key.split("-----")[0].strip()
    others = [path for path in folder.iterdir() if path.name != "authority.pem"]
    assert others and not any(secret in path.read_text() for path in others)
    assert all(path.read_text().count("PRIVATE KEY") == 2 for path in others)  # one, with its ends


def test_keys_of_before_are_gone_when_new_ones_are_made(folder):
    before = {path.read_text() for path in folder.iterdir()}
    keys.make_keys(folder, "decade", 1)
    assert names(folder) == {"authority.pem", "gate.pem", "actor-0.pem"}
    assert not before & {path.read_text() for path in folder.iterdir()}


def test_scaling_keeps_the_keys_of_hosts_that_stay(folder):
    kept = (folder / "actor-0.pem").read_text()
    keys.add_actor_keys(folder, 3)
    assert {"actor-0.pem", "actor-1.pem", "actor-2.pem"} < names(folder)
    keys.read_key(folder / keys.actor_key(2), "c0ffee")
    keys.add_actor_keys(folder, 1)
    assert names(folder) == {"authority.pem", "gate.pem", "actor-0.pem"}
    assert (folder / "actor-0.pem").read_text() == kept


def test_a_key_of_a_host_that_joins_late_ends_with_the_others(folder, monkeypatch):
    gate, now = keys.read_key(folder / keys.GATE), keys._now()
    monkeypatch.setattr(keys, "_now", lambda: now + 30 * DAY)
    keys.add_actor_keys(folder, 3)
    assert keys.read_key(folder / keys.actor_key(2)).ends == gate.ends


def test_an_authority_that_has_ended_signs_nothing(folder, monkeypatch):
    now = keys._now()
    monkeypatch.setattr(keys, "_now", lambda: now + (keys.VALID_DAYS + 1) * DAY)
    with pytest.raises(InputError, match=r"authority\.pem' was valid until .*new keys"):
        keys.add_actor_keys(folder, 3)
    assert not (folder / keys.actor_key(2)).exists()


def missing(path):
    path.unlink()


def empty(path):
    path.write_text("")


def cut(path):
    path.write_text(path.read_text()[:300])


def folder_instead(path):
    path.unlink()
    path.mkdir()


def without_authority(path):
    path.write_text(path.read_text().rpartition("-----BEGIN CERT")[0])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (missing, "no key '"),
        (empty, "cannot be read"),
        (cut, "cannot be read"),
        (without_authority, "cannot be read"),
        (folder_instead, "cannot be read: Is a directory"),
    ],
)
def test_a_damaged_key_is_refused_in_one_line(folder, damage, said):
    path = folder / keys.actor_key(0)
    damage(path)
    with pytest.raises(InputError, match=said) as refused:
        keys.read_key(path, "c0ffee")
    assert "\n" not in str(refused.value)


def test_another_runs_key_is_refused(folder):
    with pytest.raises(InputError, match="is of run c0ffee, not of decade; resume the run"):
        keys.read_key(folder / keys.GATE, "decade")


@pytest.mark.parametrize(
    ("days", "said"), [(-1, "is valid from .*; set the clock"), (91, "was valid until .*new keys")]
)
def test_a_clock_outside_of_a_keys_dates_is_refused(folder, monkeypatch, days, said):
    now = keys._now()
    monkeypatch.setattr(keys, "_now", lambda: now + days * DAY)
    with pytest.raises(InputError, match=said):
        keys.read_key(folder / keys.GATE, "c0ffee")
