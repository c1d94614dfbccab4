"""Which devices a run uses."""

import os
from typing import Literal

import jax

from core.engine.compilation import keep_programs

DeviceKind = Literal["auto", "cpu", "gpu"]

# A CPU device per core lets a batch be split among them; it must be said before JAX first looks for devices.
jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
keep_programs()


class DeviceError(RuntimeError):
    """The asked device is not there; its text is one sentence for the user."""


def devices(kind: DeviceKind) -> list[jax.Device]:
    """All devices of a kind. `auto` prefers a GPU.

    Raises DeviceError where `gpu` is asked for and JAX finds none.
    """
    try:
        return jax.devices("cpu") if kind == "cpu" else jax.devices("gpu")
    except RuntimeError:
        if kind == "gpu":
            raise DeviceError(
                'JAX finds no GPU here; on Linux with an NVIDIA driver, pip install "jax[cuda13]" adds its GPU backend.'
            ) from None
        return jax.devices("cpu")


def divided(among: list[jax.Device], batch: int) -> list[jax.Device]:
    """As many of these devices as divide the batch evenly."""
    return among[: max(count for count in range(1, len(among) + 1) if batch % count == 0)]
