"""Every task of the table, from its record."""

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data_tasks import DELAY, SEED_OFFSET, TASKS, Batch, Task
from core.runs.config import RunConfig
from core.runs.settings import ConfigError
from core.state.address import read_run

ALL = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def first(task: Task, count: int, seed: int = 7, batch: int = 4, length: int = 32) -> list[Batch]:
    return list(islice(task.batches(seed, batch, length), count))


@ALL
@given(seed=st.integers(0, 2**31 - 1), batch=st.integers(1, 20), more=st.integers(0, 40))
def test_batches_are_tokens_of_the_vocabulary_with_something_to_predict(task: Task, seed: int, batch: int, more: int) -> None:
    length = task.least_length + more
    [one] = first(task, 1, seed, batch, length)
    assert {part.shape for part in one} == {(batch, length)}
    assert (one.tokens_bt.dtype, one.targets_bt.dtype, one.counted_bt.dtype) == (np.int32, np.int32, bool)
    for part in (one.tokens_bt, one.targets_bt):
        assert part.min() >= 0
        assert part.max() < task.vocabulary
    assert one.counted_bt.any(axis=1).all()


@ALL
def test_a_seed_decides_every_batch_and_no_two_are_alike(task: Task) -> None:
    for one, again in zip(first(task, 5), first(task, 5), strict=True):
        np.testing.assert_array_equal(one.tokens_bt, again.tokens_bt)
    assert all((one.tokens_bt != other.tokens_bt).any() for one, other in pairwise(first(task, 5)))
    assert (first(task, 1)[0].tokens_bt != first(task, 1, seed=8)[0].tokens_bt).any()


@ALL
def test_guessing_costs_what_the_uniform_distribution_costs_and_more_than_the_best(task: Task) -> None:
    assert task.guessing == pytest.approx(np.log(task.vocabulary))
    assert 0 <= task.best < task.guessing


@ALL
def test_what_counts_can_be_predicted_from_what_was_read(task: Task) -> None:
    """Its best loss is 0: wherever the tokens up to a position are the same, so is its target."""
    assert task.best == 0
    targets: dict[tuple[int, ...], int] = {}
    for batch in first(task, 40, batch=16, length=task.least_length + 3):
        for tokens_t, targets_t, counted_t in zip(*batch, strict=True):
            for position in np.flatnonzero(counted_t):
                read = tuple(int(token) for token in tokens_t[: position + 1])
                assert targets.setdefault(read, int(targets_t[position])) == targets_t[position]


def test_the_progression_is_the_articles() -> None:
    """Its program draws one start for each sequence of each step from NumPy's default generator, seeded with 116 more than the run."""
    start_sb1 = np.random.default_rng(7 + SEED_OFFSET).integers(0, 64, (180, 24, 1))
    for start_b1, batch in zip(start_sb1, first(TASKS["progression"], 180, batch=24), strict=True):
        np.testing.assert_array_equal(batch.tokens_bt, (start_b1 + np.arange(32)) % 64)
        np.testing.assert_array_equal(batch.targets_bt, (batch.tokens_bt + 1) % 64)
        assert batch.counted_bt.all()


def test_a_copy_is_of_the_token_that_was_read_a_delay_before() -> None:
    [batch] = first(TASKS["copy"], 1)
    np.testing.assert_array_equal(batch.targets_bt[:, DELAY:], batch.tokens_bt[:, :-DELAY])
    np.testing.assert_array_equal(batch.counted_bt, np.broadcast_to(np.arange(32) >= DELAY, (4, 32)))


def test_a_copy_needs_more_tokens_than_its_delay() -> None:
    with pytest.raises(ConfigError, match=r"^length is 8; the task copy needs at least 9\.$"):
        RunConfig(task="copy", length=8)
    assert read_run("pre~length-8~task-copy")[1] == ["length is 8; the task copy needs at least 9. 9 is used."]
    assert RunConfig(task="copy").key != RunConfig().key


def test_a_batch_in_which_nothing_counts_is_refused() -> None:
    idle = replace(TASKS["progression"], draw=lambda *_: Batch(*np.zeros((2, 1, 1), np.int32), np.zeros((1, 1), bool)))
    with pytest.raises(ValueError, match="no position counts"):
        next(idle.batches(7, 1, 1))
