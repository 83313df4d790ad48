"""What a learner compiled serves its next start, and nobody else's."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping

import pytest

from launch.supervise import nodes_on_host
from launch.supervise.compile_cache import new_compile_cache

ROOT = pathlib.Path(__file__).parents[3]
FOLDER, NUMBA_FOLDER = "JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR"
# Three updates as the learner makes them, with its own optimizer on CPU; what they come to, and
# how much of what they needed was compiled before, by JAX or by Numba.
UPDATES = """
import hashlib
from collections import Counter
import jax, numpy as np
from launch import build
from learner.cpu import ffi
from learner.transitions import Transition
from tests.launch.tiny_run import tiny_config

events = Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event]))
config = tiny_config(optimizer="rmsprop")
state, update = build.make_learner(config)
rng = np.random.default_rng(0)
size, n_step = config.sampled_transitions, config.learner.n_step
stacks = rng.integers(0, 256, (2, size, 4, 84, 84), np.uint8)
batch = Transition(
    o_tm1=stacks[0],
    o_t=stacks[1],
    a_tm1=np.zeros(size, np.int32),
    r_t=rng.normal(size=(size, n_step)).astype(np.float32),
    discount_t=np.full((size, n_step), 0.99, np.float32),
    epsilon=np.full(size, 0.1, np.float32),
    greedy_tm1=np.zeros(size, np.int32),
)
for _ in range(3):
    state, _ = update(state, batch, np.ones(size, np.float32))
values = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state))
hits, misses = (events[f"/jax/compilation_cache/cache_{kind}"] for kind in ("hits", "misses"))
[step] = ffi._KEPT_ALIVE
print(hashlib.sha256(values).hexdigest(), hits + step.cache_hits, misses + (not step.cache_hits))
"""

# The optimizer's step, where no file can grow.
STEP_WITHOUT_ROOM = """
import resource
from learner.cpu import ffi, optimizer
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
optimizer._kernel("adam")
print(len(ffi._KEPT_ALIVE))
"""


@pytest.fixture(autouse=True)
def no_cache_of_the_session(monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.delenv(NUMBA_FOLDER, raising=False)


def three_updates(**variables: str) -> tuple[str, int, int]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UPDATES],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    values, hits, misses = done.stdout.split()
    return values, int(hits), int(misses)


def folders_of(variables: Mapping[str, str]) -> set[pathlib.Path]:
    return {pathlib.Path(variables[name]) for name in (FOLDER, NUMBA_FOLDER)}


def test_the_second_start_compiles_nothing_and_computes_the_same(tmp_path):
    variables = new_compile_cache(tmp_path / "compiled")
    values, hits, misses = three_updates(**variables)
    assert misses > 2  # the first state, the update, the optimizer's step
    assert three_updates(**variables) == (values, hits + misses, 0)
    # As a kill in the middle of writing leaves it.
    for path in pathlib.Path(variables[FOLDER]).iterdir():
        os.truncate(path, path.stat().st_size // 2)
    assert three_updates(**variables)[0] == values


def test_a_disk_without_room_costs_the_cache_and_not_the_learner(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", STEP_WITHOUT_ROOM],
        cwd=ROOT,
        env={**os.environ, NUMBA_FOLDER: str(tmp_path / "numba")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"
    assert "compiled again at each start: [Errno 27] File too large" in done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]


def test_a_new_cache_is_empty_the_owners_alone_and_the_only_one(tmp_path):
    parent = tmp_path / "compiled"
    first = folders_of(new_compile_cache(parent))
    for folder in first:
        (folder / "code").write_text("from elsewhere")
    second = folders_of(new_compile_cache(parent))
    # Other names: a learner of before that still lives somewhere cannot write into them.
    assert len(first | second) == 4 and set(parent.iterdir()) == second
    for folder in second:
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_cache_of_the_users_own_is_left_to_them(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, "elsewhere")
    assert new_compile_cache(tmp_path / "compiled") == {}
    assert not (tmp_path / "compiled").exists()


def test_without_room_for_a_cache_there_is_none(tmp_path):
    (tmp_path / "compiled").write_text("a file where the folder should be")
    assert new_compile_cache(tmp_path / "compiled") == {}


def test_the_learner_alone_has_one_in_the_run_directory(local_run):
    own = nodes_on_host.learner_environment(local_run)
    assert pathlib.Path(own[FOLDER]).parent == local_run.compiled
    assert FOLDER not in nodes_on_host.node_environment("actor")
