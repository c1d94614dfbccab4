"""The profiling pass of Admin (Liu et al. 2020, arXiv 2004.08249): what its streams are multiplied by before anything is trained.

A sublayer adds its scaled stream, omega x, and what its branch writes, f. The first one's omega is 1, each other one's is the standard
deviation that the sum of the sublayer below has where both are independent, as its authors' code takes it on the fly (Transformer-Clinic,
fairseq/fairseq/modules/transformer_layer.py):

    omega'^2 = Var(omega x) + Var(f),    over all numbers of the run's first batch, with the omegas found so far.
"""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from core.engine.block import SUBLAYERS, Block, Scales, block_of
from core.engine.compilation import PROGRAMS
from core.engine.feed import batches
from core.engine.model import embed
from core.engine.pins import COMPILER_PINS
from core.placement.record import Stack
from core.runs.config import RunConfig, program_shape

Terms = tuple[jax.Array, jax.Array]  # what a sublayer adds: the scaled stream, and what its branch writes


def set_stream_factors(config: RunConfig, parameters: dict[str, Any], stack: Stack, scales: list[Scales]) -> dict[str, Any]:
    """The parameters with the factor of each profiled sublayer's stream in the place of the ones that they start from."""
    factors = compile_pass(program_shape(config), stack)(parameters, next(batches(config)).tokens_bt, scales)
    segments = [segment | jax.device_get(found) for segment, found in zip(parameters["segments"], factors, strict=True)]
    return parameters | {"segments": segments}


@lru_cache(maxsize=PROGRAMS)
def compile_pass(shape: RunConfig, stack: Stack) -> Any:
    return jax.jit(partial(stream_factors, config=shape, stack=stack), compiler_options=COMPILER_PINS)


def stream_factors(
    parameters: dict[str, Any], tokens_bt: jax.Array, scales: list[Scales], config: RunConfig, stack: Stack
) -> list[dict[str, jax.Array]]:
    """For each segment its blocks' factors by the names of their parameters, (L, D): none where it is not profiled."""
    x_nd, factor = embed(parameters, tokens_bt, config, stack), jnp.float32(1.0)
    found = []
    for (structure, _), *stacked in zip(stack.segments, parameters["segments"], scales, strict=True):
        block = block_of(config, structure)

        def layer(carry: Any, arguments: Any, block: Block = block) -> Any:
            (x_nd, factor), (parameters, scales) = carry, arguments
            factors: dict[str, jax.Array] = {}
            for sublayer in SUBLAYERS:  # what the second adds is known once its own factor is
                if block.structure.profiled:
                    factors[f"{sublayer}_alpha"] = jnp.full(x_nd.shape[-1:], factor)
                out_nd, terms = apply_with_terms(block, parameters | factors, scales, x_nd)
                factor = jnp.sqrt(sum(term_nd.var() for term_nd in terms[sublayer]))
            return (out_nd, factor), factors

        (x_nd, factor), factors = jax.lax.scan(layer, (x_nd, factor), tuple(stacked))
        found.append(factors)
    return found


def apply_with_terms(block: Block, parameters: dict[str, Any], scales: Scales, x_nd: jax.Array) -> tuple[jax.Array, dict[str, Terms]]:
    """The block's output, and what each of its sublayers adds."""
    (out_nd, _), kept = block.apply({"params": parameters}, x_nd, scales, mutable="intermediates")
    return out_nd, {sublayer: kept["intermediates"][sublayer][0] for sublayer in SUBLAYERS}
