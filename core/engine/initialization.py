"""Initial parameters, equal bit for bit to what Flax Linen's own `init` gives for the article's unrolled modules.

Linen draws a parameter from the root key folded with the first four bytes of the SHA-1 of its module's path and of the scope's counter.
JAX's generator gives the n-th number of a draw whatever the draw's length, so one compiled draw, as long as the largest kernel, serves
every kernel of every block: neither compilation nor tracing grows with depth, as Linen's unjitted `init` does.
"""

import hashlib
import math
from functools import partial
from itertools import islice
from typing import Any

import jax
import numpy as np

from core.engine.admin import set_stream_factors
from core.engine.block import DYT_ALPHA, Scales
from core.engine.devices import set_up_jax
from core.engine.parameters import parameter_shapes
from core.engine.pins import COMPILER_PINS, pinned
from core.placement.design import placement_of
from core.placement.record import BlockSpec
from core.runs.config import RunConfig

OUTPUT_STD = np.float32(0.02)
TRUNCATED_STD = np.float32(0.87962566103423978)  # of a standard normal cut at -2 and 2


def path_number(*path: str) -> np.uint32:
    """What Linen folds into the root key for the first random parameter that the module at this path draws."""
    digest = hashlib.sha1("".join(path).encode() + b"\x01").digest()
    return np.uint32(int.from_bytes(digest[:4], "big"))


@partial(jax.jit, static_argnames=("size", "truncated"), compiler_options=COMPILER_PINS)
def normal(seed: int, path: np.uint32, size: int, truncated: bool = False) -> jax.Array:
    """Standard normal numbers, on request cut at -2 and 2."""
    key = jax.random.fold_in(jax.random.PRNGKey(seed), path)
    return jax.random.truncated_normal(key, -2, 2, (size,)) if truncated else jax.random.normal(key, (size,))


def lecun_normal(seed: int, path: np.uint32, shape: tuple[int, int], longest: int) -> np.ndarray:
    """Flax's default initializer of a Dense kernel (fan_in, fan_out), cut from a draw of `longest` numbers."""
    draw = np.asarray(normal(seed, path, longest, truncated=True))[: math.prod(shape)]
    return draw.reshape(shape) * (np.sqrt(np.float32(1 / shape[0])) / TRUNCATED_STD)


def stacked_kernels(seed: int, names: list[str], module: str, shape: tuple[int, int], longest: int) -> np.ndarray:
    """A kernel of the blocks with these names, along a leading axis."""
    return np.stack([lecun_normal(seed, path_number(name, module), shape, longest) for name in names])


def column_gains(module: str, columns: int, segment: list[BlockSpec]) -> np.ndarray:
    """The placement's gains on a kernel's columns, for each block: (L, 1, columns). The kernel `qkv` holds three matrices."""
    matrices = ["query", "key", "value"] if module == "qkv" else [module]
    gain_lm = np.array([[dict(block.init_gain).get(matrix, 1.0) for matrix in matrices] for block in segment], np.float32)
    return np.repeat(gain_lm, columns // len(matrices), axis=1)[:, None, :]


@pinned()
def initial_parameters(config: RunConfig) -> dict[str, Any]:
    """The parameters that a run starts from: float32, on the host."""
    set_up_jax()
    placement = placement_of(config.placement)
    segments = placement.segments(config.layers)
    names = iter(f"block_{i}" for i in range(config.layers))
    names_of = [list(islice(names, len(segment))) for _, segment in segments]
    longest = 4 * config.width**2

    def initial(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        match [entry.key if hasattr(entry, "key") else entry.idx for entry in path]:
            case ["embedding", _]:
                return np.asarray(normal(config.seed, path_number("embedding"), leaf.size)).reshape(leaf.shape)
            case ["output", _]:
                return np.asarray(normal(config.seed, path_number("output"), leaf.size)).reshape(leaf.shape) * OUTPUT_STD
            case ["segments", i, module, "kernel"]:
                return stacked_kernels(config.seed, names_of[i], module, leaf.shape[1:], longest) * column_gains(
                    module, leaf.shape[-1], segments[i][1]
                )
            case ["segments", i, gate] if gate.endswith("gate"):
                return np.broadcast_to(
                    np.array([block.gate for block in segments[i][1]], np.float32).reshape(-1, *[1] * (len(leaf.shape) - 1)), leaf.shape
                )
            case [*_, "scale" | "head_gain" | "attention_alpha" | "mlp_alpha"]:
                return np.ones(leaf.shape, np.float32)
            case [*_, "alpha"]:
                return np.full(leaf.shape, DYT_ALPHA, np.float32)
            case _:
                return np.zeros(leaf.shape, np.float32)

    stack = placement.stack(config.layers)
    parameters = jax.tree_util.tree_map_with_path(initial, parameter_shapes(config, stack))
    if any(structure.profiled for structure, _ in segments):
        return set_stream_factors(config, parameters, stack, [Scales.of(segment) for _, segment in segments])
    return parameters
