"""The tasks that runs are trained on: a new one is one entry of TASKS.

A task draws a run's batches on the host, one after the other from one generator. The compiled programs take them as arguments, so a new
task of the same vocabulary compiles nothing.
Glossary of shapes: B sequences of a batch, T tokens of a sequence.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

VOCABULARY = 64  # V, of the tasks below
DELAY = 8  # of the copy, in positions
SEED_OFFSET = 116  # the article's: its data are drawn by another generator than its parameters


class Batch(NamedTuple):
    tokens_bt: np.ndarray  # int32: what the model reads
    targets_bt: np.ndarray  # int32: what it is to predict at each position
    counted_bt: np.ndarray  # bool: the positions whose predictions count in the loss


@dataclass(frozen=True, slots=True)
class Task:
    name: str  # the stable identifier, in addresses, files and commands
    title: str
    summary: str  # one sentence for somebody who chooses
    vocabulary: int  # V
    draw: Callable[[np.random.Generator, int, int], Batch]  # (generator, B, T) to the next batch
    guessing: float  # nats per counted token: the loss of a model that has learned nothing
    best: float  # nats per counted token: the least loss that any model can reach
    least_length: int = 1  # shorter sequences have no position that counts

    def batches(self, seed: int, batch: int, length: int) -> Iterator[Batch]:
        """A run's batches, step by step, without end. Raises ValueError where the task draws one in which no position counts."""
        random = np.random.default_rng(seed + SEED_OFFSET)
        while True:
            drawn = self.draw(random, batch, length)
            if not drawn.counted_bt.any():
                raise ValueError(f"The task {self.name} drew a batch in which no position counts.")
            yield drawn


def progression(random: np.random.Generator, batch: int, length: int) -> Batch:
    """The article's: from a random start upward modulo V; the target is the next token."""
    upward_bu = (random.integers(0, VOCABULARY, (batch, 1)) + np.arange(length + 1)) % VOCABULARY
    tokens_bt, targets_bt = upward_bu[:, :-1].astype(np.int32), upward_bu[:, 1:].astype(np.int32)
    return Batch(tokens_bt, targets_bt, np.ones((batch, length), bool))


def delayed_copy(random: np.random.Generator, batch: int, length: int) -> Batch:
    """Random tokens; the target is the token DELAY positions before, where there is one."""
    tokens_bt = random.integers(0, VOCABULARY, (batch, length)).astype(np.int32)
    targets_bt, counted_bt = np.zeros_like(tokens_bt), np.zeros((batch, length), bool)
    targets_bt[:, DELAY:], counted_bt[:, DELAY:] = tokens_bt[:, :-DELAY], True
    return Batch(tokens_bt, targets_bt, counted_bt)


TASKS: dict[str, Task] = {
    task.name: task
    for task in [
        Task(
            name="progression",
            title="Progression",
            summary="each sequence counts upward from a random token, and the model predicts the next one. It is the article's task.",
            vocabulary=VOCABULARY,
            draw=progression,
            guessing=math.log(VOCABULARY),
            best=0.0,
        ),
        Task(
            name="copy",
            title="Delayed copy",
            summary=f"each sequence is random, and the model repeats the token that it read {DELAY} positions before.",
            vocabulary=VOCABULARY,
            draw=delayed_copy,
            guessing=math.log(VOCABULARY),
            best=0.0,
            least_length=DELAY + 1,
        ),
    ]
}
