"""How JAX is set up, and which devices a run uses."""

import contextlib
import os
from functools import cache
from typing import Literal

import jax

from core.engine.compilation import keep_programs

DeviceKind = Literal["auto", "cpu", "gpu"]


class DeviceError(RuntimeError):
    """The asked device is not there; its text is one sentence for the user."""


@cache
def set_up_jax() -> None:
    """Called by whatever is about to use JAX, and done once in a process: importing the engine changes nothing for others who use JAX.

    Gives JAX a CPU device for each core, so that a batch can be split among them, and the host's folder of compiled programs. Where
    somebody has chosen another number of devices, or JAX was in use before, as in a notebook, the devices stay as they are.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jax.config.values["jax_num_cpu_devices"] < 0:
        with contextlib.suppress(RuntimeError):  # of a JAX in use
            jax.config.update("jax_num_cpu_devices", cores)
    keep_programs()


def devices(kind: DeviceKind) -> list[jax.Device]:
    """All devices of a kind. `auto` prefers a GPU.

    Raises DeviceError where `gpu` is asked for and JAX finds none.
    """
    set_up_jax()
    try:
        return jax.devices("cpu") if kind == "cpu" else jax.devices("gpu")
    except RuntimeError:
        if kind == "gpu":
            raise DeviceError(
                'JAX finds no GPU here; on Linux with an NVIDIA driver, pip install "jax[cuda13]" adds its GPU backend.'
            ) from None
        return jax.devices("cpu")


def even_share(among: list[jax.Device], batch: int) -> list[jax.Device]:
    """As many of these devices as divide the batch evenly."""
    return among[: max(count for count in range(1, len(among) + 1) if batch % count == 0)]
