import math
from functools import partial

import numpy as np
import pytest
from made_run import made_history

from core.data_tasks import TASKS
from core.runs.history import History
from core.runs.outcome import outcome, verdict

TASK = TASKS["progression"]
GUESSING = TASK.guessing
LAYERS = 3


def made(steps: int) -> History:
    """A history of any numbers, in the shapes and types that training gives."""
    return made_history(partial(np.random.default_rng(7).gamma, 1.0, 1.0), steps, LAYERS)


def with_loss(loss_s: np.ndarray) -> History:
    return made(len(loss_s)).replace(loss=loss_s)


def curves() -> dict[str, np.ndarray]:
    part_s = np.linspace(0, 1, 100)
    noise_s = np.random.default_rng(0).normal(0, 0.02, 100)
    return {
        "learned": GUESSING * np.exp(-6 * part_s) + abs(noise_s),
        "still learning": GUESSING - 2.5 * part_s + noise_s,
        "still learning, slowly": GUESSING - 0.4 * part_s + noise_s,
        "stuck": GUESSING + noise_s,
        "stuck after a start": GUESSING - 0.4 * np.minimum(part_s / 0.2, 1) + 5 * noise_s,
        "stuck, sinking less than it scatters": GUESSING - 0.1 * part_s + 0.1 * np.resize([1, -1], 100),
        "stuck above": GUESSING + 3 * part_s,
        "diverged": np.where(part_s < 1, GUESSING - part_s, np.nan),
    }


@pytest.mark.parametrize("name", curves())
def test_the_outcome_is_what_a_reader_of_the_curve_would_say(name: str) -> None:
    assert name.startswith(outcome(with_loss(curves()[name]), TASK))


def test_a_run_whose_gradient_alone_is_not_finite_has_diverged() -> None:
    history = with_loss(curves()["learned"]).replace(gradient_norm=np.append(np.ones(99), np.inf))
    assert outcome(history, TASK) == "diverged"


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("loss", [0.01, 2.0, GUESSING, math.inf, math.nan])
def test_short_runs_have_an_outcome_and_a_verdict(steps: int, loss: float) -> None:
    history = with_loss(np.full(steps, loss))
    expected = {0.01: "learned", 2.0: "still learning", GUESSING: "stuck"}.get(loss, "diverged")
    assert outcome(history, TASK) == expected
    assert verdict(history, TASK).endswith(".")


def test_a_verdict_names_the_largest_finite_gradient_norm_and_its_step() -> None:
    history = made(4).replace(loss=np.array([4.0, 3.0, 2.0, 1.25]), gradient_norm=np.array([1.0, 7.5, 2.0, 3.0]))
    assert verdict(history, TASK) == "Final loss 1.25 (random guessing: 4.159). Largest gradient norm 7.5 at step 2."
    history = history.replace(gradient_norm=np.array([1.0, 7.5, 2.0, np.inf]))
    assert verdict(history, TASK) == "Loss or gradient became infinite or NaN at step 4. Largest gradient norm 7.5 at step 2."


def test_a_verdict_on_a_run_that_began_with_no_number() -> None:
    history = made(1).replace(loss=np.array([np.nan]), gradient_norm=np.array([np.nan]))
    assert verdict(history, TASK) == "Loss or gradient became infinite or NaN at step 1. No step had a finite gradient."
