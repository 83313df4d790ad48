"""Actors stand without the distributed half of the stack, and without JAX."""

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import actors
for module in pkgutil.iter_modules(actors.__path__):
    importlib.import_module(f"actors.{module.name}")
    print(module.name)
foreign = {
    "tensorflow", "reverb", "launchpad", "jax", "chex", "learner", "reverb_server", "launch"
}
print("foreign:", sorted(foreign & set(sys.modules)))
"""


def test_no_module_imports_tensorflow_reverb_launchpad_jax_or_another_role() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    *modules, foreign = result.stdout.splitlines()
    assert {"environment", "evaluate", "games", "loop", "n_step", "exploration"} <= set(modules)
    assert foreign == "foreign: []"
