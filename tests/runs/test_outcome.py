import math
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from made_run import made_history

from core.data_tasks import TASKS
from core.runs.history import History
from core.runs.outcome import RULE, Outcome, end, outcome, verdict

TASK = TASKS["progression"]
GUESSING = TASK.guessing
LAYERS = 3


def made(steps: int) -> History:
    """A history of any numbers, in the shapes and types that training gives."""
    return made_history(partial(np.random.default_rng(7).gamma, 1.0, 1.0), steps, LAYERS)


def with_loss(loss_s: np.ndarray) -> History:
    return made(len(loss_s)).replace(loss=loss_s)


STEPS = 180
PART_S = np.linspace(0, 1, STEPS)
NOISE_S = np.random.default_rng(0).normal(0, 0.02, STEPS)
SPIKE_S = np.where(np.arange(STEPS) == STEPS - 4, 1.0, 0.0)
CURVES = {  # of a run of STEPS: what a careful reader of each would say
    "learned": {
        "at once": GUESSING * np.exp(-6 * PART_S) + abs(NOISE_S),
        "but for one bad batch near its end": 0.01 + 4 * SPIKE_S,
        "after a rise": np.where(PART_S < 0.2, 20.0, 4 * np.exp(-10 * PART_S)),
    },
    "still learning": {
        "fast": GUESSING - 2.5 * PART_S + NOISE_S,
        "slowly": GUESSING - 0.4 * PART_S + NOISE_S,
        "after a long time at guessing": GUESSING - 3 * np.maximum(PART_S - 0.8, 0) / 0.2 + NOISE_S,
        "again, after it had lost it": np.where(PART_S < 0.5, 1.0, 5.2 - 2.5 * PART_S) + NOISE_S,
    },
    "plateau": {
        "at 1.0": np.full(STEPS, 1.0) + NOISE_S,
        "reached soon": 1 + (GUESSING - 1) * np.exp(-20 * PART_S) + NOISE_S,
        "a little below guessing": np.minimum(GUESSING, 3.3 + 0.5 * np.exp(-20 * PART_S)) + NOISE_S,
        "that scatters": 3 + 10 * NOISE_S,
        "a little above its best": 1 + 0.5 * PART_S + NOISE_S,
    },
    "stuck": {
        "from the start": GUESSING + NOISE_S,
        "above guessing by less than a tenth": 1.05 * GUESSING + NOISE_S,
        "but for one lucky batch at its end": np.where(np.arange(STEPS) == STEPS - 1, 0.01, GUESSING),
        "and sinking by less than it scatters": GUESSING - 0.1 * PART_S + 0.1 * np.resize([1, -1], STEPS),
        "after a small dip": GUESSING - 0.8 * np.exp(-(((PART_S - 0.4) / 0.1) ** 2)) + NOISE_S,
    },
    "worse than guessing": {
        "rising from 251 to 591 nats": 251 + 340 * PART_S,
        "flat at 42.7 nats": 42.7 + NOISE_S,
        "falling from 251 to 42.7 nats": 251 - 208.3 * PART_S,
    },
    "lost it": {
        "from 0.01 back to guessing": np.where(PART_S < 0.5, 0.01, 4.16) + abs(NOISE_S),
        "from 1.0 up to 2.4": 1 + 1.4 * np.maximum(PART_S - 0.4, 0) / 0.6 + NOISE_S,
        "from 0.01 up to 20 nats": np.where(PART_S < 0.5, 0.01, 20.0) + abs(NOISE_S),
    },
    "diverged": {"from a good loss": np.where(PART_S < 1, GUESSING - 3 * PART_S, np.nan)},
}


@pytest.mark.parametrize(("word", "how"), [(word, how) for word, kinds in CURVES.items() for how in kinds])
def test_the_outcome_is_what_a_careful_reader_of_the_curve_would_say(word: str, how: str) -> None:
    assert outcome(with_loss(CURVES[word][how]), TASK) == word


def test_a_line_of_a_short_run_is_through_ten_steps_as_the_rule_says() -> None:
    loss_s = np.array([4.2] * 10 + [4.14, 4.1, 4.12, 4.06, 4.04, 3.98, 3.99, 3.99, 3.99, 3.99])
    assert outcome(with_loss(loss_s), TASK) == "still learning"
    assert outcome(with_loss(loss_s[-6:]), TASK) == "stuck", "a third alone would not show it"
    assert "third of the steps, 10 at least" in RULE


def test_every_outcome_has_its_curves_and_is_in_the_rule() -> None:
    assert set(CURVES) == set(get_args(Outcome))
    for word in CURVES:
        assert f"**{word}**" in RULE


@given(loss=st.floats(0.0, 1e6), steps=st.integers(1, 60), scatter=st.floats(0.0, 0.01))
def test_a_flat_run_is_never_falling_and_is_judged_by_its_level(loss: float, steps: int, scatter: float) -> None:
    loss_s = loss * (1 + scatter * np.random.default_rng(steps).uniform(-1, 1, steps))
    assume(all(abs(loss_s.mean() / GUESSING - bound) > 0.02 for bound in (0.1, 0.9, 1.1)))
    levels = [(0.1, "learned"), (0.9, "plateau"), (1.1, "stuck"), (math.inf, "worse than guessing")]
    assert outcome(with_loss(loss_s), TASK) == next(word for bound, word in levels if loss_s.mean() / GUESSING < bound)


@given(st.lists(st.floats(0.0, 300.0), min_size=1, max_size=60), st.floats(0.5, 2.0), st.floats(0.0, 3.0))
def test_the_outcome_is_the_same_whatever_the_unit_and_the_least_loss_of_the_task(losses: list[float], unit: float, best: float) -> None:
    other = replace(TASK, guessing=unit * GUESSING + best, best=best)
    words = {outcome(with_loss(loss_s), task) for loss_s, task in ((np.array(losses), TASK), (unit * np.array(losses) + best, other))}
    event(words.copy().pop())
    assert len(words) == 1


def test_no_single_batch_makes_a_short_run_learned() -> None:
    assert outcome(with_loss(np.array([GUESSING] * 11 + [0.01])), TASK) == "stuck"


def test_a_run_whose_gradient_alone_is_not_finite_has_diverged() -> None:
    history = with_loss(CURVES["learned"]["at once"])
    assert outcome(history.replace(gradient_norm=np.append(np.ones(STEPS - 1), np.inf)), TASK) == "diverged"


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("loss", [0.01, 2.0, GUESSING, math.inf, math.nan])
def test_short_runs_have_an_outcome_and_a_verdict(steps: int, loss: float) -> None:
    history = with_loss(np.full(steps, loss))
    expected = {0.01: "learned", 2.0: "plateau", GUESSING: "stuck"}.get(loss, "diverged")
    assert outcome(history, TASK) == expected
    assert verdict(history, TASK).endswith(".")


def test_the_loss_that_is_judged_is_the_mean_over_the_last_tenth_of_the_steps() -> None:
    loss_s = np.random.default_rng(0).uniform(1, 2, 240)
    assert end(with_loss(loss_s)) == (pytest.approx(loss_s[-24:].mean()), 24)
    assert end(with_loss(loss_s[:40])) == (pytest.approx(loss_s[30:40].mean()), 10)
    assert end(with_loss(loss_s[:3])) == (pytest.approx(loss_s[:3].mean()), 3)


def test_a_verdict_names_the_loss_that_is_judged_and_the_largest_finite_gradient_norm_with_its_step() -> None:
    history = made(4).replace(loss=np.array([4.0, 3.0, 2.0, 1.0]), gradient_norm=np.array([1.0, 7.5, 2.0, 3.0]))
    assert verdict(history, TASK) == "Loss 2.5, mean of the last 4 steps (guessing: 4.159). Largest gradient norm 7.5 at step 2."
    one = made(1).replace(loss=np.array([4.0]), gradient_norm=np.array([1.0]))
    assert verdict(one, TASK) == "Loss 4, of the only step (guessing: 4.159). Largest gradient norm 1 at step 1."


@pytest.mark.parametrize(
    ("loss", "norm", "sentence"),
    [
        (2.0, math.inf, "Gradient norm left the range of float32 at step 4."),
        (math.inf, math.inf, "Loss and gradient norm left the range of float32 at step 4."),
        (math.nan, math.nan, "Loss and gradient norm became NaN at step 4."),
        (math.inf, math.nan, "Loss left the range of float32 and gradient norm became NaN at step 4."),
        (math.nan, math.inf, "Gradient norm left the range of float32 and loss became NaN at step 4."),
    ],
)
def test_a_verdict_tells_what_is_beyond_float32_from_what_is_no_number(loss: float, norm: float, sentence: str) -> None:
    history = made(4).replace(loss=np.array([4.0, 3.0, 2.0, loss]), gradient_norm=np.array([1.0, 7.5, 2.0, norm]))
    assert verdict(history, TASK) == f"{sentence} Largest gradient norm 7.5 at step 2."


def test_a_verdict_on_a_run_that_began_with_no_number() -> None:
    history = made(1).replace(loss=np.array([np.nan]), gradient_norm=np.array([np.nan]))
    assert verdict(history, TASK) == "Loss and gradient norm became NaN at step 1. No step had a finite gradient."
