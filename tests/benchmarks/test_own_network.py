"""Benchmarks have servers of their own, which nobody else is to reach."""

import ast
import pathlib

import pytest

SCRIPTS = [
    path
    for path in sorted((pathlib.Path(__file__).parents[2] / "benchmarks").glob("*.py"))
    if "__main__" in path.read_text()
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_moves_to_a_network_of_its_own_before_all_else(path):
    last = ast.parse(path.read_text()).body[-1]
    assert isinstance(last, ast.If)
    assert ast.unparse(last.body[0]) == "move_to_own_network()"
