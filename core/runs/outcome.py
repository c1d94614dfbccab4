"""How a run ended, in a word and in sentences, judged by what its task says of guessing."""

import math
from typing import Literal, NamedTuple

import numpy as np

from core.data_tasks import Task
from core.once import once
from core.runs.history import History

Outcome = Literal["learned", "still learning", "plateau", "stuck", "worse than guessing", "lost it", "diverged"]

# Of the way from guessing, which is 1, down to the least loss that the task allows, which is 0:
LEARNED, HALF_WAY, GUESSING, WORSE = 0.1, 0.5, 0.9, 1.1
GIVEN_BACK = 1 / 3  # of what was gained: a run that gives back more has lost it
FALL = 1 / 40  # of the loss: a line that falls less is flat
BEYOND_CHANCE = 3  # standard errors of the line's slope
LEAST_STEPS = 10  # that any mean or line is of, so that no single batch decides; a shorter run has fewer

KEPT = 64  # runs whose words are kept: pages ask for them at every rerun

RULE = (
    f"A run is judged by its mean loss over its last tenth of steps, over {LEAST_STEPS} at least. "
    f"It has **learned** if that is at most {LEARNED:.0%} of the loss of guessing, counted from the least loss that its task allows. "
    "It has **lost it** if the mean over as many steps was once half of the way down from guessing, "
    "more than a third of what was gained is gone again, and the loss is not falling. "
    f"It is **worse than guessing** if the mean is more than {WORSE - 1:.0%} above guessing. "
    "It is **still learning** if its loss is falling: the straight line through the last third of the steps, "
    f"{LEAST_STEPS} at least, falls by more than a fortieth of their mean, "
    "and by more than chance would let it: three standard errors of its slope. "
    f"Of the others, a run within {1 - GUESSING:.0%} of guessing is **stuck**, and one below is on a **plateau**. "
    "It has **diverged** if loss or gradient norm stopped being a finite number."
)


class End(NamedTuple):
    """What a run is judged by."""

    loss: float  # nats: the mean over the last `steps`
    steps: int


def end(history: History) -> End:
    loss_s = history["loss"]
    steps = window(len(loss_s), 10)
    return End(float(loss_s[-steps:].mean(dtype=np.float64)), steps)


@once(KEPT)
def outcome(history: History, task: Task) -> Outcome:
    """The word for how a run ended, as RULE says in full."""
    if history.diverged_at:
        return "diverged"
    loss_s = (history["loss"].astype(np.float64) - task.best) / (task.guessing - task.best)
    steps = window(len(loss_s), 10)
    mean_s = np.convolve(loss_s, np.full(steps, 1 / steps), mode="valid")
    last, least = mean_s[-1], mean_s.min()
    if last <= LEARNED:
        return "learned"
    if least <= HALF_WAY and last - least > GIVEN_BACK * (1 - least) and not falling(loss_s):
        return "lost it"
    if last > WORSE:
        return "worse than guessing"
    if falling(loss_s):
        return "still learning"
    return "stuck" if last >= GUESSING else "plateau"


def falling(loss_s: np.ndarray) -> bool:
    """Whether the straight line through the last third of the losses falls: beyond chance, and far enough to be seen."""
    steps = window(len(loss_s), 3)
    if steps < 3:  # a line through two points has no error
        return False
    last_s = loss_s[-steps:]
    (slope, _), covariance = np.polyfit(np.arange(steps), last_s, 1, cov=True)
    return bool(-slope > BEYOND_CHANCE * math.sqrt(covariance[0, 0]) and -slope * steps > FALL * last_s.mean())


def window(steps: int, parts: int) -> int:
    """The number of steps in one of the equal parts of a run."""
    return min(max(steps // parts, LEAST_STEPS), steps)


def peak(history: History) -> tuple[int | None, float]:
    """The step with the largest gradient norm that is finite, and that norm; (None, nan) where none is."""
    norm_s = history["gradient_norm"]
    finite_s = np.where(np.isfinite(norm_s), norm_s, -np.inf)
    row = int(finite_s.argmax())
    return (row + 1, float(finite_s[row])) if np.isfinite(finite_s[row]) else (None, math.nan)


@once(KEPT)
def verdict(history: History, task: Task) -> str:
    """Two sentences on what happened in a run that has ended; `outcome` is the word before them."""
    step, norm = peak(history)
    gradient = f"Largest gradient norm {norm:.4g} at step {step}." if step else "No step had a finite gradient."
    if history.diverged_at:
        return f"{divergence(history)} {gradient}"
    loss, steps = end(history)
    over = f"mean of the last {steps} steps" if steps > 1 else "of the only step"
    return f"Loss {loss:.4g}, {over} (guessing: {task.guessing:.3f}). {gradient}"


def divergence(history: History) -> str:
    """What stopped being a finite number. Infinite means beyond float32: the number that would be exact may be finite."""
    last = {"loss": history["loss"][-1], "gradient norm": history["gradient_norm"][-1]}
    beyond = " and ".join(name for name, value in last.items() if np.isinf(value))
    undefined = " and ".join(name for name, value in last.items() if np.isnan(value))
    clauses = [f"{names} {what}" for names, what in ((beyond, "left the range of float32"), (undefined, "became NaN")) if names]
    sentence = f"{' and '.join(clauses)} at step {history.diverged_at}."
    return sentence[0].upper() + sentence[1:]
