"""Whether a run gets a network namespace of its own, and what is said where it gets none."""

import contextlib
import importlib.util
import os
import shutil
import subprocess

from launch.engines.options import Isolation
from launch.errors import InputError
from launch.supervise.namespace import Namespace, NoNamespaceError, make_namespace
from launch.terminal import warn

_UVM = "/dev/nvidia-uvm"
_MODPROBE_SECONDS = 30.0


def namespace_for(isolation: Isolation, port: int) -> Namespace | None:
    """The namespace of a run that is about to start; `port` is Reverb's, and open without one.

    A TPU's library asks its host's network for the rest of the machine, so it stays there.
    """
    if isolation == "no":
        return None
    if isolation == "auto" and _on_tpu_host():
        _say_open(port, "a TPU needs the host's network")
        return None
    _load_gpu_modules()
    try:
        return make_namespace()
    except NoNamespaceError as error:
        if isolation == "yes":
            raise InputError(f"--isolate: {error}; drop the flag and use a firewall") from None
        _say_open(port, str(error))
        return None


def _say_open(port: int, reason: str) -> None:
    warn(
        f"port {port} is open to everyone who can reach this host: {reason}; close it with a "
        "firewall (docs/trust.md), or say --no-isolate if that is meant"
    )


def _on_tpu_host() -> bool:
    """JAX finds a TPU through this library alone, which is installed where there is one."""
    return importlib.util.find_spec("libtpu") is not None


def _load_gpu_modules() -> None:
    """Has the NVIDIA driver load what CUDA would have it load on its first use.

    The helper that does so is setuid root, which counts for nothing in a user namespace.
    """
    helper = shutil.which("nvidia-modprobe")
    if helper is None or os.path.exists(_UVM):
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # then JAX says what is missing
        subprocess.run(
            [helper, "-c", "0", "-u"], timeout=_MODPROBE_SECONDS, check=False, capture_output=True
        )
