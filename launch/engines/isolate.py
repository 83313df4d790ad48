"""Whether a run gets a network namespace of its own, and what is said where it gets none."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys

from launch.engines.options import Isolation
from launch.errors import InputError
from launch.supervise.namespace import Namespace, NoNamespaceError, make_namespace
from launch.terminal import warn

_UVM = "/dev/nvidia-uvm"
_MODPROBE_SECONDS = 30.0
_MOVED = "VANTAGE_OWN_NETWORK"  # set where nobody need move any more


def namespace_for(isolation: Isolation, port: int) -> Namespace | None:
    """The namespace of a run that is about to start; `port` is Reverb's, and open without one.

    A TPU's library asks its host's network for the rest of the machine, so it stays there.
    """
    if isolation == "no":
        return None
    try:
        return _make_namespace(despite_tpu=isolation == "yes")
    except NoNamespaceError as error:
        if isolation == "yes":
            raise InputError(f"--isolate: {error}; drop the flag and use a firewall") from None
        warn(
            f"Reverb's port {port} is open to everyone who can reach this host: {error}; close it "
            "with a firewall (docs/trust.md), or say --no-isolate if that is meant"
        )
        return None


def move_to_own_network() -> None:
    """Has this process, which is to measure a server of its own, start anew in a namespace.

    To be called first: of what the process has done until then nothing is left. Where there can be
    no namespace it says so and goes on; the processes that it starts need not move again.
    """
    if os.environ.get(_MOVED) is not None:
        return
    os.environ[_MOVED] = "1"
    try:
        namespace = _make_namespace()
    except NoNamespaceError as error:
        warn(
            "the port of what is measured, a server of made-up data, is open to everyone who can "
            f"reach this host: {error} (docs/trust.md)"
        )
        return
    namespace.execute([sys.executable, *sys.orig_argv[1:]])


def _make_namespace(*, despite_tpu: bool = False) -> Namespace:
    if not despite_tpu and _on_tpu_host():
        raise NoNamespaceError("a TPU needs the host's network")
    _load_gpu_modules()
    return make_namespace()


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
