"""A kubectl that answers as it is told, in kubectl's own words, and remembers what it was asked."""

import json
import os
import pathlib
import re
import sys
from typing import Any

_SCRIPT = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parents[4])!r})
from tests.launch.engines.kubernetes.fake_kubectl import answer
answer({{folder!r}})
"""


class FakeKubectl:
    """The first rule whose pattern is found in the arguments answers; without one, `{}` does."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._rules: list[tuple[str, str, str, int]] = []
        folder.mkdir()
        program = folder / "kubectl"
        program.write_text(_SCRIPT.format(folder=str(folder)))
        program.chmod(0o755)
        self._write()

    def says(self, pattern: str, stdout: Any = "", *, stderr: str = "", code: int = 0) -> None:
        """Adds a rule, before those that are there."""
        text = stdout if isinstance(stdout, str) else json.dumps(stdout)
        self._rules.insert(0, (pattern, text, stderr, code))
        self._write()

    def refuses(self, pattern: str, words: str) -> None:
        """Adds a rule that fails."""
        self.says(pattern, stderr=words + "\n", code=1)

    def _write(self) -> None:
        (self._folder / "rules.json").write_text(json.dumps(self._rules))

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Arguments and standard input of every call so far."""
        path = self._folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    def asked(self, pattern: str) -> list[tuple[str, str]]:
        """Those calls that a pattern is found in."""
        return [call for call in self.calls if re.search(pattern, call[0])]


def answer(folder: str) -> None:
    """What the program does."""
    args = " ".join(sys.argv[1:])
    given = "" if sys.stdin.isatty() else sys.stdin.read()
    with open(os.path.join(folder, "calls"), "a") as calls:
        calls.write(json.dumps([args, given]) + "\n")
    with open(os.path.join(folder, "rules.json")) as file:
        rules = json.load(file)
    for pattern, stdout, stderr, code in rules:
        if re.search(pattern, args):
            sys.stdout.write(stdout)
            sys.stderr.write(stderr)
            sys.exit(code)
    print('{"items": []}')
