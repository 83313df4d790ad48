"""A rehearsal: the whole real program, of which some parts are pretended.

`python -m launch.profile.rehearsal RUN_DIR` runs it as `vantage train` runs a run. Its nodes are
processes of `launch.profile.rehearsal_node`, which is the only way to pretend anything: a run that
trains never loads it. What is pretended stands in a file of the run directory; learner checkpoints
are not written.
"""

import json
import pathlib
import sys
from typing import NamedTuple

from launch.engines.claim import config_to_resume
from launch.engines.local import train_locally
from launch.engines.options import TrainRequest
from launch.run_dir import RunDir
from report.json_file import read_json

_NODE_MODULE = "launch.profile.rehearsal_node"


class Pretence(NamedTuple):
    """What is not real."""

    update_ms: float  # of one update, on a device that takes no core
    recorded_play: bool = False  # games without emulators, actions without a network

    def save(self, run_dir: RunDir) -> None:
        """Writes it for the nodes."""
        _file(run_dir).write_text(json.dumps(self._asdict()))

    @classmethod
    def load(cls, run_dir: RunDir) -> "Pretence":
        """What `save` wrote."""
        return cls(**read_json(_file(run_dir)))


def rehearsal_command(run_dir: RunDir) -> list[str]:
    """What starts the rehearsal of a run directory that has its config and its pretence."""
    return [sys.executable, "-m", "launch.profile.rehearsal", str(run_dir.root)]


def _file(run_dir: RunDir) -> pathlib.Path:
    return run_dir.root / "rehearsal.json"


def main(argv: list[str]) -> int:
    """Runs until stopped, as `vantage train --resume` would."""
    root = pathlib.Path(argv[1])
    request = TrainRequest(run_dir=root, resume=True)
    return train_locally(config_to_resume(root), request, "auto", node_module=_NODE_MODULE)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
