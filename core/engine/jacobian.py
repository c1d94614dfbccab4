"""How a block, and the stack of blocks, stretches and shrinks what passes it: the singular values of its Jacobian.

They are those of the first token of the run's first sequence. It attends to itself alone, so its Jacobian, D x D, has every way there is,
and that of the stack is the product of the blocks'. Where there is a second stream, the stack's is that of both, 2 D x D.
"""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.config import RunConfig, untraced
from core.design import placement_of
from core.engine.data import start_tokens_sb
from core.engine.model import Scales, block_of, embedded
from core.placement import Stack

PROGRAMS = 8  # kept
# The program runs for milliseconds: it is to compile fast.
COMPILER_OPTIONS = {"xla_backend_optimization_level": 0}


def singular_values(config: RunConfig, parameters: Any) -> np.ndarray:
    """(L + 1, D) float32, descending: of the stack, dx_L / dx_0, then of blocks 1..L, dx' / dx.

    Infinite where they are too large, not a number where a matrix has an entry that is none.
    Computed in float64, on the CPU wherever the run was: what is zero by algebra is seen to be zero.
    """
    placement = placement_of(config.placement)
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        scales = [Scales.of(run) for _, run in placement.segments(config.layers)]
        arguments = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (parameters, scales))
        program = compiled(untraced(config), placement.stack(config.layers))
        found = jax.device_get(program(*arguments, start_tokens_sb(config)[0, 0]))
    stack_ed, blocks_ldd = found
    values = np.array([values_of(matrix) for matrix in (stack_ed, *blocks_ldd)])
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def values_of(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.svd(matrix, compute_uv=False) if np.isfinite(matrix).all() else np.full(matrix.shape[1], np.nan)


@lru_cache(maxsize=PROGRAMS)
def compiled(shape: RunConfig, stack: Stack) -> Any:
    return jax.jit(partial(jacobians, config=shape, stack=stack), compiler_options=COMPILER_OPTIONS)


def jacobians(parameters: Any, scales: list[Scales], token: jax.Array, config: RunConfig, stack: Stack) -> tuple[jax.Array, jax.Array]:
    """That of the stack, (D, D) or (2 D, D), and of every block, (L, D, D), at a token that stands alone."""
    x_d = embedded(parameters, token.reshape(1, 1), config, stack)[0]
    stream_dd = sum_dd = jnp.eye(config.width)
    found = []
    for (structure, _), *stacked in zip(stack.segments, parameters["segments"], scales, strict=True):
        block = block_of(config, structure).clone(length=1)

        def layer(carry: Any, arguments: Any, block: Any = block) -> tuple[Any, jax.Array]:
            (x_d, stream_dd, sum_dd), (parameters, scales) = carry, arguments

            def through(x_d: jax.Array) -> tuple[Any, jax.Array]:
                after_d, written_d = (out_nd[0] for out_nd in block.apply({"params": parameters}, x_d[None], scales))
                return (after_d, written_d if stack.dual_stream else jnp.zeros(())), after_d

            (after_dd, written_dd), after_d = jax.jacfwd(through, has_aux=True)(x_d)
            if stack.dual_stream:
                sum_dd = sum_dd + written_dd @ stream_dd
            return (after_d, after_dd @ stream_dd, sum_dd), after_dd

        (x_d, stream_dd, sum_dd), block_ldd = jax.lax.scan(layer, (x_d, stream_dd, sum_dd), tuple(stacked))
        found.append(block_ldd)
    return jnp.concatenate([stream_dd, sum_dd]) if stack.dual_stream else stream_dd, jnp.concatenate(found)
