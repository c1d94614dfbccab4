"""How long a run will take on this machine, judged from runs that have been timed."""

import math
import time
from functools import cache

import numpy as np

from core import store
from core.config import VOCABULARY, RunConfig
from core.run import Facts

OWN = math.log(4)  # how much less alike, as the logarithm of a ratio, an own run may be than one of reference


def step_flops(config: RunConfig) -> float:
    """Arithmetic of one training step: a forward pass, its recomputation in the blocks, and a backward pass of twice its work."""
    tokens = config.batch * config.length
    block = 24 * config.width**2 + 4 * config.length * config.width
    head = 2 * config.width * VOCABULARY
    return tokens * (4 * config.layers * block + 3 * head)


@cache
def matrix_gflops(size: int = 512, repeats: int = 20) -> float:
    """The best rate, in GFLOP/s, of a few float32 products of square matrices: what this machine can do. Measured once in a process."""
    square = np.ones((size, size), np.float32)
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        square @ square
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
