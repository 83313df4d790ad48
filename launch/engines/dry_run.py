"""What `vantage train --dry-run` says of a run, by whatever engine: its config, resolved."""

import json
import textwrap

from launch import config_json
from launch.config import Config
from launch.layout import program_layout
from launch.run_dir import RunDir


def show_resolved(config: Config, run_dir: RunDir, *, engine: str, prefix: str = "") -> None:
    """Prints the run as JSON; `--config` takes it as it takes a run's config.json.

    Where something else follows that a program reads, a `prefix` makes comments of its lines.
    """
    resolved = {
        "engine": engine,
        "run_dir": str(run_dir.root),
        "nodes": {} if engine == "serial" else program_layout(config),
        "config": config_json.to_json(config),
    }
    print(textwrap.indent(json.dumps(resolved, indent=2), prefix))
