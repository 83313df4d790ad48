"""Which device a learner gets, on machines that have what this one has not."""

import json
import subprocess
import sys

import jax
import pytest

from launch import build
from launch.commands.doctor import libraries
from launch.engines import local, preflight
from launch.errors import InputError
from launch.machine import device
from launch.machine.child import ChildResult
from launch.machine.device import CPU, Device, find_device, unused_accelerator

A100 = ["gpu", "NVIDIA A100-SXM4-40GB"]
NO_DEVICE = "RuntimeError: Unable to initialize backend 'tpu': no device found"


@pytest.fixture
def machine(monkeypatch):
    """Sets what is installed, which drivers there are, and what JAX would answer in a child."""

    def make(
        *plugins: str,
        nvidia: bool = False,
        tpu: bool = False,
        answer: ChildResult | None = None,
    ) -> None:
        monkeypatch.delenv("JAX_PLATFORMS", raising=False)
        monkeypatch.setattr(device, "_plugins", lambda: set(plugins))
        monkeypatch.setattr(device, "_nvidia_driver", lambda: nvidia)
        monkeypatch.setattr(device, "_tpu", lambda: tpu)

        def run_child(code: str, *, environment: dict[str, str]) -> ChildResult:
            assert answer is not None, "JAX is asked although there is nothing to ask"
            return answer

        monkeypatch.setattr(device, "run_child", run_child)

    return make


def sees(*devices: list[str], warning: str = "") -> ChildResult:
    return ChildResult(True, json.dumps(devices), warning=warning)


def test_without_a_plugin_it_is_the_cpu_and_jax_is_not_asked(machine):
    machine()
    assert find_device("auto") == find_device("cpu") == CPU
    assert str(CPU) == "CPU"


def test_where_jax_sees_an_accelerator_auto_takes_it(machine):
    machine("gpu", nvidia=True, answer=sees(A100, A100))
    assert find_device("auto") == find_device("gpu") == Device(*A100)
    assert str(find_device("auto")) == "NVIDIA A100-SXM4-40GB (gpu)"
    assert find_device("cpu") == CPU


@pytest.mark.parametrize(
    ("asked", "world", "said"),
    [
        ("gpu", {}, "no plugin for it here; `make setup DEVICE=cuda`"),
        ("tpu", {}, "no plugin for it here; `make setup DEVICE=tpu`"),
        ("tpu", {"plugins": ["gpu"]}, "no plugin for it here; `make setup DEVICE=tpu`"),
        ("gpu", {"plugins": ["gpu"]}, "there is no /proc/driver/nvidia/version"),
        (
            "gpu",
            {
                "plugins": ["gpu"],
                "nvidia": True,
                "answer": sees(["cpu", "cpu"], warning="cuInit(0) failed"),
            },
            "JAX does not see it: cuInit(0) failed",
        ),
        (
            "tpu",
            {
                "plugins": ["tpu"],
                "answer": ChildResult(False, f"{NO_DEVICE} (set JAX_PLATFORMS='' to ...)"),
            },
            f"JAX does not start: {NO_DEVICE};",
        ),
        (
            "auto",
            {"plugins": ["tpu"], "answer": ChildResult(False, "not finished after 300 s")},
            "JAX does not start: not finished after 300 s",
        ),
    ],
)
def test_what_was_asked_for_and_is_not_there_is_refused(machine, asked, world, said):
    machine(*world.pop("plugins", []), **world)
    with pytest.raises(InputError) as refused:
        find_device(asked)
    message = str(refused.value)
    assert message.startswith(f"device={asked}: ") and said in message
    assert message.endswith(", or choose --device cpu")


def test_a_run_is_refused_before_anything_is_written(machine, refuse, tmp_path, monkeypatch):
    machine()
    monkeypatch.chdir(tmp_path)
    for flags in (["--device", "gpu"], ["--device", "tpu", "--serial"]):
        assert "make setup DEVICE=" in refuse("train", *flags)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("asked", ["auto", "gpu"])
def test_a_learner_host_with_a_gpu_of_slurms_must_see_it(machine, asked):
    machine()
    with pytest.raises(preflight.PreflightError, match="make setup DEVICE=cuda"):
        preflight.check_device(asked, "gpu:1")
    preflight.check_device("auto", "")
    preflight.check_device("cpu", "gpu:1")  # whoever says so means it


@pytest.mark.parametrize(
    ("world", "found", "fix"),
    [
        ({"nvidia": True}, "an NVIDIA GPU is not used: JAX has no plugin", "DEVICE=cuda"),
        ({"tpu": True}, "a TPU is not used: JAX has no plugin", "DEVICE=tpu"),
        ({"nvidia": True, "plugins": ["gpu"]}, "an NVIDIA GPU is not used", "--device gpu"),
    ],
)
def test_an_accelerator_that_is_not_used_is_told_with_its_fix(machine, capsys, world, found, fix):
    machine(*world.pop("plugins", []), answer=sees(["cpu", "cpu"]), **world)
    unused = unused_accelerator(CPU)
    assert unused is not None and found in unused.found and fix in unused.fix
    check = libraries.check_device()
    assert check.ok is None and check.found.startswith(f"CPU; {found}") and fix in check.fix
    local._announce(CPU, "auto")
    said = capsys.readouterr()
    assert "the learner computes on CPU" in said.out
    assert found in said.err and said.err.count("\n") == 1
    local._announce(CPU, "cpu")
    assert not capsys.readouterr().err


def test_nothing_is_told_of_an_accelerator_that_is_used_or_meant_to_rest(machine, monkeypatch):
    machine("gpu", nvidia=True)
    assert unused_accelerator(Device(*A100)) is None
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert unused_accelerator(CPU) is None


def test_a_jax_that_does_not_start_is_for_the_doctor_to_fix(machine):
    machine(answer=ChildResult(False, "No module named 'jax'"))
    check = libraries.check_device()
    assert check.ok is False and "No module named 'jax'" in check.found


def test_drivers_are_found_by_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "_NVIDIA_FILES", (str(tmp_path / "nvidiactl"),))
    monkeypatch.setattr(device, "_PCI_DEVICES", tmp_path / "pci")
    network_card, tpu = tmp_path / "pci" / "0", tmp_path / "pci" / "1"
    for folder, number in ((network_card, "0x0042"), (tpu, "0x0063")):
        assert not device._tpu()
        folder.mkdir(parents=True)
        (folder / "vendor").write_text("0x1ae0\n")
        (folder / "device").write_text(f"{number}\n")
    assert device._tpu()
    assert not device._nvidia_driver()
    (tmp_path / "nvidiactl").touch()
    assert device._nvidia_driver()


def test_plugins_are_found_by_what_is_installed(tmp_path):
    """As pip installs them, beside this environment's packages."""
    metadata = tmp_path / "jax_cuda12_pjrt-0.7.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-cuda12-pjrt\n")
    (metadata / "entry_points.txt").write_text("[jax_plugins]\nxla_cuda12 = jax_plugins.xla\n")
    (tmp_path / "libtpu").mkdir()
    (tmp_path / "libtpu" / "__init__.py").touch()
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r}); from launch.machine import device; "
        "print(sorted(device._plugins()), 'jax' in sys.modules, 'libtpu' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['gpu', 'tpu'] False False\n"


@pytest.fixture
def kept_platforms():
    """Puts back what JAX is told; in this process it has chosen long ago."""
    jax.devices()
    before = jax.config.jax_platforms
    yield
    jax.config.update("jax_platforms", before)


@pytest.mark.usefixtures("kept_platforms")
def test_a_process_that_computes_elsewhere_than_asked_says_so():
    here = jax.devices()[0].platform
    other = "tpu" if here != "tpu" else "gpu"
    assert build.use_device("auto").platform == here
    with pytest.raises(InputError, match=f"device={other}, but JAX computes on {here}"):
        build.use_device(other)
