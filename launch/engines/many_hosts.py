"""`vantage train` over several hosts: makes the run, then has it started, or says how."""

import dataclasses
import shutil
from collections.abc import Callable
from typing import NamedTuple

from launch import config_checks
from launch.config import Config
from launch.engines import by_hand
from launch.engines.claim import check_claim, claim, run_dir_of
from launch.engines.dry_run import show_resolved
from launch.engines.kubernetes import start as kubernetes_start
from launch.engines.kubernetes.settings import check_options as check_kubernetes_options
from launch.engines.options import (
    HostsOptions,
    Isolation,
    KubernetesOptions,
    SlurmOptions,
    TrainRequest,
)
from launch.engines.record import EngineRecord, load_engine, new_run_id
from launch.engines.slurm import submit
from launch.engines.slurm.scripts import actor_script, learner_script
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir


class _Scheduler(NamedTuple):
    """Who starts the hosts of a run, in the steps that all have in common."""

    check_options: Callable[[EngineRecord], None]  # refuses what could never work
    prepare: Callable[[EngineRecord, Config, EngineRecord | None], tuple[EngineRecord, Config]]
    show: Callable[[EngineRecord, Config, RunDir], None]  # prints what would be started
    check: Callable[[EngineRecord, Config, RunDir], None]  # asks, before anything is written
    check_idle: Callable[[EngineRecord], None]  # refuses a run that is still there
    start: Callable[[EngineRecord, Config, RunDir], ExitCode]


def train_on_hosts(
    config: Config,
    request: TrainRequest,
    hosts: HostsOptions,
    slurm: SlurmOptions,
    isolation: Isolation,
    kubernetes: KubernetesOptions,
) -> ExitCode:
    """Starts a run over several hosts and returns; the run goes on without this process."""
    if request.serial:
        raise InputError("--serial is one process on this machine; drop --engine")
    hosts.check()
    scheduler = _SCHEDULERS[request.engine]
    # Relative paths mean nothing on another host.
    run_dir = RunDir(run_dir_of(config, request).root.absolute())
    actor = dataclasses.replace(config.actor, actors=hosts.num_actors)
    config = dataclasses.replace(config, actor=actor)
    record = EngineRecord(request.engine, new_run_id(), hosts, slurm, isolation, kubernetes)
    scheduler.check_options(record)
    former = load_engine(run_dir) if request.resume else None
    record, config = scheduler.prepare(record, config, former)
    config_checks.check_config(config)
    if request.dry_run:
        check_claim(run_dir, config, resume=request.resume)
        # What follows is for kubectl, from standard output as it is.
        prefix = "# " if request.engine == "kubernetes" else ""
        show_resolved(config, run_dir, engine=request.engine, prefix=prefix)
        scheduler.show(record, config, run_dir)
        return ExitCode.DONE
    scheduler.check(record, config, run_dir)
    if former is not None and former.engine in _SCHEDULERS:
        _SCHEDULERS[former.engine].check_idle(former)
    return _start(scheduler, record, config, run_dir, resume=request.resume)


def _start(
    scheduler: _Scheduler, record: EngineRecord, config: Config, run_dir: RunDir, *, resume: bool
) -> ExitCode:
    with claim(run_dir, config, resume=resume):
        run_dir.stop_file.unlink(missing_ok=True)
        record.start(run_dir)
    try:
        return scheduler.start(record, config, run_dir)
    except InputError:
        if not resume:  # it was empty before, and what is in it now is no run's
            shutil.rmtree(run_dir.root)
        raise


def _show_scripts(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    print(learner_script(record, config, run_dir.root))
    print(actor_script(record, run_dir.root))


_SCHEDULERS = {
    "slurm": _Scheduler(
        check_options=lambda record: submit.check_options(record.slurm),
        prepare=lambda record, config, former: (record, config),
        show=_show_scripts,
        check=lambda record, config, run_dir: submit.check_cluster(record, config, run_dir.root),
        check_idle=submit.check_idle,
        start=submit.submit_run,
    ),
    "hosts": _Scheduler(
        check_options=lambda record: None,
        prepare=by_hand.prepare,
        show=by_hand.show,
        check=lambda record, config, run_dir: None,
        check_idle=lambda record: None,
        start=by_hand.start_run,
    ),
    "kubernetes": _Scheduler(
        check_options=lambda record: check_kubernetes_options(
            record.kubernetes, record.sizes, record.hosts
        ),
        prepare=kubernetes_start.prepare,
        show=kubernetes_start.show,
        check=kubernetes_start.check_cluster,
        check_idle=kubernetes_start.check_idle,
        start=kubernetes_start.start_run,
    ),
}
