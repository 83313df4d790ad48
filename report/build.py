"""Writes a report on the runs of a folder: page, summary, figures and tables."""

import pathlib
from collections.abc import Iterator, Sequence

from report import figures, page, records, summary, tables
from report.aggregates import Aggregates, aggregate
from report.atomic_file import make_folder, write_atomically
from report.counted import counted
from report.csv_table import write_csv
from report.figure_files import Drawn, write_files
from report.final_scores import table_of
from report.json_file import read_json
from report.line_looks import looks_of
from report.methods import Methods, games_of, methods_of, runs_by_game
from report.plain_text import plain
from report.runs import References, Run, Warn, find_runs
from report.wording import notes_on

PAGE, SUMMARY = "index.html", "summary.md"


class NothingToReportError(ValueError):
    """A folder without a run that could be read, and why."""


def build_report(
    folder: pathlib.Path,
    out: pathlib.Path,
    *,
    references: References,
    warn: Warn,
    resamples: int,
) -> pathlib.Path:
    """Returns the path of the page. What is left out goes to `warn`, and onto the page."""
    problems: list[str] = []

    def note(problem: str) -> None:
        problems.append(plain(problem))
        warn(problem)

    runs = _read(folder, references, note)
    methods = methods_of(runs, note)
    aggregates = aggregate(methods, resamples=resamples)
    cells = table_of(methods)
    not_started = _not_started(folder, runs, note)
    notes = [*notes_on(methods, aggregates), *not_started, *problems]
    make_folder(out)
    inline: dict[str, str] = {}
    captions: dict[str, str] = {}
    for drawn in _draw(methods, aggregates, references):
        inline[drawn.name] = write_files(drawn, out)
        captions[drawn.name] = drawn.caption
    contents = page.Contents(
        methods=methods,
        cells=cells,
        aggregates=aggregates,
        notes=notes,
        figures=inline,
        captions=captions,
    )
    _write_tables(contents, out)
    records.write_records(runs, methods, out)
    write_atomically(out / SUMMARY, summary.render(methods, cells, aggregates, notes))
    write_atomically(out / PAGE, page.render(contents))
    return out / PAGE


def _read(folder: pathlib.Path, references: References, note: Warn) -> list[Run]:
    if not folder.is_dir():
        raise NothingToReportError(f"'{folder}' is not a folder")
    runs = find_runs(folder, references, note)
    if not runs:
        raise NothingToReportError(
            f"no runs found in '{folder}': no readable config.json at or below it"
        )
    if not any(len(run.evaluations.frames) for run in runs):
        raise NothingToReportError(
            f"no evaluation yet in {counted(len(runs), 'run')} of '{folder}': "
            f"{runs[0].path / 'metrics.jsonl'} has none"
        )
    return runs


def _not_started(folder: pathlib.Path, runs: Sequence[Run], note: Warn) -> list[str]:
    """suite.json lists the runs that a suite is going to have."""
    path = folder / "suite.json"
    try:
        planned = {str(name) for name in read_json(path)["runs"]}
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        note(f"{path} cannot be read: {error}; what has not started is not known")
        return []
    missing = len(planned - {run.name for run in runs})
    return [f"{missing} of {len(planned)} planned runs have not started."] if missing else []


def _draw(
    methods: Methods, aggregates: Aggregates | None, references: References
) -> Iterator[Drawn]:
    """One after another: 57 open figures are a lot of memory."""
    looks = looks_of(methods)
    if aggregates is not None:
        yield figures.draw_iqm(aggregates, looks)
        yield figures.draw_final(aggregates, looks)
        yield figures.draw_profiles(aggregates, looks)
        if aggregates.improvement:
            yield figures.draw_improvement(aggregates, looks)
    by_game = {name: runs_by_game(runs) for name, runs in methods.items()}
    for game in games_of([run for runs in methods.values() for run in runs]):
        played = {name: games[game] for name, games in by_game.items() if game in games}
        if played:
            yield figures.draw_game(game, played, references.get(game), looks)


def _write_tables(contents: page.Contents, out: pathlib.Path) -> None:
    written = [tables.score_table(contents.cells)]
    if contents.aggregates is not None:
        written += tables.aggregate_tables(contents.aggregates)
    for table in written:
        write_csv(table, out)
