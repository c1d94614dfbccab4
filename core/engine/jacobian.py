"""How a block, and the stack of blocks, stretches and shrinks what passes it: the singular values of its Jacobian.

They are those of the first token of the run's first sequence. It attends to itself alone, so its Jacobian, D x D, has every way there is,
and that of the stack is the product of the blocks'.
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
    """(L + 1, D) float32, descending: of the stack, dx_L / dx_0, then of blocks 1..L, dx' / dx. Not a number where a parameter is none.

    Computed in float64: what is zero by algebra is seen to be zero.
    """
    placement = placement_of(config.placement)
    with jax.enable_x64(True):
        scales = [Scales.of(run) for _, run in placement.segments(config.layers)]
        arguments = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (parameters, scales))
        blocks_ldd = np.asarray(compiled(untraced(config), placement.stack(config.layers))(*arguments, start_tokens_sb(config)[0, 0]))
    if not np.isfinite(blocks_ldd).all():
        return np.full((config.layers + 1, config.width), np.nan, np.float32)
    stack_dd = np.eye(config.width)
    for block_dd in blocks_ldd:
        stack_dd = block_dd @ stack_dd
    return np.linalg.svd(np.stack([stack_dd, *blocks_ldd]), compute_uv=False).astype(np.float32)


@lru_cache(maxsize=PROGRAMS)
def compiled(shape: RunConfig, stack: Stack) -> Any:
    return jax.jit(partial(jacobians, config=shape, stack=stack), compiler_options=COMPILER_OPTIONS)


def jacobians(parameters: Any, scales: list[Scales], token: jax.Array, config: RunConfig, stack: Stack) -> jax.Array:
    """dx' / dx of every block, (L, D, D), at a token that stands alone."""
    x_nd = embedded(parameters, token.reshape(1, 1), config, stack)
    found = []
    for (structure, _), *stacked in zip(stack.segments, parameters["segments"], scales, strict=True):
        block = block_of(config, structure).clone(length=1)

        def layer(x_d: jax.Array, arguments: Any, block: Any = block) -> tuple[jax.Array, jax.Array]:
            parameters, scales = arguments

            def through(x_d: jax.Array) -> tuple[jax.Array, jax.Array]:
                after_d = block.apply({"params": parameters}, x_d[None], scales)[0][0]
                return after_d, after_d

            jacobian_dd, after_d = jax.jacfwd(through, has_aux=True)(x_d)
            return after_d, jacobian_dd

        x_d, jacobian_ldd = jax.lax.scan(layer, x_nd[0], tuple(stacked))
        x_nd = x_d[None]
        found.append(jacobian_ldd)
    return jnp.concatenate(found)
