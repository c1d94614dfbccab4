"""Runs of one shape and structure, trained together: one compiled program, whose devices share the runs out among themselves.

Learning rate, warmup, seed and the placement's scales and gains differ from run to run; changing them compiles nothing.
Glossary of shapes, besides the model's: R runs, P places for a run in the program, C steps of a chunk.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from core.engine.block import Scales
from core.engine.compilation import PROGRAMS
from core.engine.devices import DeviceKind, devices, even_share
from core.engine.feed import Feed, batches, next_feed
from core.engine.model import KEPT_BYTES, Measured, dense_bytes
from core.engine.pins import pinned
from core.engine.training import (
    SPECS,
    Numbers,
    Program,
    State,
    abstract_arguments,
    affordable_steps,
    as_history,
    begin,
    build,
    on_mesh,
    run_chunk,
)
from core.placement.design import placement_of
from core.placement.record import Stack
from core.runs.config import SETTINGS, RunConfig, program_shape
from core.runs.history import History
from core.runs.schedule import learning_rate_s
from core.runs.settings import ConfigError
from core.values import plain_text

# In what runs of a group may differ: their number of steps decides the program's calls, clipping the program.
OWN = ["placement", "task", *(name for name, setting in SETTINGS.items() if setting.traced and name not in ("steps", "gradient_clip"))]
# Here a device computes one run after the other: one fills a core, whose caches do not hold several (docs/performance.md).
# Elsewhere it computes many at once: at these shapes a GPU spends its time on launches.
ONE_BY_ONE = {"cpu"}
BY_RUN = jax.tree.map(lambda spec: P("run", *spec), SPECS, is_leaf=lambda spec: isinstance(spec, P))


@dataclass(frozen=True, slots=True)
class Group(Program):
    """The program of `core.engine.training` with a leading axis of P runs on all that it takes and returns."""

    places: int  # slots for runs; unused ones idle


@pinned()
def compile_group(configs: Sequence[RunConfig], device: DeviceKind = "auto", device_count: int | None = None) -> Group:
    """The compiled program for these runs, which also serves any group of the same shape and structure with at most as many runs; cached.

    Where there are more devices than runs, several split the batches of one. Raises ConfigError where the runs cannot be trained together,
    DeviceError where the device is not there.
    """
    shape, stack = in_common(configs)
    among = devices(device)[:device_count]
    rows = min(len(configs), len(among))
    columns = len(even_share(among[: len(among) // rows], shape.batch))
    on = among[: rows * columns]
    share = math.ceil(len(configs) / rows)
    at_once = 1 if on[0].platform in ONE_BY_ONE else runs_at_once(shape, share, columns)
    places = rows * at_once * math.ceil(share / at_once)
    return compile_group_shape(shape, stack, tuple(on), rows, places, at_once)


def in_common(configs: Sequence[RunConfig]) -> tuple[RunConfig, Stack]:
    """The shape and the structure of all these runs. Raises ConfigError where they have not one."""
    if not configs:
        raise ConfigError("A group has no runs; it needs at least one.")
    first, *others = configs
    stack = placement_of(first.placement).stack(first.layers)
    for other in others:
        for name, value in first.to_dict().items():
            if name not in OWN and getattr(other, name) != value:
                raise ConfigError(
                    f"{name} is {plain_text(value)} in one run and {plain_text(getattr(other, name))} in another; "
                    f"runs that are trained together may differ in {', '.join(OWN[:-1])} and {OWN[-1]} only."
                )
        if other.vocabulary != first.vocabulary:
            raise ConfigError(
                f"task is {first.task} in one run and {other.task} in another; "
                "runs that are trained together must have tasks of one vocabulary."
            )
        if placement_of(other.placement).stack(other.layers) != stack:
            raise ConfigError(
                f"placement is {first.placement} in one run and {other.placement} in another; "
                "runs that are trained together may differ in their placements' scales, not in where the norms are."
            )
    return program_shape(first), stack


def runs_at_once(shape: RunConfig, share: int, columns: int) -> int:
    """How many of a device's runs it computes at once: equal parts of them, which keep no more than KEPT_BYTES for the backward pass."""
    stream_size = shape.layers * shape.batch * shape.length * shape.width // columns
    return math.ceil(share / math.ceil(share / max(KEPT_BYTES // dense_bytes(stream_size), 1)))


@lru_cache(maxsize=PROGRAMS)
def compile_group_shape(shape: RunConfig, stack: Stack, on: tuple[jax.Device, ...], rows: int, places: int, at_once: int) -> Group:
    mesh = Mesh(np.array(on).reshape(rows, -1), ("run", "batch"))
    arguments = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((places, *leaf.shape), leaf.dtype), abstract_arguments(shape, stack))
    chunks = partial(run_chunks, config=shape, stack=stack, at_once=at_once)
    return Group(*build(chunks, mesh, BY_RUN, P("run"), arguments), shape, stack, places)


def run_chunks(
    state: State,
    scales: list[Scales],
    numbers: Numbers,
    feed: Feed,
    count_p: jax.Array,
    config: RunConfig,
    stack: Stack,
    at_once: int,
) -> tuple[State, Measured, jax.Array]:
    """`run_chunk` for this device's runs, `at_once` of them in a turn. Each stops by itself; a run with count 0 is returned unchanged."""
    run = partial(run_chunk, config=config, stack=stack)
    # A vectorized loop runs on until the last of its runs ends and masks the others, so a turn of one is better without it.
    batch_size = at_once if at_once > 1 else None
    return jax.lax.map(lambda arguments: run(*arguments), (state, scales, numbers, feed, count_p), batch_size=batch_size)


@pinned()
def train_together(configs: Sequence[RunConfig], group: Group) -> Iterator[list[History]]:
    """The runs' histories, chunk by chunk as they are computed: a list with an entry for each run, empty once that has diverged.

    All is set up when this returns. Raises ConfigError where the runs cannot be trained together, ValueError where they are too
    many or of another shape than the group's.
    """
    in_common(configs)
    group.check(configs[0])
    if len(configs) > group.places:
        raise ValueError(f"The group has {len(configs)} runs; its program was compiled for {group.places}.")
    # Runs are dealt out like cards, so that neighbours, alike in rate and so in when they diverge, are on different devices.
    run_p = np.arange(group.places).reshape(-1, group.mesh.shape["run"]).T.ravel()
    runs = len(configs)
    begun = [begin(config) for config in configs]
    state, *constants = jax.device_put(stack_trees([begun[run % runs] for run in run_p]), NamedSharding(group.mesh, P("run")))
    return train_chunks(configs, group, run_p, state, constants)


def train_chunks(
    configs: Sequence[RunConfig], group: Group, run_p: np.ndarray, state: State, constants: list[Any]
) -> Iterator[list[History]]:
    """`constants` are the scales and the numbers of all runs."""
    *_, feed_shards, count_shards = on_mesh(group.mesh, BY_RUN)
    runs, steps = len(configs), configs[0].steps
    place_r = np.argsort(run_p)[:runs]
    source_r, rate_rs = [batches(config) for config in configs], [learning_rate_s(config) for config in configs]
    step, count, going_r = 0, 1, np.ones(runs, bool)
    while step < steps and going_r.any():
        started = time.perf_counter()
        count = min(count, steps - step)
        feed_r = [next_feed(source, rate_s[step : step + count]) for source, rate_s in zip(source_r, rate_rs, strict=True)]
        count_p = np.zeros(group.places, np.int32)
        count_p[place_r] = np.where(going_r, count, 0)
        with pinned():
            seated = jax.device_put((stack_trees([feed_r[run % runs] for run in run_p]), count_p), (feed_shards, count_shards))
            state, records, done_p = group.run_chunk(state, *constants, *seated)
            records, done_p = jax.device_get((records, done_p))
        rows_r = [jax.tree.map(lambda rows, place=place: rows[place], records) for place in place_r]
        chunk = [as_history(rows, done_p[place], rate_s[step:]) for rows, place, rate_s in zip(rows_r, place_r, rate_rs, strict=True)]
        yield chunk
        step += count
        going_r &= np.array([history.diverged_at is None for history in chunk])
        count = affordable_steps(
            (time.perf_counter() - started) / count / runs
        )  # a call that does a few steps of each run is worth its while


def stack_trees(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
