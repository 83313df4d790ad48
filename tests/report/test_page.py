"""The report as files: what is written, what is said of bad input, and the page in a browser."""

import html
import html.parser
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from tests.report.synthetic_runs import REFERENCES, write_run, write_suite

pytest.importorskip("rliable", reason="rliable is in the full environment only")

from report.build import NothingToReportError, build_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BROWSER_SECONDS = 300  # bounds a hang; it takes some seconds
FIGURES = ("iqm", "aggregates", "profiles", "improvement", "games/breakout", "games/pong")


def build(folder: pathlib.Path, out: pathlib.Path) -> tuple[pathlib.Path, list[str]]:
    said: list[str] = []
    page = build_report(folder, out, references=REFERENCES, warn=said.append, resamples=50)
    return page, said


@pytest.fixture(scope="module")
def suite_report(tmp_path_factory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("suite")
    page, said = build(write_suite(root / "runs", algorithms=("va", "q"), seeds=2), root / "report")
    assert not said
    return page


def test_every_figure_is_there_as_svg_and_png_and_every_table_as_csv(suite_report):
    folder = suite_report.parent
    for name in FIGURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text()
    for name in ("scores", "runs", "evaluations", "iqm", "aggregates", "profiles", "improvement"):
        lines = (folder / f"{name}.csv").read_text().splitlines()
        assert len(lines) > 1, name
    assert len(json.loads((folder / "configs.json").read_text())) == 8


def test_the_page_needs_nothing_from_elsewhere(suite_report):
    text = suite_report.read_text()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(link.startswith(("#", "data:")) or "//" not in link for link in loaded)
    assert "@import" not in text and "url(http" not in text


def test_the_summary_has_the_aggregates_and_the_table_beside_the_papers(suite_report):
    text = (suite_report.parent / "summary.md").read_text()
    assert "| va > q |" in text
    assert re.search(r"\| pong \| va \| 2 \| .* ± .* \| .* ± .* \| 1\.16 ± 0\.00 \| [-+]\d", text)


def test_the_best_methods_are_bold_on_the_page_and_in_the_summary(tmp_path):
    for algorithm, score in (("va", 15.0), ("dueling", 14.5), ("q", -20.0)):
        for seed in (1, 2):
            write_run(
                tmp_path / "runs" / f"{algorithm}-{seed}",
                algorithm=algorithm,
                seed=seed,
                returns=(score + seed,) * 2,
                period_frames=3_000_000,
            )
    page, _ = build(tmp_path / "runs", tmp_path / "report")
    text, summary = page.read_text(), (page.parent / "summary.md").read_text()
    assert "<strong>16.50 ± 0.50</strong>" in text and "<strong>16.00 ± 0.50</strong>" in text
    assert "<strong>-18.50 ± 0.50</strong>" not in text and "-18.50 ± 0.50" in text
    assert "| **16.50 ± 0.50** |" in summary and "| -18.50 ± 0.50 |" in summary
    scores = (page.parent / "scores.csv").read_text().splitlines()
    assert [line.endswith("True") for line in scores[1:]] == [True, True, False]


def test_the_same_runs_give_the_same_page(suite_report, tmp_path):
    again, _ = build(suite_report.parents[1] / "runs", tmp_path)
    assert again.read_text() == suite_report.read_text()


def test_one_run_has_a_report_too_and_it_says_what_is_missing(tmp_path):
    page, _ = build(write_run(tmp_path / "run", sticky_actions=0.25), tmp_path / "report")
    text = page.read_text()
    assert "va (sticky_actions=0.25) on pong" in text
    assert "1 of 1 run with sticky actions" in text
    assert "no intervals can be given" in text
    assert "-2.50*" in text  # shorter than 5M frames: the mean of its second half, with a star
    assert not (page.parent / "improvement.png").exists()


def test_an_unfinished_suite_says_what_has_not_finished_and_not_started(tmp_path):
    suite = tmp_path / "suite"
    write_run(suite / "a", total_frames=9000)
    write_run(suite / "b", algorithm="q", returns=(), total_frames=9000)
    (suite / "suite.json").write_text(json.dumps({"runs": ["a", "b", "c"]}))
    text = build(suite, tmp_path / "report")[0].read_text()
    assert "2 of 2 runs not finished" in text
    assert "1 of 3 planned runs have not started" in text


def test_what_is_left_out_is_on_the_page(tmp_path):
    write_run(tmp_path / "runs" / "a", returns=(None, 3.0))
    write_run(tmp_path / "runs" / "<b>", game="chess")
    page, said = build(tmp_path / "runs", tmp_path / "report")
    text = page.read_text()
    assert len(said) == 2 and "whose return is not a number" in text
    assert "&lt;b&gt;" in text and "<b>" not in text


@pytest.mark.parametrize("make", [lambda folder: None, lambda folder: folder.mkdir()])
def test_a_folder_without_runs_is_refused_and_nothing_is_written(tmp_path, make):
    make(tmp_path / "runs")
    with pytest.raises(NothingToReportError, match=str(tmp_path / "runs")):
        build(tmp_path / "runs", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_runs_without_an_evaluation_are_refused_by_the_name_of_the_file(tmp_path):
    write_run(tmp_path / "runs" / "a", returns=(None,))
    with pytest.raises(NothingToReportError, match=r"a/metrics\.jsonl has none"):
        build(tmp_path / "runs", tmp_path / "report")


# Runs in the page, after everything else in it; what it finds is left in the page around it.
PROBE = """<script>
const table = document.querySelector("#scores table");
const column = index => [...table.tBodies[0].rows].map(row => row.cells[index].textContent);
const click = index => table.querySelectorAll("th button")[index].click();
const found = {plots: [], overflow: document.documentElement.scrollWidth > innerWidth};
for (const svg of document.querySelectorAll("figure svg")) {
  const box = svg.getBoundingClientRect();
  if (box.width === 0) continue;  // the one for another width of screen
  const sizes = [...svg.querySelectorAll("text")].map(text => getComputedStyle(text).fontSize);
  const letters = Math.min(...sizes.map(parseFloat)) * box.width / svg.viewBox.baseVal.width;
  found.plots.push([box.width, box.height, svg.querySelectorAll("path").length, letters]);
}
const boxes = [...document.querySelectorAll(".scroll")];
found.tables = boxes.map(box => [box.clientWidth, box.scrollWidth]);
found.width = innerWidth;
click(3); found.up = column(3);
click(3); found.down = column(3);
click(1); found.methods = column(1);
const result = document.createElement("pre");
result.id = "probe"; result.textContent = JSON.stringify(found);
parent.document.body.append(result);
</script>"""


class _ProbeReader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text, self._inside = "", False

    def handle_starttag(self, tag, attrs):
        self._inside = ("id", "probe") in attrs

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        self.text += data if self._inside else ""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here (Debian: apt install chromium)")
@pytest.mark.parametrize("width", [1280, 390])  # a desk, a phone
def test_in_a_browser_plots_are_seen_the_table_sorts_and_nothing_is_wrong(
    suite_report, tmp_path, width
):
    report = suite_report.read_text().replace("</body>", PROBE + "</body>")
    page = tmp_path / "probe.html"
    # In a frame, because a window is never as narrow as a phone.
    frame = f'<iframe width="{width}" height="900" style="border: 0" srcdoc="{{}}"></iframe>'
    page.write_text(f"<!doctype html><body>{frame.format(html.escape(report))}</body>")
    done = subprocess.run(
        [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,1000", "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True, text=True, timeout=BROWSER_SECONDS, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    reader = _ProbeReader()
    reader.feed(done.stdout)
    found = json.loads(reader.text)
    assert found["width"] == width
    assert len(found["plots"]) == len(FIGURES)
    for plot_width, height, paths, letters in found["plots"]:
        assert 200 < plot_width <= width and height > 60 and paths > 10
        assert letters > 9  # pixels
    assert not found["overflow"]  # wide tables scroll by themselves, the page does not
    assert any(inside > box for box, inside in found["tables"]) == (width < 500)
    numbers = [float(cell.split(" ")[0].replace(",", "")) for cell in found["up"]]
    assert numbers == sorted(numbers) and len(set(numbers)) > 1
    assert found["down"] == found["up"][::-1]
    assert found["methods"] == ["q", "q", "va", "va"]
