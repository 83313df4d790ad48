"""`make_program`: the whole system as one Launchpad program.

The same program runs under stock `lp.launch` and under our supervisor, which starts each node in a
process of its own by name (see node_entry.py).
"""

import pathlib

import launchpad as lp

from launch.config import Config
from launch.layout import program_layout
from launch.nodes.actor import run_actor_node
from launch.nodes.evaluator import run_evaluator_node
from launch.nodes.learner import run_learner_node
from launch.nodes.monitor import run_monitor_node
from launch.nodes.replay import ReplayNode


def make_program(config: Config, run_dir: pathlib.Path) -> lp.Program:
    """Groups `replay`, `learner`, `actor`, `evaluator` and `monitor`, wired through Reverb only."""
    program = lp.Program("vantage")
    server = ReplayNode(config, run_dir)
    replay = server.create_handle()
    learner = lp.PyNode(run_learner_node, config, run_dir, replay)
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
            program.add_node(lp.PyNode(run_actor_node, config, index, replay))
    with program.group("evaluator"):
        program.add_node(lp.PyNode(run_evaluator_node, config, replay))
    with program.group("monitor"):
        program.add_node(lp.PyNode(run_monitor_node, run_dir, replay))
    return program
