"""How JAX is set up, and which devices a run uses."""

import contextlib
import os
import re
import subprocess
import sys
from functools import cache
from typing import Literal

import jax

from core import host
from core.engine.compilation import keep_programs
from core.engine.start import no_start
from core.machine import DeviceError

DeviceKind = Literal["auto", "cpu", "gpu"]
FailedDevice = jax.errors.JaxRuntimeError  # its memory is full, say
DEVICE_COUNT = "xla_force_host_platform_device_count"  # XLA's own flag for it


@cache
def set_up_jax() -> None:
    """Called by whatever is about to use JAX, and done once in a process: importing the engine changes nothing for others who use JAX.

    Gives JAX a CPU device for each core, so that a batch can be split among them, and the host's folder of compiled programs. Where
    somebody has chosen another number of devices, or JAX was in use before, as in a notebook, the devices stay as they are.
    Raises DeviceError where JAX does not start.
    """
    flags = xla_flags()
    if flags:
        check(flags)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jax.config.values["jax_num_cpu_devices"] < 0 and DEVICE_COUNT not in flags:
        with contextlib.suppress(RuntimeError):  # of a JAX in use
            jax.config.update("jax_num_cpu_devices", cores)
    try:
        jax.default_backend()
    except Exception as error:  # RuntimeError, AssertionError
        raise DeviceError(no_start(error)) from error
    keep_programs()


def xla_flags() -> str:
    """The options of XLA that the environment sets."""
    return host.variables().get("XLA_FLAGS", "").strip()


def check(flags: str) -> None:
    """Raises DeviceError where XLA does not know these flags. It ends a process that has such, so it is asked in another one."""
    environment = {name: value for name, value in host.variables().items() if not name.startswith("JAX_")}
    environment |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    asked = subprocess.run(
        [sys.executable, "-c", "import jax; jax.devices()"], env=environment, capture_output=True, text=True, check=False
    )
    if asked.returncode and (said := re.search(r"^[EF]\d{4} .*?\] (.*?)\.?$", asked.stderr, re.MULTILINE)):
        raise DeviceError(f"XLA does not take XLA_FLAGS={flags!r}: {said[1]}.")


def devices(kind: DeviceKind) -> list[jax.Device]:
    """All devices of a kind. `auto` prefers a GPU.

    Raises DeviceError where `gpu` is asked for and JAX finds none, and where JAX does not start or has no CPU.
    """
    set_up_jax()
    for platform in ("gpu", "cpu") if kind == "auto" else (kind,):
        try:
            return jax.devices(platform)
        except RuntimeError as error:
            missing = error
    if kind == "gpu":
        raise DeviceError('JAX finds no GPU here; on Linux with an NVIDIA driver, pip install "jax[cuda13]" adds its GPU backend.')
    raise DeviceError(no_start(missing))


def even_share(among: list[jax.Device], batch: int) -> list[jax.Device]:
    """As many of these devices as divide the batch evenly."""
    return among[: max(count for count in range(1, len(among) + 1) if batch % count == 0)]
