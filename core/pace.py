"""How long a run will take on this machine, judged from runs that have been timed."""

import math
import time
from collections.abc import Callable
from functools import cache

import numpy as np

from core import store
from core.config import VOCABULARY, RunConfig
from core.run import Facts

OWN = math.log(4)  # how much less alike, as the logarithm of a ratio, an own run may be than one of reference


def attention_flops(config: RunConfig) -> float:
    """Arithmetic of attention's two products in all blocks, forward."""
    return config.batch * config.length * config.layers * 4 * config.length * config.width


def needed_flops(config: RunConfig) -> float:
    """Arithmetic that a training step needs, however it is computed: a forward pass and a backward pass of twice its work."""
    tokens = config.batch * config.length
    dense, head = tokens * config.layers * 24 * config.width**2, tokens * 2 * config.width * VOCABULARY
    return 3 * (dense + attention_flops(config) + head)


def step_flops(config: RunConfig) -> float:
    """Arithmetic of one training step of the engine, whose backward pass computes attention anew.

    It does the same with the dense layers only of models so large that what they compute cannot be kept; that is not counted.
    """
    return needed_flops(config) + attention_flops(config)


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


def seconds(config: RunConfig, steps: int | None = None) -> float:
    """About how long `steps` of this run, or all, will take here.

    The yardstick is the run most like it in arithmetic that this machine has timed, the fastest of equals; or a reference run, carried over
    by the ratio of the two machines' matrix products, where that is nearer by more than OWN. Nothing is known, nan, where there is neither.
    """
    own = [(1.0, *entry) for entry in store.facts(store.runs_folder())]
    reference = [(facts.matrix_gflops / matrix_gflops(), like, facts, computed) for like, facts, computed in store.facts(store.REFERENCE)]

    def unlikeness(entry: tuple[float, RunConfig, Facts, int]) -> tuple[float, float]:
        _, like, facts, computed = entry
        return abs(math.log(step_flops(like) / step_flops(config))) + OWN * (entry in reference), facts.train_seconds / computed

    if not own + reference:
        return math.nan
    slower, like, facts, computed = min(own + reference, key=unlikeness)
    per_step = facts.train_seconds / computed * step_flops(config) / step_flops(like)
    compiling = max(facts.compile_seconds for _, _, facts, _ in own or reference)
    return slower * (compiling + per_step * (config.steps if steps is None else steps))
