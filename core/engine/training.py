"""The training loop: one compiled program runs a chunk of optimizer steps and records everything that is measured.

What differs between runs of one shape - rate, warmup, seed, number of steps, the placement's scales - enters as arguments, so changing
it compiles nothing.
"""

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from core.engine.block import Scales
from core.engine.compilation import PROGRAMS
from core.engine.data import sequences, start_tokens_sb
from core.engine.devices import DeviceKind, devices, divided
from core.engine.initialization import initial_parameters
from core.engine.jacobian import singular_values
from core.engine.model import Streams, forward, taps
from core.engine.parameters import Packed, packed, parameter_shapes, unpacked
from core.machine import matrix_gflops
from core.placement.design import placement_of
from core.placement.record import Stack
from core.runs.config import RunConfig, untraced
from core.runs.file import Facts, Run
from core.runs.history import History
from core.runs.schedule import learning_rate_s

CHUNK = 64  # steps: the most that one call of a program can run, and record
CHUNK_SECONDS = 0.25  # what a call aims at, so that progress shows and a cancel is heard

# LLVM's higher levels take longer here and make slower code (docs/performance.md).
COMPILER_OPTIONS = {"cpu": {"xla_backend_optimization_level": 1}}

# Adam, then decoupled weight decay; both are multiplied by the rate of the step.
OPTIMIZER = optax.chain(optax.scale_by_adam(b1=0.9, b2=0.95), optax.add_decayed_weights(0.01))


class State(NamedTuple):
    parameters: Packed
    optimizer: Any


class Record(NamedTuple):
    """What one step measures; of a chunk, the same with a leading axis of CHUNK."""

    loss: jax.Array
    gradient_norm: jax.Array
    block_gradient_norm_l: jax.Array
    signal_l22: jax.Array  # L2 norm of the loss's gradient that arrives at each of `core.engine.model.taps`
    streams: Streams


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled chunk: (state, scales, start tokens, rates, how many steps) to (state, records, steps done)."""

    run_chunk: Any
    mesh: Mesh
    compile_seconds: float


def train_step(
    state: State, start_b: jax.Array, rate: jax.Array, scales: list[Scales], config: RunConfig, stack: Stack
) -> tuple[State, Record]:
    """One optimizer update on this device's part of the batch; gradients and measures are averaged over the devices."""
    tokens_bt, targets_bt = sequences(start_b, config.length)

    def loss_of(parameters: Packed, taps: list[jax.Array]) -> tuple[jax.Array, Streams]:
        logits_nv, streams = forward(parameters, tokens_bt, config, stack, scales, taps)
        return optax.softmax_cross_entropy_with_integer_labels(logits_nv, targets_bt.ravel()).mean(), streams

    local = jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True)(state.parameters, taps(stack))
    (loss, streams), (gradient, power) = jax.lax.pmean(local, "batch")
    updates, optimizer = OPTIMIZER.update(gradient, state.optimizer, state.parameters)
    parameters = jax.tree.map(lambda parameter, update: parameter - rate * update, state.parameters, updates)
    block_norms_l = jnp.concatenate([jnp.linalg.norm(rows_lp, axis=-1) for rows_lp in gradient.segments])
    gradient_norm = optax.tree.norm((gradient.rest_p, block_norms_l))
    signal_l22 = jnp.sqrt(jnp.concatenate(power) / jax.lax.axis_size("batch"))  # each device's loss is a mean over its own part
    return State(parameters, optimizer), Record(loss, gradient_norm, block_norms_l, signal_l22, streams)


def run_chunk(
    state: State,
    scales: list[Scales],
    start_cb: jax.Array,
    rate_c: jax.Array,
    count: jax.Array,
    config: RunConfig,
    stack: Stack,
) -> tuple[State, Record, jax.Array]:
    """`count` steps, fewer where loss or gradient norm stops being finite."""
    layers = config.layers
    scalar_c, layer_cl, signal_cl22, stream_cl = (jnp.zeros((CHUNK, *shape)) for shape in ((), (layers,), (layers, 2, 2), (layers + 1,)))
    empty = Record(scalar_c, scalar_c, layer_cl, signal_cl22, Streams(stream_cl, layer_cl))

    def unfinished(carry: Any) -> jax.Array:
        done, finite, *_ = carry
        return (done < count) & finite

    def advance(carry: Any) -> Any:
        done, _, state, records = carry
        state, record = train_step(state, start_cb[done], rate_c[done], scales, config, stack)
        records = jax.tree.map(lambda rows, row: rows.at[done].set(row), records, record)
        return done + 1, jnp.isfinite(record.loss) & jnp.isfinite(record.gradient_norm), state, records

    done, _, state, records = jax.lax.while_loop(unfinished, advance, (jnp.int32(0), True, state, empty))
    return state, records, done


def compile_program(config: RunConfig, device: DeviceKind = "auto", device_count: int | None = None) -> Program:
    """The compiled program for a run; cached for all runs of the same shape and structure.

    Raises DeviceError where the device is not there.
    """
    on = divided(devices(device), config.batch)
    return compiled(untraced(config), placement_of(config.placement).stack(config.layers), tuple(on[:device_count]))


@lru_cache(maxsize=PROGRAMS)
def compiled(shape: RunConfig, stack: Stack, on: tuple[jax.Device, ...]) -> Program:
    """`shape` is an `untraced` configuration."""
    mesh = Mesh(np.array(on), "batch")
    specs = (P(), P(), P(None, "batch"), P(), P())
    return built(partial(run_chunk, config=shape, stack=stack), mesh, specs, P(), abstract_arguments(shape, stack))


def built(chunk: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, arguments: tuple[Any, ...]) -> Program:
    """The program that runs `chunk` on every device of the mesh, each with its shard of the arguments."""
    started = time.perf_counter()
    # `train_step` averages the gradients itself, once, not per parameter and block
    sharded = jax.shard_map(chunk, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    options = COMPILER_OPTIONS.get(mesh.devices.flat[0].platform)
    shards = tuple(NamedSharding(mesh, spec) for spec in in_specs)  # said, since XLA would replicate what a structure has no use for
    program = jax.jit(sharded, in_shardings=shards, donate_argnums=0, compiler_options=options)
    return Program(program.lower(*arguments).compile(), mesh, time.perf_counter() - started)


def abstract_arguments(shape: RunConfig, stack: Stack) -> tuple[Any, ...]:
    """The shapes of what `run_chunk` takes."""
    parameters = jax.eval_shape(packed, parameter_shapes(shape, stack))
    scales = [Scales(*(jax.ShapeDtypeStruct((count,), jnp.float32) for _ in Scales._fields)) for _, count in stack.segments]
    start_cb = jax.ShapeDtypeStruct((CHUNK, shape.batch), jnp.int32)
    rate_c, count = jax.ShapeDtypeStruct((CHUNK,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    return State(parameters, jax.eval_shape(OPTIMIZER.init, parameters)), scales, start_cb, rate_c, count


def beginning(config: RunConfig) -> tuple[State, list[Scales]]:
    """What a run starts from, on the host, and its placement's scales."""
    parameters = packed(initial_parameters(config))
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(OPTIMIZER.init, parameters))
    return State(parameters, zeros), [Scales.of(run) for _, run in placement_of(config.placement).segments(config.layers)]


class Training:
    """A run that is trained by iterating over it: its history, chunk by chunk as it is computed, ending early where the run diverges."""

    def __init__(self, config: RunConfig, program: Program) -> None:
        self.config, self.program = config, program
        self.state, self.scales = jax.device_put(beginning(config), NamedSharding(program.mesh, P()))

    def __iter__(self) -> Iterator[History]:
        config, split = self.config, NamedSharding(self.program.mesh, P(None, "batch"))
        start_sb, rate_s = start_tokens_sb(config), learning_rate_s(config)
        step, count, diverged = 0, 1, False
        while step < config.steps and not diverged:
            started = time.perf_counter()
            count = min(count, config.steps - step)
            start_cb = jax.device_put(padded(start_sb[step : step + count]), split)
            rate_c = padded(rate_s[step : step + count].astype(np.float32))
            self.state, records, done = self.program.run_chunk(self.state, self.scales, start_cb, rate_c, np.int32(count))
            chunk = as_history(jax.device_get(records), int(done), rate_s[step:])
            yield chunk
            step += len(chunk)
            diverged = chunk.diverged_at is not None
            count = affordable((time.perf_counter() - started) / len(chunk))

    def finished(self, history: History, seconds: float) -> Run:
        """The run after its last step, with what is to be known of how it was computed; `seconds` is the time of its training."""
        devices = self.program.mesh.devices.ravel()
        versions = {"python": platform.python_version()} | {name: version(name) for name in ("jax", "flax", "optax", "numpy")}
        stack = placement_of(self.config.placement).stack(self.config.layers)
        trained = unpacked(jax.device_get(self.state.parameters), self.config, stack)
        spectra = [singular_values(self.config, parameters) for parameters in (initial_parameters(self.config), trained)]
        device = f"{len(devices)} x {devices[0].device_kind}"
        facts = Facts(device, self.program.compile_seconds, seconds, matrix_gflops(), versions)
        return Run(self.config, history, facts, np.stack(spectra))


def affordable(pace: float) -> int:
    """How many steps of this many seconds each a call should run."""
    return min(max(round(CHUNK_SECONDS / pace), 1), CHUNK)


def padded(rows: np.ndarray) -> np.ndarray:
    return np.pad(rows, [(0, CHUNK - len(rows)), *[(0, 0)] * (rows.ndim - 1)])


def as_history(records: Any, done: int, rate_s: np.ndarray) -> History:
    streams = records.streams
    signal_4cl = np.moveaxis(records.signal_l22.reshape(-1, records.signal_l22.shape[1], 4), 2, 0)
    measured = (streams.rms_l, records.block_gradient_norm_l, streams.update_ratio_l, *signal_4cl)
    return History(records.loss[:done], records.gradient_norm[:done], rate_s[:done], *(rows[:done] for rows in measured))
