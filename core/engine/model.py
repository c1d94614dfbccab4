"""The causal Transformer: what becomes of tokens, and what is measured on the way. Shapes are those of core/engine/block.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from core.engine.block import NORM_MODULES, Block, Scales, block_of
from core.engine.parameters import Packed, block_shapes, cut, rest_shapes
from core.engine.product import product
from core.placement.record import Stack
from core.runs.config import RunConfig

KEPT_BYTES = 2**28  # the most bytes of dense outputs that a device keeps for the backward pass


def taps(stack: Stack) -> list[jax.Array]:
    """Zeros to differentiate `forward` by, (L, 2, 2) for each segment: by sublayer, attention first, and by way, the addition first and
    the branch second.
    """
    return [jnp.zeros((count, 2, 2)) for _, count in stack.segments]


Measured = dict[str, jax.Array]  # by the name of a quantity of core/runs/quantities.py


def of_layer(x_nd: jax.Array) -> Measured:
    """What is measured of the stream after each layer, the embedding among them."""
    return {"stream_rms": rms(x_nd), "stream_peak": largest(jnp.abs(x_nd))}


def of_block(before_nd: jax.Array, after_nd: jax.Array) -> Measured:
    """What is measured of the stream's change by each block."""
    return {"update_ratio": update_ratio(before_nd, after_nd)}


def rms(x_nd: jax.Array) -> jax.Array:
    """Root-mean-square over features, averaged over tokens."""
    return jnp.sqrt(jnp.mean(x_nd**2, axis=-1)).mean()


def largest(values: jax.Array) -> jax.Array:
    """The maximum, or NaN where one of the values is that: XLA's own maximum on the CPU passes over them."""
    return jnp.where(jnp.isnan(values).any(), jnp.nan, values.max())


def update_ratio(before_nd: jax.Array, after_nd: jax.Array) -> jax.Array:
    """Length of the change that a block makes, divided by the length of the stream that it reads, averaged over tokens."""
    return (jnp.linalg.norm(after_nd - before_nd, axis=-1) / jnp.linalg.norm(before_nd, axis=-1)).mean()


def dense_bytes(stream_size: int) -> int:
    """Of what qkv, attention_output, mlp_in and mlp_out compute in all blocks, for streams of this many numbers in all."""
    return (3 + 1 + 4 + 1) * stream_size * 4


def checkpoint_policy(stream_size: int) -> Callable[..., bool]:
    """What of a block the backward pass keeps, for streams of this many numbers in all. The rest it computes anew, which costs less than
    the memory traffic of keeping it (docs/performance.md).
    """
    policies = jax.checkpoint_policies
    return policies.dots_with_no_batch_dims_saveable if dense_bytes(stream_size) <= KEPT_BYTES else policies.nothing_saveable


def normalize(parameters: Any, config: RunConfig, x_nd: jax.Array) -> Any:
    return NORM_MODULES[config.norm]().apply({"params": parameters}, x_nd)


def embed(parameters: dict[str, Any], tokens_bt: jax.Array, config: RunConfig, stack: Stack) -> jax.Array:
    """The stream before the first block, (N, D), for the first T tokens of sequences."""
    x_btd = parameters["embedding"]["embedding"][tokens_bt] + parameters["position"][: tokens_bt.shape[1]]
    x_nd = x_btd.reshape(-1, config.width)
    return normalize(parameters["embedding_norm"], config, x_nd) if stack.embedding_norm else x_nd


def of_rows(block: Block, shapes: dict[str, Any]) -> Callable[..., Any]:
    """The block's `apply`, which takes its parameters as a row of `Packed.segments`."""

    def apply(row_p: jax.Array, *arguments: Any) -> Any:
        return block.apply({"params": cut(row_p, shapes)}, *arguments)

    return apply


def forward(
    parameters: Packed,
    tokens_bt: jax.Array,
    config: RunConfig,
    stack: Stack,
    scales: list[Scales],
    taps: list[jax.Array],
) -> tuple[jax.Array, Measured]:
    """Logits (N, V) for tokens (B, T), and what is measured of the stream: of layers (L + 1,), of blocks (L,).

    `parameters.segments[i]`, `scales[i]` and `taps[i]` hold those of the i-th segment.
    """
    rest = cut(parameters.rest_p, rest_shapes(config, stack))
    x_nd = embed(rest, tokens_bt, config, stack)
    sum_nd = x_nd if stack.dual_stream else None
    measured = [jax.tree.map(jnp.atleast_1d, of_layer(jax.lax.stop_gradient(x_nd)))]
    policy = checkpoint_policy(x_nd.size * config.layers)
    for (structure, _), *stacked in zip(stack.segments, parameters.segments, scales, taps, strict=True):
        apply = jax.checkpoint(of_rows(block_of(config, structure), block_shapes(config, structure)), policy=policy)

        def layer(carry: tuple[Any, Any], block: tuple[jax.Array, Scales, jax.Array], apply: Any = apply) -> tuple[Any, Any]:
            (x_nd, sum_nd), (row_p, *arguments) = carry, block
            after_nd, written_nd = apply(row_p, x_nd, *arguments)
            before_nd, result_nd = jax.lax.stop_gradient((x_nd, after_nd))
            return (after_nd, sum_nd if sum_nd is None else sum_nd + written_nd), of_layer(result_nd) | of_block(before_nd, result_nd)

        (x_nd, sum_nd), segment_measured = jax.lax.scan(layer, (x_nd, sum_nd), tuple(stacked))
        measured.append(segment_measured)
    end_nd = x_nd if sum_nd is None else sum_nd
    if config.final_norm:
        end_nd = normalize(rest["final_norm"], config, end_nd)
    logits_nv = product(end_nd if sum_nd is None else x_nd + end_nd, rest["output"]["kernel"])
    return logits_nv, {name: jnp.concatenate([part[name] for part in measured if name in part]) for name in measured[-1]}
