"""How a run ended, in a word and in sentences."""

import math
from itertools import pairwise
from typing import Literal

import numpy as np

from core.runs.config import VOCABULARY
from core.runs.history import History

LN_V = math.log(VOCABULARY)  # nats: the loss of a model that has learned nothing
Outcome = Literal["learned", "still learning", "stuck", "diverged"]
LEARNED, STUCK = 0.1, 0.6  # of ln V: a run at most the one has learned, a run at least the other is near guessing


def outcome(history: History) -> Outcome:
    """How a run ended, judged by its mean loss over the last tenth of its steps.

    Near ln V a run is stuck, unless its loss has fallen from each fifth of the steps to the next, and by more than half its scatter there:
    then it only needs more of them.
    """
    if history.diverged_at:
        return "diverged"
    end = history.loss_s[-max(len(history) // 10, 1) :].mean()
    if end <= LEARNED * LN_V:
        return "learned"
    fifths = [fifth for fifth in np.array_split(history.loss_s, 5) if len(fifth)]
    falling = len(fifths) > 1 and all(earlier.mean() - later.mean() > later.std() / 2 for earlier, later in pairwise(fifths))
    return "stuck" if end >= STUCK * LN_V and not falling else "still learning"


def peak(history: History) -> tuple[int | None, float]:
    """The step with the largest gradient norm that is finite, and that norm; (None, nan) where none is."""
    finite_s = np.where(np.isfinite(history.gradient_norm_s), history.gradient_norm_s, -np.inf)
    row = int(finite_s.argmax())
    return (row + 1, float(finite_s[row])) if np.isfinite(finite_s[row]) else (None, math.nan)


def verdict(history: History) -> str:
    """One sentence or two on what happened in a run that has ended; `outcome` is the word before them."""
    step, norm = peak(history)
    gradient = f"Largest gradient norm {norm:.4g} at step {step}." if step else "No step had a finite gradient."
    if history.diverged_at:
        return f"At step {history.diverged_at} loss or gradient norm was no longer a finite number. {gradient}"
    against = "worse than guessing, which gives" if history.loss_s[-1] > 1.1 * LN_V else "where guessing gives"
    return f"Final loss {history.loss_s[-1]:.4g}, {against} ln {VOCABULARY} = {LN_V:.3f}. {gradient}"
