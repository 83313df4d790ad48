"""The replay node: what its process needs."""

import subprocess
import sys

PROGRAM = """
import pathlib, sys
from launch.config import Config
from launch.nodes.tables import replay_tables
from launch.program import make_program
from launch.replay import replay_limit
config = Config()
make_program(config, pathlib.Path("/nowhere"))
print([table.name for table in replay_tables(config, replay_limit(config))])
print(sorted({"ale_py", "haiku", "learner", "optax"} & set(sys.modules)))
"""


def test_it_makes_its_tables_without_a_network_or_an_emulator() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines() == ["['replay', 'params', 'telemetry']", "[]"]
