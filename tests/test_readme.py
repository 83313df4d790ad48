"""The README and the pages of docs/: commands that `vantage` takes, links that lead somewhere."""

import pathlib
import re
import shlex

import pytest

from launch.cli.argv import parse
from launch.cli.main import COMMANDS

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(page: pathlib.Path) -> list[list[str]]:
    """Every `vantage ...` that stands on a line of its own, without what needs the run it names."""
    text = page.read_text().replace("\\\n", " ")
    lines = re.findall(r"^ *vantage ([a-z][^>\n]*)", text, re.MULTILINE)
    words = [shlex.split(line, comments=True) for line in lines]
    return [[word for word in line if word not in ("...", "--resume")] for line in words]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_taken(page):
    for name, *args in commands(page):
        command = COMMANDS[name]
        if command.read is not None:
            command.read(args)
        else:
            parse(command.flags, args, name)


def test_the_quick_start_is_found():
    names = [name for name, *_ in commands(ROOT / "README.md")]
    assert names[:8] == ["watch", "eval", "train", "status", "eval", "watch", "compare", "report"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    missing = [
        link for link in links if "://" not in link and not (page.parent / link).resolve().exists()
    ]
    assert not missing
