"""What a suite leaves behind to be kept and committed, written anew whenever a run has ended."""

import pathlib
import shlex
from collections.abc import Sequence

from actors.games import reference_scores
from launch.errors import InputError
from launch.suite.kept_runs import keep_finished, take_back
from launch.suite.plan import PlannedRun
from launch.terminal import say, warn
from report.atomic_file import make_folder, write_atomically
from report.counted import counted
from report.records import record_folder

PLAN_FILE = "plan.txt"


class SuiteRecords:
    """The folder of a suite's records: its plan, and what its runs have scored so far.

    By default it is in the suite's own folder. Elsewhere it holds the finished runs too, each as
    a small folder, and survives the suite's.
    """

    def __init__(self, folder: pathlib.Path | None, suite: pathlib.Path):
        self.folder, self._suite = folder or suite / "records", suite
        # In the suite's own folder they would be found twice.
        self._keeps_runs = not self.folder.resolve().is_relative_to(suite.resolve())
        self._planned: Sequence[PlannedRun] = ()

    def take_back(self) -> int:
        """Brings finished runs that are only here to the suite's folder; returns how many."""
        if not self._keeps_runs:
            return 0
        try:
            taken = take_back(self.folder, self._suite)
        except OSError as error:
            raise InputError(
                f"cannot take back runs from '{self.folder}' to '{self._suite}': {error.strerror}"
            ) from None
        if taken:
            say(f"{counted(taken, 'finished run')} taken back from {self.folder}")
        return taken

    def start(self, planned: Sequence[PlannedRun]) -> None:
        """Writes the plan; refuses a folder that cannot be written before any run starts."""
        self._planned = planned
        try:
            make_folder(self.folder)
            write_atomically(self.folder / PLAN_FILE, plan_text(planned))
        except OSError as error:
            raise InputError(
                f"cannot write records to '{self.folder}': {error.strerror}; choose another "
                "--records"
            ) from None
        self.update()

    def update(self) -> None:
        """Writes the records anew; a disk that is full now is no reason to end a suite."""
        try:
            if self._keeps_runs:
                keep_finished(self._planned, self.folder)
            # What is damaged in a run is for the report to tell.
            record_folder(self._suite, self.folder, reference_scores(), warn=lambda problem: None)
        except OSError as error:
            warn(f"cannot write records to '{self.folder}': {error.strerror}")


def plan_text(planned: Sequence[PlannedRun]) -> str:
    """The commands of all runs, one a line, with run directories under their own names."""
    commands = (["vantage", "train", *run.train_args, "--run-dir", run.name] for run in planned)
    return "".join(f"{shlex.join(command)}\n" for command in commands)
