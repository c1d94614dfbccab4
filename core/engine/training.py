"""The training loop: one compiled program runs a chunk of optimizer steps and records everything that is measured.

What differs between runs of one shape - the traced settings, the batches, the placement's scales - enters as arguments, so changing it
compiles nothing.
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
from core.engine.devices import DeviceKind, devices, even_share, xla_flags
from core.engine.feed import CHUNK, SHARDS, Feed, abstract_feed, batches, next_feed
from core.engine.initialization import initial_parameters
from core.engine.jacobian import singular_values
from core.engine.model import Measured, forward, taps
from core.engine.parameters import Packed, pack, parameter_shapes, unpack
from core.engine.pins import COMPILER_PINS, pinned
from core.machine import matrix_gflops
from core.placement.design import placement_of
from core.placement.record import Stack
from core.runs.config import SETTINGS, RunConfig, limits, program_shape
from core.runs.file import Facts, Run
from core.runs.history import History
from core.runs.quantities import QUANTITIES
from core.runs.schedule import learning_rate_s

CHUNK_SECONDS = 0.25  # what a call aims at, so that progress shows and a cancel is heard

# LLVM's higher levels take longer here and make slower code (docs/performance.md).
COMPILER_OPTIONS = {"cpu": {"xla_backend_optimization_level": 1}}

# Adam, then decoupled weight decay; both are multiplied by the rate of the step.
OPTIMIZER = optax.chain(optax.scale_by_adam(b1=0.9, b2=0.95), optax.add_decayed_weights(0.01))

MEASURED = [name for name, quantity in QUANTITIES.items() if quantity.measured]
NUMBERS = [name for name, setting in SETTINGS.items() if setting.traced and not limits(name).whole]
SPECS = (P(), P(), P(), SHARDS, P())  # how what `run_chunk` takes is parted among devices


class State(NamedTuple):
    parameters: Packed
    optimizer: Any


Numbers = dict[str, Any]  # the settings that enter a program as arguments, by name


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled chunk: (state, scales, numbers, feed, how many steps) to (state, what was measured, steps done)."""

    run_chunk: Any
    mesh: Mesh
    compile_seconds: float
    shape: RunConfig  # of the runs that it trains, as `program_shape` gives it
    stack: Stack

    def check(self, config: RunConfig) -> None:
        """Raises ValueError where the run is none that the program was compiled for: arrays of equal shapes would let it pass."""
        if (program_shape(config), placement_of(config.placement).stack(config.layers)) != (self.shape, self.stack):
            raise ValueError("The program was compiled for runs of another shape or structure.")


def train_step(state: State, scales: list[Scales], numbers: Numbers, feed: Feed, config: RunConfig, stack: Stack) -> tuple[State, Measured]:
    """One optimizer update on this device's part of the batch; gradients and measures are those of all devices together."""
    counted_n, targets_n = feed.counted_cbt.ravel(), feed.targets_cbt.ravel()
    weight = jax.lax.axis_size("batch") / feed.count_c  # of a position that counts, so that the mean of the devices is the batch's

    def loss_of(parameters: Packed, taps: list[jax.Array]) -> tuple[jax.Array, Measured]:
        logits_nv, measured = forward(parameters, feed.tokens_cbt, config, stack, scales, taps)
        loss_n = optax.softmax_cross_entropy_with_integer_labels(logits_nv, targets_n)
        return weight * jnp.where(counted_n, loss_n, 0.0).sum(), measured

    (loss, measured), local = jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True)(state.parameters, taps(stack))
    measured, (gradient, power) = of_all_devices(measured | {"loss": loss}, local)
    measured |= of_gradient(gradient, power)
    if config.gradient_clip:
        gradient = clip(gradient, measured["gradient_norm"], numbers["gradient_clip"])
    updates, optimizer = OPTIMIZER.update(gradient, state.optimizer, state.parameters)
    parameters = jax.tree.map(lambda parameter, update: parameter - feed.rate_c * update, state.parameters, updates)
    return State(parameters, optimizer), measured


def of_all_devices(measured: Measured, gradients: Any) -> tuple[Measured, Any]:
    """One value for each quantity, as its record says, and the mean of the gradients, which share one exchange with the other means."""

    def of(across: str) -> Measured:
        return {name: value for name, value in measured.items() if QUANTITIES[name].across == across}

    means, gradients = jax.lax.pmean((of("mean"), gradients), "batch")
    maxima, broken = jax.lax.pmax((of("maximum"), jax.tree.map(lambda value: jnp.isnan(value).astype(jnp.float32), of("maximum"))), "batch")
    maxima = {name: jnp.where(broken[name] > 0, jnp.nan, value) for name, value in maxima.items()}
    return means | maxima | jax.lax.psum(of("sum"), "batch"), gradients


def of_gradient(gradient: Packed, power: list[jax.Array]) -> Measured:
    """What is measured of the mean gradient, and of the gradient's power at each of `core.engine.model.taps`."""
    norm_l = jnp.concatenate([jnp.linalg.norm(rows_lp, axis=-1) for rows_lp in gradient.segments])
    signal_l22 = jnp.sqrt(jnp.concatenate(power) / jax.lax.axis_size("batch"))  # each device's loss is a mean over its own part
    signals = {
        f"{sublayer}_{way}_signal": signal_l22[:, i, j]
        for i, sublayer in enumerate(("attention", "feed_forward"))
        for j, way in enumerate(("stream", "branch"))
    }
    return {"gradient_norm": optax.tree.norm((gradient.rest_p, norm_l)), "block_gradient_norm": norm_l} | signals


def clip(gradient: Packed, norm: jax.Array, most: jax.Array) -> Packed:
    """Shortened to the L2 norm `most` where its own is larger (Pascanu et al. 2013, arXiv 1211.5063)."""
    factor = jnp.where(norm > most, most / norm, 1.0)
    return jax.tree.map(lambda leaf: factor * leaf, gradient)


def run_chunk(
    state: State, scales: list[Scales], numbers: Numbers, feed: Feed, count: jax.Array, config: RunConfig, stack: Stack
) -> tuple[State, Measured, jax.Array]:
    """`count` steps, fewer where loss or gradient norm stops being finite; of each quantity a row for each step of a full chunk."""
    nothing = {name: jnp.zeros((CHUNK, *QUANTITIES[name].shape(config.layers))) for name in MEASURED}

    def unfinished(carry: Any) -> jax.Array:
        done, finite, *_ = carry
        return (done < count) & finite

    def advance(carry: Any) -> Any:
        done, _, state, records = carry
        state, measured = train_step(state, scales, numbers, jax.tree.map(lambda rows: rows[done], feed), config, stack)
        records = {name: rows.at[done].set(measured[name]) for name, rows in records.items()}
        return done + 1, jnp.isfinite(measured["loss"]) & jnp.isfinite(measured["gradient_norm"]), state, records

    done, _, state, records = jax.lax.while_loop(unfinished, advance, (jnp.int32(0), True, state, nothing))
    return state, records, done


@pinned()
def compile_program(config: RunConfig, device: DeviceKind = "auto", device_count: int | None = None) -> Program:
    """The compiled program for a run; cached for all runs of the same shape and structure.

    Raises DeviceError where the device is not there.
    """
    on = even_share(devices(device), config.batch)
    return compile_shape(program_shape(config), placement_of(config.placement).stack(config.layers), tuple(on[:device_count]))


@lru_cache(maxsize=PROGRAMS)
def compile_shape(shape: RunConfig, stack: Stack, on: tuple[jax.Device, ...]) -> Program:
    """`shape` is what `program_shape` gives."""
    mesh = Mesh(np.array(on), "batch")
    run = partial(run_chunk, config=shape, stack=stack)
    return Program(*build(run, mesh, SPECS, P(), abstract_arguments(shape, stack)), shape, stack)


def build(chunk: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, arguments: tuple[Any, ...]) -> tuple[Any, Mesh, float]:
    """What runs `chunk` on every device of the mesh, each with its shard of the arguments; the mesh, and the seconds of compiling."""
    started = time.perf_counter()
    # `train_step` averages the gradients itself, once, not per parameter and block
    sharded = jax.shard_map(chunk, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    options = COMPILER_PINS | COMPILER_OPTIONS.get(mesh.devices.flat[0].platform, {})
    shards = on_mesh(mesh, in_specs)  # said, since XLA would replicate what a structure has no use for
    program = jax.jit(sharded, in_shardings=shards, donate_argnums=0, compiler_options=options)
    return program.lower(*arguments).compile(), mesh, time.perf_counter() - started


def on_mesh(mesh: Mesh, specs: Any) -> Any:
    """The shardings that these specifications mean on a mesh."""
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda spec: isinstance(spec, P))


def abstract_arguments(shape: RunConfig, stack: Stack) -> tuple[Any, ...]:
    """The shapes of what `run_chunk` takes."""
    parameters = jax.eval_shape(pack, parameter_shapes(shape, stack))
    scales = [Scales(*(jax.ShapeDtypeStruct((count,), jnp.float32) for _ in Scales._fields)) for _, count in stack.segments]
    numbers = {name: jax.ShapeDtypeStruct((), jnp.float32) for name in NUMBERS}
    state = State(parameters, jax.eval_shape(OPTIMIZER.init, parameters))
    return state, scales, numbers, abstract_feed(shape), jax.ShapeDtypeStruct((), jnp.int32)


@pinned()
def begin(config: RunConfig) -> tuple[State, list[Scales], Numbers]:
    """What a run starts from, and the numbers of its placement and its settings: all on the host."""
    parameters = pack(initial_parameters(config))
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(OPTIMIZER.init, parameters))
    scales = [Scales.of(segment) for _, segment in placement_of(config.placement).segments(config.layers)]
    return State(parameters, zeros), scales, {name: np.float32(getattr(config, name)) for name in NUMBERS}


class Training:
    """A run that is trained by iterating over it: its history, chunk by chunk as it is computed, ending early where the run diverges."""

    @pinned()
    def __init__(self, config: RunConfig, program: Program) -> None:
        """Raises ValueError where the program was compiled for other runs."""
        program.check(config)
        self.config, self.program = config, program
        self.state, self.scales, self.numbers = jax.device_put(begin(config), NamedSharding(program.mesh, P()))

    def __iter__(self) -> Iterator[History]:
        config, shards = self.config, on_mesh(self.program.mesh, SHARDS)
        source, rate_s = batches(config), learning_rate_s(config)
        step, count, diverged = 0, 1, False
        while step < config.steps and not diverged:
            started = time.perf_counter()
            count = min(count, config.steps - step)
            with pinned():
                feed = jax.device_put(next_feed(source, rate_s[step : step + count]), shards)
                self.state, records, done = self.program.run_chunk(self.state, self.scales, self.numbers, feed, np.int32(count))
                chunk = as_history(jax.device_get(records), int(done), rate_s[step:])
            yield chunk
            step += len(chunk)
            diverged = chunk.diverged_at is not None
            count = affordable_steps((time.perf_counter() - started) / len(chunk))

    @pinned()
    def finished(self, history: History, seconds: float) -> Run:
        """The run after its last step, with what is to be known of how it was computed; `seconds` is the time of its training."""
        devices = self.program.mesh.devices.ravel()
        versions = {"python": platform.python_version()} | {name: version(name) for name in ("jax", "flax", "optax", "numpy")}
        stack = placement_of(self.config.placement).stack(self.config.layers)
        trained = unpack(jax.device_get(self.state.parameters), self.config, stack)
        spectra = [singular_values(self.config, parameters) for parameters in (initial_parameters(self.config), trained)]
        device = f"{len(devices)} x {devices[0].device_kind}"
        facts = Facts(device, self.program.compile_seconds, seconds, matrix_gflops(), versions, xla_flags())
        return Run(self.config, history, facts, np.stack(spectra))


def affordable_steps(pace: float) -> int:
    """How many steps of this many seconds each a call should run."""
    return min(max(round(CHUNK_SECONDS / pace), 1), CHUNK)


def as_history(records: Any, done: int, rate_s: np.ndarray) -> History:
    return History({"learning_rate": rate_s[:done], **{name: rows[:done] for name, rows in records.items()}})
