"""The profiling pass of Admin (Liu et al. 2020, arXiv 2004.08249): how much each branch writes, before anything is trained."""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.engine.block import Block, Scales, block_of
from core.engine.compilation import PROGRAMS
from core.engine.feed import batches
from core.engine.model import embed
from core.placement.record import Stack
from core.runs.config import RunConfig, program_shape

BRANCHES = ("attention_output", "mlp_out")  # the modules whose output a branch writes, in the order in which they do


def set_stream_factors(config: RunConfig, parameters: dict[str, Any], stack: Stack, scales: list[Scales]) -> dict[str, Any]:
    """The parameters with each sublayer's stream multiplied by the standard deviation of what all branches below it write, together.

    The first sublayer's stream is multiplied by one, and so is every stream while the run's first batch is passed through to measure them.
    """
    variance_l2 = np.concatenate(compile_pass(program_shape(config), stack)(parameters, next(batches(config)).tokens_bt, scales))
    below = np.sqrt(np.cumsum(variance_l2, dtype=np.float32))[:-1]
    alpha_l2 = np.concatenate([np.ones(1, np.float32), below]).reshape(variance_l2.shape)
    ends = np.cumsum([count for _, count in stack.segments])[:-1]
    segments = []
    for segment, segment_l2 in zip(parameters["segments"], np.split(alpha_l2, ends), strict=True):
        factors = {f"{name}_alpha": segment_l2[:, i : i + 1] for i, name in enumerate(("attention", "mlp"))}
        segments.append(segment | {name: segment[name] * factor_l1 for name, factor_l1 in factors.items()})
    return parameters | {"segments": segments}


@lru_cache(maxsize=PROGRAMS)
def compile_pass(shape: RunConfig, stack: Stack) -> Any:
    return jax.jit(partial(branch_variances, config=shape, stack=stack))


def branch_variances(
    parameters: dict[str, Any], tokens_bt: jax.Array, scales: list[Scales], config: RunConfig, stack: Stack
) -> list[jax.Array]:
    """For each segment (L, 2): the variance over features of what each branch writes, averaged over the batch's tokens."""
    x_nd = embed(parameters, tokens_bt, config, stack)
    found = []
    for (structure, _), *stacked in zip(stack.segments, parameters["segments"], scales, strict=True):
        block = block_of(config, structure)

        def layer(x_nd: jax.Array, arguments: Any, block: Block = block) -> tuple[jax.Array, jax.Array]:
            parameters, scales = arguments
            x_nd, written = apply_and_capture(block, parameters, scales, x_nd)
            return x_nd, jnp.stack([written_nd.var(axis=1).mean() for written_nd in written])

        x_nd, variance_l2 = jax.lax.scan(layer, x_nd, tuple(stacked))
        found.append(variance_l2)
    return found


def apply_and_capture(block: Block, parameters: dict[str, Any], scales: Scales, x_nd: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
    """The block's output, and what each of its branches writes, as Linen captures it under the names of the branches' last modules."""
    (out_nd, _), captured = block.apply(
        {"params": parameters}, x_nd, scales, capture_intermediates=lambda module, _: module.name in BRANCHES
    )
    return out_nd, [captured["intermediates"][name]["__call__"][0] for name in BRANCHES]
