"""Imports without the garbage collector, which works again after them."""

import gc
import sys

import pytest

from launch.quick_imports import import_for_good


def test_the_collector_works_again_and_leaves_alone_what_was_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    collected, frozen = gc.get_stats()[0]["collections"], gc.get_freeze_count()
    [module] = import_for_good(["this"])
    assert sys.modules["this"] is module
    assert gc.isenabled()
    assert gc.get_stats()[0]["collections"] == collected
    assert gc.get_freeze_count() > frozen


def test_the_collector_works_again_after_an_import_that_failed():
    with pytest.raises(ModuleNotFoundError):
        import_for_good(["no_such_module"])
    assert gc.isenabled()
