"""How long a run will take on this machine, judged from runs that have been timed."""

import math
from dataclasses import dataclass

from core.machine import matrix_gflops
from core.runs import store
from core.runs.arithmetic import step_flops
from core.runs.config import RunConfig
from core.runs.file import Facts

PREFERENCE = 4  # a reference run is used only if it is closer in arithmetic than every run of this machine by more than this factor


@dataclass(frozen=True, slots=True)
class TimedRun:
    config: RunConfig
    facts: Facts
    steps: int  # that were computed
    reference: bool  # whether it was timed on the machine of cache/reference/

    @property
    def step_seconds(self) -> float:
        return self.facts.train_seconds / self.steps

    def distance(self, config: RunConfig) -> float:
        """The factor between the arithmetic of the two runs' steps, larger by PREFERENCE for a reference run."""
        ratio = step_flops(self.config) / step_flops(config)
        factor = max(ratio, 1 / ratio)
        return factor * PREFERENCE if self.reference else factor


def seconds(config: RunConfig, steps: int | None = None) -> float:
    """About how long `steps` of this run, or all, will take here; nan where no run has been timed.

    It is judged from the timed run that is closest in arithmetic, from the fastest of equals. What a reference run took is multiplied by
    the ratio of the two machines' rates of matrix products.
    """
    own = [TimedRun(*entry, reference=False) for entry in store.facts(store.runs_folder())]
    reference = [TimedRun(*entry, reference=True) for entry in store.facts(store.REFERENCE)]
    if not own and not reference:
        return math.nan
    closest = min(own + reference, key=lambda run: (run.distance(config), run.step_seconds))
    slower = closest.facts.matrix_gflops / matrix_gflops() if closest.reference else 1.0
    step_seconds = closest.step_seconds * step_flops(config) / step_flops(closest.config)
    compile_seconds = max(run.facts.compile_seconds for run in own or reference)
    return slower * (compile_seconds + step_seconds * (config.steps if steps is None else steps))
