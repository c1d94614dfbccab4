import os
import subprocess
import sys

import jax
import pytest

from core.engine.devices import devices, divided


@pytest.mark.parametrize(("batch", "count"), [(1, 1), (6, 3), (7, 1), (24, 4), (25, 1)])
def test_the_batch_is_split_evenly_over_as_many_devices_as_divide_it(monkeypatch: pytest.MonkeyPatch, batch: int, count: int) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [f"{kind} {i}" for i in range(4)])
    assert divided(devices("cpu"), batch) == [f"cpu {i}" for i in range(count)]


def test_auto_prefers_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [kind])
    assert devices("auto") == ["gpu"]


def test_the_cpu_has_a_device_for_every_core() -> None:
    assert len(jax.devices("cpu")) == (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count())


def test_without_a_gpu_auto_falls_back_and_gpu_says_what_to_install() -> None:
    program = """
from core.engine.devices import DeviceError, devices
assert devices("auto")[0].platform == "cpu"
try:
    devices("gpu")
except DeviceError as error:
    print(error)
"""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == 'JAX finds no GPU here; on Linux with an NVIDIA driver, pip install "jax[cuda13]" adds its GPU backend.'
