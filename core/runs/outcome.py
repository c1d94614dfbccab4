"""How a run ended, in a word and in sentences, judged by what its task says of guessing."""

import math
from itertools import pairwise
from typing import Literal

import numpy as np

from core.data_tasks import Task
from core.runs.history import History

Outcome = Literal["learned", "still learning", "stuck", "diverged"]
# Fractions of the loss of guessing: a run that ends at or below the first has learned, one at or above the second is near guessing.
LEARNED, STUCK = 0.1, 0.6


def outcome(history: History, task: Task) -> Outcome:
    """How a run ended, judged by its mean loss over the last tenth of its steps.

    A run near guessing is stuck, unless its loss has fallen from each fifth of the steps to the next, and by more than half its scatter
    there: then it only needs more of them.
    """
    if history.diverged_at:
        return "diverged"
    loss_s = history["loss"]
    end = (loss_s[-max(len(loss_s) // 10, 1) :].mean() - task.best) / (task.guessing - task.best)
    if end <= LEARNED:
        return "learned"
    fifths = [fifth for fifth in np.array_split(loss_s, 5) if len(fifth)]
    falling = len(fifths) > 1 and all(earlier.mean() - later.mean() > later.std() / 2 for earlier, later in pairwise(fifths))
    return "stuck" if end >= STUCK and not falling else "still learning"


def peak(history: History) -> tuple[int | None, float]:
    """The step with the largest gradient norm that is finite, and that norm; (None, nan) where none is."""
    norm_s = history["gradient_norm"]
    finite_s = np.where(np.isfinite(norm_s), norm_s, -np.inf)
    row = int(finite_s.argmax())
    return (row + 1, float(finite_s[row])) if np.isfinite(finite_s[row]) else (None, math.nan)


def verdict(history: History, task: Task) -> str:
    """One sentence or two on what happened in a run that has ended; `outcome` is the word before them."""
    step, norm = peak(history)
    gradient = f"Largest gradient norm {norm:.4g} at step {step}." if step else "No step had a finite gradient."
    if history.diverged_at:
        return f"Loss or gradient became infinite or NaN at step {history.diverged_at}. {gradient}"
    loss = history["loss"][-1]
    worse = "worse than " if loss > 1.1 * task.guessing else ""
    return f"Final loss {loss:.4g} ({worse}random guessing: {task.guessing:.3f}). {gradient}"
