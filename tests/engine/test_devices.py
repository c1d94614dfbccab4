import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from quick import QUICK

import core.engine
from core.engine.devices import check, devices, even_share
from core.machine import DeviceError
from core.runs.config import RunConfig

ENGINE = sorted(path.stem for path in Path(core.engine.__path__[0]).glob("[a-z]*.py"))


@pytest.mark.parametrize(("batch", "count"), [(1, 1), (6, 3), (7, 1), (24, 4), (25, 1)])
def test_the_batch_is_split_evenly_over_as_many_devices_as_divide_it(monkeypatch: pytest.MonkeyPatch, batch: int, count: int) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [f"{kind} {i}" for i in range(4)])
    assert even_share(devices("cpu"), batch) == [f"cpu {i}" for i in range(count)]


def test_auto_prefers_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [kind])
    assert devices("auto") == ["gpu"]


def run_python(program: str, **environment: str) -> str:
    """What a program prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


UNSET = {"JAX_NUM_CPU_DEVICES": "-1"}
TRAIN = f"""
from core.engine.initialization import initial_parameters
from core.runs.config import RunConfig
config = RunConfig(layers=1, width=16, heads=2, length=8, steps=2)
initial_parameters(config)
from core.engine import training
from core.engine.training import Training, compile_program
training.COMPILER_OPTIONS = {{"cpu": {QUICK}}}
program = compile_program(config, "cpu")
print(sum(len(chunk) for chunk in Training(config, program)), program.mesh.size)
"""


@pytest.mark.parametrize("first", [["initialization"], ["training"], ENGINE])
def test_the_engine_works_in_any_order_of_import_and_sets_nothing_by_being_imported(first: list[str]) -> None:
    imports = f"""
import importlib, jax
before = dict(jax.config.values)
for name in {first}:
    importlib.import_module(f"core.engine.{{name}}")
assert dict(jax.config.values) == before
"""
    assert run_python(imports + TRAIN) == f"2 {len(even_share(devices('cpu'), RunConfig().batch))}"


def test_a_jax_in_use_keeps_its_devices() -> None:
    assert run_python(f"import jax; jax.numpy.ones(3)\n{TRAIN}", **UNSET) == "2 1"


CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()


@pytest.mark.parametrize(
    ("before", "environment", "count"),
    [
        ("", {}, CORES),
        ("import jax; jax.config.update('jax_num_cpu_devices', 3)", {}, 3),
        ("", {"JAX_NUM_CPU_DEVICES": "3"}, 3),
        ("", {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, 3),
    ],
    ids=["", "chosen", "JAX's variable", "XLA's flag"],
)
def test_there_is_a_device_for_every_core_unless_somebody_has_chosen_another_number(
    before: str, environment: dict[str, str], count: int
) -> None:
    count_devices = "from core.engine.devices import devices; print(len(devices('cpu')))"
    assert run_python(f"{before}\n{count_devices}", **UNSET | environment) == str(count)


def test_flags_at_which_xla_would_end_the_process_are_told() -> None:
    with pytest.raises(DeviceError) as error:
        check("--xla_nonsense=1")
    assert str(error.value) == "XLA does not take XLA_FLAGS='--xla_nonsense=1': Unknown flag in XLA_FLAGS: --xla_nonsense=1."
    check("--xla_cpu_enable_fast_math=true")


def test_without_a_cpu_a_run_on_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where JAX_PLATFORMS names a GPU alone."""

    def only_gpu(kind: str) -> list[str]:
        if kind == "cpu":
            raise RuntimeError("Unknown backend cpu. Available backends are ['cuda']")
        return [kind]

    monkeypatch.setattr(jax, "devices", only_gpu)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    assert devices("auto") == ["gpu"]
    with pytest.raises(DeviceError, match=r"^JAX does not start here with .*JAX_PLATFORMS=cuda: Unknown backend cpu\."):
        devices("cpu")


def test_without_a_gpu_auto_falls_back_and_gpu_says_what_to_install() -> None:
    program = """
from core.engine.devices import DeviceError, devices
assert devices("auto")[0].platform == "cpu"
try:
    devices("gpu")
except DeviceError as error:
    print(error)
"""
    assert (
        run_python(program, JAX_PLATFORMS="cpu")
        == 'JAX finds no GPU here; on Linux with an NVIDIA driver, pip install "jax[cuda13]" adds its GPU backend.'
    )
