"""What a compiled chunk of steps takes from the host: the batches of the run's task, and the rates.

Shapes, besides the model's: C steps of a chunk.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from core.data_tasks import TASKS, Batch
from core.runs.config import RunConfig

CHUNK = 64  # C: the most steps that one call of a program can run, and record


class Feed(NamedTuple):
    """Of a chunk of steps, or, without the leading axis, of one."""

    tokens_cbt: Any
    targets_cbt: Any
    counted_cbt: Any  # whether a position's prediction counts
    count_c: Any  # how many count in the step's whole batch
    rate_c: Any


SHARDS = Feed(P(None, "batch"), P(None, "batch"), P(None, "batch"), P(), P())  # how it is parted among devices


def batches(config: RunConfig) -> Iterator[Batch]:
    """A run's, step by step."""
    return TASKS[config.task].batches(config.seed, config.batch, config.length)


def next_feed(source: Iterator[Batch], rate_c: np.ndarray) -> Feed:
    """The next steps of `batches`, as many as there are rates."""
    tokens_cbt, targets_cbt, counted_cbt = (pad(np.stack(part)) for part in zip(*islice(source, len(rate_c)), strict=True))
    count_c = counted_cbt.sum(axis=(1, 2), dtype=np.float32)
    return Feed(tokens_cbt, targets_cbt, counted_cbt, count_c, pad(rate_c.astype(np.float32)))


def pad(rows: np.ndarray) -> np.ndarray:
    """To CHUNK rows."""
    return np.pad(rows, [(0, CHUNK - len(rows)), *[(0, 0)] * (rows.ndim - 1)])


def abstract_feed(config: RunConfig) -> Feed:
    """Its shapes and types."""

    def array(dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((CHUNK, *shape), dtype)

    shape = config.batch, config.length
    return Feed(array(jnp.int32, *shape), array(jnp.int32, *shape), array(bool, *shape), array(jnp.float32), array(jnp.float32))
