"""The batch scripts as text, and what Slurm's commands print."""

import dataclasses
import pathlib
import shlex
import subprocess

import pytest

from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord
from launch.engines.slurm import cluster
from launch.engines.slurm.scripts import actor_script, array_range, learner_script
from launch.engines.slurm.time_limit import time_limit_seconds
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir
from launch.suite.plan import PlannedRun
from launch.suite.slurm_script import suite_script
from tests.launch.tiny_run import tiny_config

RUN_DIR = pathlib.Path("/shared/my runs/100%")


def make_record(**slurm: object) -> EngineRecord:
    return EngineRecord("slurm", "c0ffee", HostsOptions(3, 4), SlurmOptions(**slurm))


def options_of(script: str) -> dict[str, str]:
    """The #SBATCH options by name; those without a value are empty."""
    found = {}
    for line in script.splitlines():
        if line.startswith("#SBATCH "):
            for word in shlex.split(line.removeprefix("#SBATCH ")):
                name, _, value = word.partition("=")
                found[name] = value
    return found


def command_line_of(script: str) -> str:
    [line] = [line for line in script.splitlines() if line.endswith(" &")]
    return line.removesuffix(" &")


def command_of(script: str) -> list[str]:
    return shlex.split(command_line_of(script))


def test_both_jobs_are_requeued_and_warned_before_their_end():
    record = make_record(drain_seconds=120)
    for script in (learner_script(record, tiny_config(), RUN_DIR), actor_script(record, RUN_DIR)):
        options = options_of(script)
        assert "--requeue" in options
        assert options["--signal"] == "B:USR1@120"
        assert options["--open-mode"] == "append"
        assert options["--nodes"] == "1"


def test_the_learner_job_has_the_learners_resources_and_groups():
    record = make_record(
        learner_partition="gpu", learner_gres="gpu:1", learner_cpus=8, actor_partition="cpu"
    )
    script = learner_script(record, tiny_config(), RUN_DIR)
    options = options_of(script)
    assert options["--partition"] == "gpu"
    assert options["--gres"] == "gpu:1"
    assert options["--cpus-per-task"] == "8"
    assert "--array" not in options
    # A % of the path is doubled, since Slurm reads %j in it.
    assert options["--output"] == "/shared/my runs/100%%/logs/slurm-learner-%j.log"
    command = command_of(script)
    assert command[command.index("--run-dir") + 1] == str(RUN_DIR)
    assert command[command.index("--run-id") + 1] == "c0ffee"
    assert command[-4:] == ["replay", "learner", "evaluator", "monitor"]


def test_the_actor_job_is_an_array_with_a_core_per_actor():
    script = actor_script(make_record(learner_gres="gpu:1", actor_partition="cpu"), RUN_DIR)
    options = options_of(script)
    assert options["--array"] == "0-2"
    assert options["--cpus-per-task"] == "4"
    assert options["--partition"] == "cpu"
    assert "--gres" not in options
    # The job id of its last task is the id of the whole array.
    assert 'scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"' in script
    assert command_of(script)[-4:] == ["--groups", "actor", "--index", "$SLURM_ARRAY_TASK_ID"]


def test_memory_grows_with_replay_and_with_actors_unless_given():
    config = tiny_config()
    more = dataclasses.replace(
        config, replay=dataclasses.replace(config.replay, replay_capacity_steps=1_000_000)
    )
    small, large = (
        int(options_of(learner_script(make_record(), c, RUN_DIR))["--mem"].removesuffix("M"))
        for c in (config, more)
    )
    assert large - small == pytest.approx(1_000_000 * 4096 / 2**20, rel=0.01)
    assert options_of(actor_script(make_record(), RUN_DIR))["--mem"] == "6144M"
    given = make_record(learner_mem="90G", actor_mem="0")
    assert options_of(learner_script(given, config, RUN_DIR))["--mem"] == "90G"
    assert options_of(actor_script(given, RUN_DIR))["--mem"] == "0"


def test_options_not_given_are_left_to_the_cluster_and_extra_ones_come_last():
    options = options_of(actor_script(make_record(), RUN_DIR))
    assert not {"--partition", "--account", "--time"} & options.keys()
    record = make_record(account="lab", time="1-00:00:00", sbatch_extra="--qos=high -C skylake")
    script = actor_script(record, RUN_DIR)
    options = options_of(script)
    assert (options["--account"], options["--time"]) == ("lab", "1-00:00:00")
    directives = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert directives[-1] == "#SBATCH --qos=high -C skylake"


@pytest.mark.parametrize("script", ["learner", "actor"])
def test_the_scripts_are_valid_shell(script):
    record = make_record()
    text = (
        learner_script(record, tiny_config(), RUN_DIR)
        if script == "learner"
        else actor_script(record, RUN_DIR)
    )
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize("refusals", [0, 2])
def test_a_host_that_makes_room_asks_for_its_place_in_the_queue_until_it_has_it(tmp_path, refusals):
    asked = tmp_path / "asked"
    stand_ins = {
        "scontrol": f'echo "$@" >> {asked}; [ $(wc -l < {asked}) -gt {refusals} ]',
        "sleep": ":",
    }
    for name, body in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    script = learner_script(make_record(), tiny_config(), tmp_path)
    script = script.replace(command_line_of(script), f"(exit {ExitCode.COME_BACK.value})")
    environment = {"SLURM_JOB_ID": "12", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], env=environment, timeout=30)
    assert done.returncode == ExitCode.COME_BACK
    assert asked.read_text().splitlines() == ["requeue 12"] * (refusals + 1)


def test_array_ranges_are_as_sbatch_takes_them():
    assert array_range(range(64)) == "0-63"
    assert array_range([1, 4, 5]) == "1,4,5"


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("2:00:05", 7205),
        ("1-0", 86400),
        ("2-12:30", 217800),
        ("1-00:00:10", 86410),
        ("UNLIMITED", None),
        ("soon", None),
    ],
)
def test_time_limits_are_read_as_sbatch_reads_them(time, seconds):
    assert time_limit_seconds(time) == seconds


def test_the_queue_is_read_with_tasks_and_reasons():
    listed = (
        "12|12|N/A|vantage-c0ffee-learner|RUNNING|h1|None\n"
        "14|13|0|vantage-c0ffee-actor|RUNNING|h2|None\n"
        "13|13|1|vantage-c0ffee-actor|PENDING||Resources\n"
    )
    learner, running, waiting = cluster.parse_queue(listed)
    assert learner == ("12", "vantage-c0ffee-learner", "RUNNING", "h1", "None", None)
    assert (running.job_id, running.task, running.host) == ("13_0", 0, "h2")
    assert (waiting.job_id, waiting.host, waiting.reason) == ("13_1", "", "Resources")
    assert cluster.parse_queue("") == []


def test_without_slurm_the_missing_command_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InputError, match="no sbatch in PATH"):
        cluster.require_slurm()


def test_a_host_outside_slurm_is_reached_by_its_name(monkeypatch):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "worker7")
    assert cluster.node_address() == "worker7"


def make_planned(name: str, *args: str) -> PlannedRun:
    return PlannedRun("pong", "va", 1, RunDir(pathlib.Path(name)), args, tiny_config())


def test_a_suite_is_an_array_whose_tasks_are_its_runs():
    tasks = {3: make_planned("pong-va-seed1"), 7: make_planned("pong-q-seed1", "--game=pong")}
    slurm = SlurmOptions(learner_partition="gpu", learner_gres="gpu:1", time="1-0")
    script = suite_script(slurm, "vantage-suite-c0ffee", tasks, RUN_DIR)
    options = options_of(script)
    assert options["--job-name"] == "vantage-suite-c0ffee"
    assert options["--partition"] == "gpu" and options["--gres"] == "gpu:1"
    # Actors share the host with the learner.
    alone = options_of(learner_script(make_record(), tiny_config(), RUN_DIR))["--mem"]
    assert int(options["--mem"][:-1]) > int(alone[:-1])
    assert 'scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"' in script


@pytest.mark.parametrize("started", [False, True])
def test_a_task_of_a_suite_starts_its_run_or_continues_it(tmp_path, started):
    out = tmp_path / "my suite"
    (out / "logs").mkdir(parents=True)
    if started:
        (out / "pong-q-seed1").mkdir()
        (out / "pong-q-seed1" / "config.json").touch()
    tasks = {3: make_planned("pong-va-seed1"), 7: make_planned("pong-q-seed1", "--game", "a b")}
    script = suite_script(SlurmOptions(), "name", tasks, out)
    # What would train says what it was asked instead.
    script = script.replace(command_line_of(script), "printf '%s\\n' \"$@\"")
    environment = {"SLURM_ARRAY_TASK_ID": "7", "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", "-c", script], env=environment, check=True, timeout=30)
    said = (out / "logs" / "pong-q-seed1.log").read_text().splitlines()
    resume = ["--resume"] if started else []
    assert said == ["--game", "a b", "--run-dir", str(out / "pong-q-seed1"), *resume]
