"""The batch scripts of a run, as text and as shell."""

import dataclasses
import pathlib
import subprocess

import pytest

from launch.engines.options import SlurmOptions
from launch.engines.slurm.scripts import actor_script, array_range, learner_script
from launch.errors import ExitCode, InputError
from tests.launch.batch_scripts import RUN_DIR, command_line_of, command_of, make_record, options_of
from tests.launch.tiny_run import tiny_config


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
    programs = {
        "scontrol": f'echo "$@" >> {asked}; [ $(wc -l < {asked}) -gt {refusals} ]',
        "sleep": ":",
    }
    for name, body in programs.items():
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
    "option", [f.name for f in dataclasses.fields(SlurmOptions) if "str" in str(f.type)]
)
def test_no_option_reaches_a_script_beyond_its_line(option):
    record = make_record(**{option: "1\ntouch owned"})
    refused = 0
    for make in (
        lambda: learner_script(record, tiny_config(), RUN_DIR),
        lambda: actor_script(record, RUN_DIR),
    ):
        try:
            assert "touch" not in make()  # an option of the other job
        except InputError as error:
            assert "1?touch owned" in str(error)
            refused += 1
    assert refused


@pytest.mark.parametrize("make", [learner_script, actor_script])
def test_no_name_of_a_folder_reaches_a_script_beyond_its_line(make):
    root = pathlib.Path("/shared/run\ntouch owned")
    arguments = [make_record()] + ([tiny_config()] if make is learner_script else [])
    with pytest.raises(InputError, match=r"run\?touch owned"):
        make(*arguments, root)
