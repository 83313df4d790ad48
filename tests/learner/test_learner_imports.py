"""The learner's mathematics stands without the distributed half of the stack."""

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import learner
for module in pkgutil.iter_modules(learner.__path__):
    importlib.import_module(f"learner.{module.name}")
    print(module.name)
foreign = {"tensorflow", "reverb", "launchpad", "actors", "reverb_server", "launch"}
print("foreign:", sorted(foreign & set(sys.modules)))
"""


def test_no_module_imports_tensorflow_reverb_launchpad_or_another_role() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    *modules, foreign = result.stdout.splitlines()
    assert {"losses", "update", "loop", "checkpoint"} <= set(modules)
    assert foreign == "foreign: []"
