"""The batch script of a suite: one job array, each task a run on one host."""

import pathlib
import shlex
from collections.abc import Mapping

from launch.engines.host_size import ACTOR_MIB, learner_mib
from launch.engines.options import SlurmOptions
from launch.engines.slurm.scripts import (
    TASK,
    batch_script,
    learner_options,
    pattern,
)
from launch.invocation import vantage_command
from launch.suite.plan import PlannedRun

# Whether a run is to be continued is known when its task starts, not when it is queued.
_CHOOSE = """\
case "$SLURM_ARRAY_TASK_ID" in
{cases}
esac
run_dir=$1 log=$2
shift 2
if [ -e "$run_dir/config.json" ]; then set -- "$@" --resume; fi
exec >>"$log" 2>&1
"""


def suite_script(
    slurm: SlurmOptions, job_name: str, tasks: Mapping[int, PlannedRun], out: pathlib.Path
) -> str:
    """The job array of these runs by their task numbers; `out`, the suite's folder, is absolute."""
    needed = max(
        learner_mib(run.config) + run.config.actor.actors * ACTOR_MIB for run in tasks.values()
    )
    options = [
        f"--job-name={job_name}",
        *learner_options(slurm, needed),
        f"--output={pattern(out)}/logs/slurm-%A_%a.log",
    ]
    cases = "\n".join(f"{number}) set -- {_words(run, out)} ;;" for number, run in tasks.items())
    command = f'{shlex.join(vantage_command("train"))} "$@"'
    return batch_script(slurm, options, command, this_job=TASK, before=_CHOOSE.format(cases=cases))


def _words(run: PlannedRun, out: pathlib.Path) -> str:
    run_dir = str(out / run.name)
    log_file = str(out / "logs" / f"{run.name}.log")
    return shlex.join([run_dir, log_file, *run.train_args, "--run-dir", run_dir])
