"""Names and `module:Name`: what is found, and one line for each way of not finding it."""

import dataclasses
import pathlib
from collections.abc import Mapping

import pytest

from learner.registry import resolve

MODULE = """
import abc
import dataclasses

@dataclasses.dataclass(frozen=True)
class Tripled:
    width: int = 3
    def scaled(self, factor, /):
        return factor * self.width

class Part(abc.ABC):
    @abc.abstractmethod
    def scaled(self, factor): ...

class Abstract(Part):
    width = 1

class Unfinished:
    width = 1

class Narrow(Tripled):
    def scaled(self):
        return 0

class Abrupt(Tripled):
    scaled = 7

@dataclasses.dataclass(frozen=True)
class Asking(Tripled):
    depth: int = dataclasses.field(kw_only=True)

class Failing(Tripled):
    def __init__(self):
        raise ValueError("of two lines\\nand more")

instance = Tripled(width=5)
"""


@dataclasses.dataclass(frozen=True)
class Part:
    width: int = 1

    def scaled(self, factor: int) -> int:
        return factor * self.width


@dataclasses.dataclass(frozen=True)
class OtherPart(Part):
    color: str = "red"  # not shared, so nobody else needs it


PARTS: Mapping[str, Part] = {"single": Part(), "double": OtherPart(2)}


@pytest.fixture(autouse=True)
def own_module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_parts.py").write_text(MODULE)
    (tmp_path / "own_needs.py").write_text("import a_module_nobody_has")
    (tmp_path / "own_typo.py").write_text("class Tripled:\n  width = = 3")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_name_is_looked_up() -> None:
    assert resolve("double", PARTS) is PARTS["double"]


@pytest.mark.parametrize(("spec", "scaled"), [("own_parts:Tripled", 6), ("own_parts:instance", 10)])
def test_a_class_or_an_instance_of_another_module_is_taken(spec: str, scaled: int) -> None:
    assert resolve(spec, PARTS).scaled(2) == scaled


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("triple", "'triple' is none of single, double; one of your own is written module:Name"),
        ("own_parts:", "not of the form module:Name"),
        (":Tripled", "not of the form module:Name"),
        (".own_parts:Tripled", "not of the form module:Name"),
        (
            "no_such_parts:Tripled",
            "No module named 'no_such_parts'; start from the",
        ),
        ("own_needs:Tripled", "No module named 'a_module_nobody_has'"),
        ("own_typo:Tripled", "SyntaxError: invalid syntax"),
        ("own_parts:Failing", "cannot be: ValueError: of two lines"),
        ("own_parts:Quadrupled", "there is no Quadrupled in .*own_parts.py"),
        ("own_parts:Unfinished", "has no scaled; it needs scaled, width"),
        ("own_parts:Narrow", r"scaled must take \(factor\)"),
        ("own_parts:Abrupt", r"scaled must take \(factor\)"),
        ("own_parts:Abstract", "cannot be: .*abstract method.* '?scaled"),
        ("own_parts:Asking", "made without arguments, and cannot be: .*depth"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(spec: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        resolve(spec, PARTS)
    assert "\n" not in str(raised.value)
