"""`vantage train --serial`: one process trains, and looks after itself."""

import contextlib
import os
from typing import NoReturn

from launch import build
from launch.config import Config
from launch.engines.ending import conclude
from launch.engines.serial.host import SerialHost
from launch.engines.serial.system import SerialSystem
from launch.errors import ExitCode, GiveUpError
from launch.run_dir import RunDir
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome
from launch.terminal import complain


def train_serially(config: Config, run_dir: RunDir) -> ExitCode:
    """Trains to the end, or until it is told to stop."""
    stop = StopSignals()
    run_dir.stop_file.unlink(missing_ok=True)
    host = SerialHost(config, run_dir, stop)

    def kill() -> NoReturn:
        # In a signal's handler: a print that was under way is in the way of ours.
        with contextlib.suppress(RuntimeError):
            host.abandon()
            conclude(Outcome.KILLED, run_dir.root, stop)
        os._exit(ExitCode.FAILED)

    stop.install(kill)
    outcome = _train(config, run_dir, host)
    host.close(outcome)
    return conclude(outcome, run_dir.root, stop)


def _train(config: Config, run_dir: RunDir, host: SerialHost) -> Outcome:
    host.tick("starting")
    build.prepare_learner_process(config)
    try:
        system = SerialSystem(config, run_dir, record=host.record, on_tick=host.tick)
        system.run()
    except GiveUpError as error:
        complain(str(error))
        return Outcome.HOPELESS
    except OSError as error:
        # Only the last checkpoint has to be written, and it was not.
        if host.asked is Outcome.LOST:
            return Outcome.LOST
        complain(str(error))
        return Outcome.UNSAVED
    if system.finished or host.asked is None:
        return Outcome.FINISHED
    return host.asked
