"""What the engine knows of the inside of Flax and JAX, each held by a test of its own: here a new version of either breaks first."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from core.engine.admin import apply_with_terms
from core.engine.block import Scales, block_of, contract
from core.engine.feed import batches
from core.engine.initialization import initial_parameters, normal, path_number
from core.placement.table import POST
from core.runs.config import RunConfig


def test_path_number_is_what_linen_folds_into_the_key() -> None:
    """Of a module within a module, for its first random parameter."""

    class Inner(nn.Module):
        @nn.compact
        def __call__(self) -> jax.Array:
            return self.param("kernel", lambda key: jax.random.normal(key, (5,)))

    class Outer(nn.Module):
        @nn.compact
        def __call__(self) -> jax.Array:
            return Inner(name="inner")()

    drawn = Outer().init(jax.random.PRNGKey(7))["params"]["inner"]["kernel"]
    np.testing.assert_array_equal(normal(7, path_number("inner"), 5), drawn)


@pytest.mark.parametrize("truncated", [False, True])
def test_normal_draws_the_same_first_numbers_whatever_the_length(truncated: bool) -> None:
    long, short = (np.asarray(normal(7, np.uint32(3), size, truncated=truncated)) for size in (1000, 17))
    np.testing.assert_array_equal(long[:17], short)


def test_contract_is_called_for_the_last_axis_by_the_first() -> None:
    seen: list[Any] = []

    def product(x: jax.Array, kernel: jax.Array, dimensions: Any, **more: Any) -> jax.Array:
        seen.append((dimensions, x.ndim))
        return contract(x, kernel, dimensions, **more)

    x_nd = jnp.arange(12.0).reshape(4, 3)
    out_nf, variables = nn.Dense(2, dot_general=product).init_with_output(jax.random.PRNGKey(0), x_nd)
    assert set(seen) == {((((1,), (0,)), ((), ())), 2)}
    np.testing.assert_allclose(out_nf, x_nd @ variables["params"]["kernel"], rtol=1e-6)


def test_a_block_tells_what_its_sublayers_add(tiny: RunConfig) -> None:
    """Of Post-Norm: the block's input and what attention writes; the norm of their sum, and what feed-forward writes."""
    parameters = jax.tree.map(lambda stacked: stacked[0], initial_parameters(tiny)["segments"][0])
    block, scales = block_of(tiny, POST), Scales(1.0, 1.0, 1.0)
    x_nd = jax.random.normal(jax.random.PRNGKey(1), (next(batches(tiny)).tokens_bt.size, tiny.width))
    out_nd, terms = apply_with_terms(block, parameters, scales, x_nd)
    expected_nd, written_nd = block.apply({"params": parameters}, x_nd, scales)
    np.testing.assert_array_equal(out_nd, expected_nd)
    (stream_nd, attended_nd), (h_nd, fed_nd) = terms["attention"], terms["mlp"]
    np.testing.assert_array_equal(stream_nd, x_nd)
    np.testing.assert_allclose(
        h_nd, nn.LayerNorm(epsilon=1e-6).apply({"params": parameters["attention_norm"]}, x_nd + attended_nd), atol=1e-6
    )
    np.testing.assert_allclose(attended_nd + fed_nd, written_nd, rtol=1e-5, atol=1e-6)
