"""This machine: how fast it multiplies matrices, and what it lacks."""

import time
from collections.abc import Callable
from functools import cache

import numpy as np


class DeviceError(RuntimeError):
    """What is to compute a run is not there; the text is one sentence for the user."""


@cache
def matrix_gflops(size: int = 512, repeats: int = 20) -> float:
    """The best rate, in GFLOP/s, of a few float32 products of square matrices: what this machine can do. Measured once in a process."""
    square = np.ones((size, size), np.float32)
    return product_gflops(lambda: square @ square, size, repeats)


def product_gflops(product: Callable[[], object], size: int, repeats: int) -> float:
    """The best rate, in GFLOP/s, of computing a product of two square matrices this often."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        product()
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times) / 1e9
