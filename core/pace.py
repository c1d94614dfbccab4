"""How long a run will take on this machine, judged from runs that have been timed."""

import math
import time

import numpy as np

from core import store
from core.config import VOCABULARY, RunConfig
from core.run import Facts


def step_flops(config: RunConfig) -> float:
    """Arithmetic of one training step: a forward pass, its recomputation in the blocks, and a backward pass of twice its work."""
    tokens = config.batch * config.length
    block = 24 * config.width**2 + 4 * config.length * config.width
    head = 2 * config.width * VOCABULARY
    return tokens * (4 * config.layers * block + 3 * head)


def matrix_gflops(size: int = 512, repeats: int = 5) -> float:
    """The best rate, in GFLOP/s, of a few float32 products of square matrices: what this machine can do at its best."""
    square = np.ones((size, size), np.float32)
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        square @ square
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times) / 1e9


def seconds(config: RunConfig, steps: int | None = None) -> float:
    """About how long `steps` of this run, or all, will take here.

    The yardstick is the run most like it in arithmetic that this machine has timed; before it has timed any, a reference run, carried
    over by the ratio of the two machines' matrix products.
    """
    own = store.facts(store.runs_folder())
    timed = own or store.facts(store.REFERENCE)

    def distance(entry: tuple[RunConfig, Facts]) -> float:
        return abs(math.log(step_flops(entry[0]) / step_flops(config)))

    if not timed:
        return math.nan
    like, facts = min(timed, key=distance)
    slower = 1.0 if own else facts.matrix_gflops / matrix_gflops()
    per_step = facts.train_seconds / like.steps * step_flops(config) / step_flops(like)
    compiling = max((entry.compile_seconds for _, entry in timed), default=0.0)
    return slower * (compiling + per_step * (steps or config.steps))
