"""`make_program`: the whole system as one Launchpad program.

The same program runs under stock `lp.launch` and under our supervisor, which starts each node in a
process of its own by name (see node_entry.py).
"""

import pathlib
from collections.abc import Callable, Mapping

import launchpad as lp
import reverb

from launch.config import Config
from launch.layout import program_layout
from launch.nodes.replay import ReplayNode


def make_program(
    config: Config,
    run_dir: pathlib.Path,
    replaced: Mapping[str, Callable[..., None]] | None = None,
) -> lp.Program:
    """Groups `replay`, `learner`, `actor`, `evaluator` and `monitor`, wired through Reverb only.

    `replaced` holds what a role runs instead, in a rehearsal (`launch.profile.rehearsal`).
    """
    run = {"learner": _run_learner, "actor": _run_actor, **(replaced or {})}
    program = lp.Program("vantage")
    server = ReplayNode(config, run_dir)
    replay = server.create_handle()
    learner = lp.PyNode(run["learner"], config, run_dir, replay)
    if config.replay.colocate:
        with program.group("learner"):
            program.add_node(lp.MultiThreadingColocation([server, learner]))
    else:
        with program.group("replay"):
            program.add_node(server)
        with program.group("learner"):
            program.add_node(learner)
    with program.group("actor"):
        for index in range(program_layout(config)["actor"]):
            program.add_node(lp.PyNode(run["actor"], config, index, replay))
    with program.group("evaluator"):
        program.add_node(lp.PyNode(_run_evaluator, config, run_dir, replay))
    with program.group("monitor"):
        program.add_node(lp.PyNode(_run_monitor, config, run_dir, replay))
    return program


# Each node's module is imported by the process that runs it: replay and the monitor need neither
# networks nor emulators.


def _run_learner(config: Config, run_dir: pathlib.Path, client: reverb.Client) -> None:
    from launch.nodes.learner import run_learner_node

    run_learner_node(config, run_dir, client)


def _run_actor(config: Config, index: int, client: reverb.Client) -> None:
    from launch.nodes.actor import run_actor_node

    run_actor_node(config, index, client)


def _run_evaluator(config: Config, run_dir: pathlib.Path, client: reverb.Client) -> None:
    from launch.nodes.evaluator import run_evaluator_node

    run_evaluator_node(config, run_dir, client)


def _run_monitor(config: Config, run_dir: pathlib.Path, client: reverb.Client) -> None:
    from launch.nodes.monitor import run_monitor_node

    run_monitor_node(config, run_dir, client)
