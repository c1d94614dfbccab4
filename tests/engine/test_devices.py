import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import core.engine
from core.engine.devices import devices, even_share
from core.runs.config import RunConfig

ENGINE = sorted(path.stem for path in Path(core.engine.__path__[0]).glob("[a-z]*.py"))


@pytest.mark.parametrize(("batch", "count"), [(1, 1), (6, 3), (7, 1), (24, 4), (25, 1)])
def test_the_batch_is_split_evenly_over_as_many_devices_as_divide_it(monkeypatch: pytest.MonkeyPatch, batch: int, count: int) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [f"{kind} {i}" for i in range(4)])
    assert even_share(devices("cpu"), batch) == [f"cpu {i}" for i in range(count)]


def test_auto_prefers_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [kind])
    assert devices("auto") == ["gpu"]


def test_the_cpu_has_a_device_for_every_core() -> None:
    assert len(jax.devices("cpu")) == (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count())


def run_python(program: str, **environment: str) -> str:
    """What a program prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


TRAIN = """
from core.engine.initialization import initial_parameters
from core.runs.config import RunConfig
config = RunConfig(layers=1, width=16, heads=2, length=8, steps=2)
initial_parameters(config)
from core.engine.training import Training, compile_program
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


@pytest.mark.parametrize(
    ("before", "count"), [("jax.devices()", 1), ("jax.config.update('jax_num_cpu_devices', 3)", 3)], ids=["in use", "chosen"]
)
def test_where_somebody_has_set_jax_up_before_its_devices_stay_as_they_are(before: str, count: int) -> None:
    assert run_python(f"import jax; {before}\n{TRAIN}") == f"2 {count}"


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
