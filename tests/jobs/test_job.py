"""What one submission takes in from its task."""

import math

import numpy as np
import pytest
from made_run import made_history

from core.jobs import job
from core.jobs.job import Job
from core.jobs.worker import to_stream
from core.runs.config import RunConfig
from core.runs.history import History


@pytest.fixture
def submitted() -> Job:
    config = RunConfig(layers=2, steps=10)
    return Job(config, attempt=0, expected=math.nan, history=History.empty(config.layers))


def message(steps: int, first: int = 1, seconds: float = 0.0) -> dict[str, object]:
    """An event that tells of the steps from `first` to `steps`; a step's loss is its number."""
    loss_s = np.arange(first, steps + 1, dtype=np.float32)
    history = made_history(np.ones, len(loss_s), 2).replace(loss=loss_s)
    return {"key": "", "phase": "training", "rows": to_stream(history), "steps": steps, "seconds": seconds}


def test_chunks_are_put_together(submitted: Job) -> None:
    for phase in ("compiling", "training"):
        submitted.hear({"key": "", "phase": phase})
        assert submitted.phase == phase
    for first, last in ((1, 1), (2, 4), (5, 9)):
        submitted.hear(message(last, first))
    np.testing.assert_array_equal(submitted.history["loss"], np.arange(1, 10))


@pytest.mark.parametrize("other", [message(4, 4), message(1), message(2)])
def test_a_chunk_that_does_not_follow_is_left_out(submitted: Job, other: dict[str, object]) -> None:
    submitted.hear(message(2))
    submitted.hear(other)
    np.testing.assert_array_equal(submitted.history["loss"], [1, 2])


def test_what_is_left_follows_from_the_steps_after_the_first_ones(submitted: Job) -> None:
    assert math.isnan(submitted.seconds_left)
    submitted.hear(message(1, seconds=100.0))  # the first call of a program takes longer than any other
    assert math.isnan(submitted.seconds_left)
    submitted.hear(message(4, 2, seconds=106.0))
    assert submitted.seconds_left == 6 * 2.0
    submitted.hear(message(10, 5, seconds=118.0))
    assert submitted.seconds_left == 0


def test_a_lost_worker_is_told_and_the_next_one_begins_at_the_first_step(submitted: Job) -> None:
    submitted.lose_worker()
    assert submitted.sentence == ""  # nothing was lost: it had not begun
    submitted.hear(message(3, seconds=3.0))
    submitted.lose_worker()
    assert submitted.phase == "waiting"
    assert submitted.sentence == "Its worker was lost; another one will compute it from the first step."
    assert len(submitted.history) == 0
    submitted.hear(message(2, seconds=50.0))
    np.testing.assert_array_equal(submitted.history["loss"], [1, 2])
    assert math.isnan(submitted.seconds_left)


def test_it_is_abandoned_when_all_who_watch_have_cancelled(submitted: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(job, "monotonic", lambda: now)
    submitted.join("ann")
    submitted.join("bob")
    now = 100.0
    assert not submitted.abandoned(4)  # nobody has cancelled: it goes on without viewers
    submitted.watch("bob")
    submitted.left.add("ann")
    assert not submitted.abandoned(4)
    submitted.watch("ann")
    submitted.left.add("bob")
    assert submitted.abandoned(4)
    submitted.join("ann")
    assert not submitted.abandoned(4)
