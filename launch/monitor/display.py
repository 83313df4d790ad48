"""A run on the terminal of whoever runs it: drawn from its metrics file, and from its phase."""

import time

from launch.config import Config
from launch.monitor.follow import MetricsFollower
from launch.monitor.run_phase import RunPhase
from launch.monitor.snapshot import RunState
from launch.monitor.view import View
from launch.run_dir import RunDir
from launch.terminal import say


class RunDisplay:
    """Shows a run from its start on; what the file holds by then is of earlier starts."""

    def __init__(self, config: Config, run_dir: RunDir, view: View):
        self._view = view
        self._report_seconds = config.report_seconds
        self._follower = MetricsFollower(run_dir.metrics_file)
        self._state = RunState(
            total_frames=config.frames, target_samples_per_insert=config.replay.samples_per_insert
        )
        self._has_begun = self._trained = False
        self._said: set[str] = set()

    def show(self, phase: RunPhase) -> None:
        """Draws the run as it is now."""
        try:
            self._take_in(phase)
            # The view is on the learner's host, whose clock is in the learner's rows.
            snapshot = self._state.snapshot().as_of(time.time(), self._report_seconds)
            if not self._has_begun:
                snapshot = snapshot.without_rates()
            self._view.update(snapshot.in_phase(phase))
        except Exception as error:
            # A picture is not worth a run, whatever is wrong with it: say it once.
            if str(error) not in self._said:
                say(f"cannot show progress: {error}")
            self._said.add(str(error))

    def close(self) -> None:
        """Leaves the last state on the screen."""
        self._view.close()

    def _take_in(self, phase: RunPhase) -> None:
        rows = self._follower.poll()
        self._state.add(rows)
        if not self._has_begun and not rows:
            self._state.begin()
            self._has_begun = True
        if phase.trains and not self._trained:
            # Replay fills at another pace than that of training.
            self._state.begin_rate()
        self._trained = phase.trains
