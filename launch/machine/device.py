"""What the learner computes on: what was asked for, what is there, and what to install.

Whoever starts JAX takes the accelerator, most of a GPU's memory or all of a TPU, so JAX is asked in
a child process that ends at once, and only where it has a plugin for one. Standard library only,
because the doctor asks too.
"""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
from typing import Literal, NamedTuple

from launch.errors import InputError
from launch.machine.child import run_child

DeviceName = Literal["auto", "cpu", "gpu", "tpu"]

# What JAX is told; with `auto` it chooses, or the user's own JAX_PLATFORMS does.
JAX_PLATFORMS = {"cpu": "cpu", "gpu": "cuda,cpu", "tpu": "tpu,cpu"}
_INSTALL = {"gpu": "make setup DEVICE=cuda", "tpu": "make setup DEVICE=tpu"}
# The driver; and as JAX looks for GPUs: bare, in a container, under Windows.
_NVIDIA_FILES = ("/proc/driver/nvidia/version", "/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
_PCI_DEVICES = pathlib.Path("/sys/bus/pci/devices")
_GOOGLE = "0x1ae0"
_TPUS = {"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}  # v2 to 7x
_ASK = "import json, jax; print(json.dumps([[d.platform, d.device_kind] for d in jax.devices()]))"


class Device(NamedTuple):
    """One that JAX computes on."""

    platform: str  # as JAX names it: cpu, gpu, tpu
    kind: str

    def __str__(self) -> str:
        return "CPU" if self.platform == "cpu" else f"{self.kind} ({self.platform})"


class Unused(NamedTuple):
    """An accelerator that is there, and will not be used."""

    found: str
    fix: str


CPU = Device("cpu", "cpu")


def find_device(asked: DeviceName) -> Device:
    """What the learner will compute on; raises InputError where that is not what was asked for."""
    if asked == "cpu" or (asked == "auto" and not _plugins()):
        return CPU
    if asked != "auto" and asked not in _plugins():
        raise _refusal(asked, "JAX has no plugin for it here", f"`{_INSTALL[asked]}`")
    if asked == "gpu" and not _nvidia_driver():
        files = " or ".join(_NVIDIA_FILES)
        raise _refusal(asked, f"there is no {files}", "load its driver, or ask for a job with it")
    return ask_jax(asked)


def ask_jax(asked: DeviceName = "auto") -> Device:
    """The first device that JAX sees, in a process of its own; raises InputError like the above."""
    told = {"JAX_PLATFORMS": JAX_PLATFORMS[asked]} if asked in JAX_PLATFORMS else {}
    answer = run_child(_ASK, environment=told)
    if not answer.ok:
        reason = answer.text.split(" (set JAX_PLATFORMS")[0]
        raise _refusal(asked, f"JAX does not start: {reason}", "mend that")
    device = Device(*json.loads(answer.text)[0])
    if asked not in ("auto", device.platform):
        reason = answer.warning or f"it found {device} alone"
        raise _refusal(asked, f"JAX does not see it: {reason}", "mend that")
    return device


def _refusal(asked: DeviceName, reason: str, fix: str) -> InputError:
    return InputError(f"device={asked}: {reason}; {fix}, or choose --device cpu")


def unused_accelerator(used: Device) -> Unused | None:
    """What this machine has beside the CPU that is used, unless the user's JAX_PLATFORMS means so.

    Looks at files alone.
    """
    if used.platform != "cpu" or os.environ.get("JAX_PLATFORMS"):
        return None
    for name, words, is_there in (("gpu", "an NVIDIA GPU", _nvidia_driver), ("tpu", "a TPU", _tpu)):
        if is_there():
            if name in _plugins():
                return Unused(f"{words} is not used", f"`vantage train --device {name}` says why")
            return Unused(f"{words} is not used: JAX has no plugin for it", f"`{_INSTALL[name]}`")
    return None


def _plugins() -> set[str]:
    """Accelerators that the JAX of this environment could compute on."""
    found = importlib.metadata.entry_points(group="jax_plugins")
    plugins = {"gpu" for entry in found if entry.name.startswith(("xla_cuda", "xla_rocm"))}
    return plugins | ({"tpu"} if importlib.util.find_spec("libtpu") else set())


def _nvidia_driver() -> bool:
    return any(pathlib.Path(file).exists() for file in _NVIDIA_FILES)


def _tpu() -> bool:
    return any(
        _text(device / "vendor") == _GOOGLE and _text(device / "device") in _TPUS
        for device in _PCI_DEVICES.glob("*")
    )


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
