"""`vantage train --engine slurm|hosts`: makes the run, queues it or says what to start where."""

import dataclasses

from launch import config_checks
from launch.config import Config
from launch.engines.claim import check_claim, claim, run_dir_of
from launch.engines.dry_run import show_resolved
from launch.engines.options import (
    ACTOR_GROUPS,
    LEARNER_GROUPS,
    HostsOptions,
    Isolation,
    SlurmOptions,
    TrainRequest,
)
from launch.engines.record import EngineRecord, load_engine, new_run_id
from launch.engines.slurm import submit
from launch.engines.slurm.scripts import actor_script, host_command, learner_script
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir


def train_on_hosts(
    config: Config,
    request: TrainRequest,
    hosts: HostsOptions,
    slurm: SlurmOptions,
    isolation: Isolation,
) -> ExitCode:
    """Starts a run over several hosts and returns; the run goes on without this process."""
    if request.serial:
        raise InputError("--serial is one process on this machine; drop --engine")
    hosts.check()
    submit.check_options(slurm)
    # Relative paths mean nothing on another host.
    run_dir = RunDir(run_dir_of(config, request).root.absolute())
    actor = dataclasses.replace(config.actor, actors=hosts.num_actors)
    config = dataclasses.replace(config, actor=actor)
    config_checks.check_config(config)
    record = EngineRecord(request.engine, new_run_id(), hosts, slurm, isolation)
    if request.dry_run:
        check_claim(run_dir, config, resume=request.resume)
        show_resolved(config, run_dir, engine=request.engine)
        _show(record, config, run_dir)
        return ExitCode.DONE
    if request.engine == "slurm":
        submit.check_cluster(record, config, run_dir.root)
    former = load_engine(run_dir) if request.resume else None
    if former is not None and former.engine == "slurm":
        submit.check_idle(former)
    with claim(run_dir, config, resume=request.resume):
        run_dir.stop_file.unlink(missing_ok=True)
        record.start(run_dir)
    if request.engine == "slurm":
        return submit.submit_run(record, config, run_dir)
    _show_commands(record, run_dir)
    return ExitCode.DONE


def _show(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    if record.engine == "hosts":
        _show_commands(record, run_dir)
        return
    print(learner_script(record, config, run_dir.root))
    print(actor_script(record, run_dir.root))


def _show_commands(record: EngineRecord, run_dir: RunDir) -> None:
    print("# on the learner's host")
    print(host_command(run_dir.root, ["--groups", *LEARNER_GROUPS]))
    for index in range(record.hosts.actor_hosts):
        print(f"# on actor host {index}")
        print(host_command(run_dir.root, ["--groups", *ACTOR_GROUPS, "--index", str(index)]))
