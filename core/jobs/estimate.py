"""How long a run will take on this machine, judged from runs that have been timed."""

import math

from core.machine import matrix_gflops
from core.runs import store
from core.runs.arithmetic import step_flops
from core.runs.config import RunConfig
from core.runs.file import Facts

OWN = math.log(4)  # how much less alike, as the logarithm of a ratio, an own run may be than one of reference


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
