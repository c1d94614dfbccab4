"""What the products give is held to NumPy, and what they compile to to what they are for."""

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import quick_jit

from core.engine.product import attention_scores, product

SIZES = st.integers(1, 5)
NARROW, WIDE = (48, 16), (48, 64)  # N, and D or F


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape)


def gradients(function: Callable[..., jax.Array], first: np.ndarray, second: np.ndarray, by_result: np.ndarray) -> list[np.ndarray]:
    def result_and_gradients(first: np.ndarray, second: np.ndarray, by_result: np.ndarray) -> tuple[jax.Array, ...]:
        result, back = jax.vjp(function, first, second)
        return result, *back(by_result)

    with jax.enable_x64(True):
        return [np.asarray(found) for found in quick_jit(result_and_gradients)(first, second, by_result)]


@settings(max_examples=20)
@given(SIZES, SIZES, SIZES)
def test_a_product_and_its_gradients(tokens: int, width: int, features: int) -> None:
    x_nd, kernel_df, by_result_nf = drawn(tokens, width), drawn(width, features), drawn(tokens, features)
    result_nf, by_x_nd, by_kernel_df = gradients(product, x_nd, kernel_df, by_result_nf)
    np.testing.assert_allclose(result_nf, x_nd @ kernel_df, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_x_nd, by_result_nf @ kernel_df.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_kernel_df, x_nd.T @ by_result_nf, rtol=1e-12, atol=1e-12)


@settings(max_examples=15)
@given(SIZES, SIZES, SIZES, SIZES)
def test_attention_scores_and_their_gradients(sequences: int, length: int, heads: int, width: int) -> None:
    query_bthk, key_bthk = drawn(sequences, length, heads, width), drawn(sequences, length, heads, width) + 1
    by_scores_bhts = drawn(sequences, heads, length, length)
    scores_bhts, by_query_bthk, by_key_bthk = gradients(attention_scores, query_bthk, key_bthk, by_scores_bhts)
    for b, h in np.ndindex(sequences, heads):
        query_tk, key_tk, by_scores_ts = query_bthk[b, :, h], key_bthk[b, :, h], by_scores_bhts[b, h]
        np.testing.assert_allclose(scores_bhts[b, h], query_tk @ key_tk.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(by_query_bthk[b, :, h], by_scores_ts @ key_tk, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(by_key_bthk[b, :, h], by_scores_ts.T @ query_tk, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("x_shape", "result_shape"), [(NARROW, WIDE), (WIDE, NARROW)])
def test_a_cpu_adds_up_along_the_rows_of_the_first_factor(x_shape: tuple[int, int], result_shape: tuple[int, int]) -> None:
    def by_kernel(x_nd: jax.Array, kernel_df: jax.Array, by_result_nf: jax.Array) -> jax.Array:
        return jax.vjp(product, x_nd, kernel_df)[1](by_result_nf)[1]

    shapes = x_shape, (x_shape[1], result_shape[1]), result_shape
    compiled = jax.jit(by_kernel).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)).compile().as_text()
    assert re.findall(r" dot\(.*lhs_contracting_dims=\{(\d)\}", compiled) == ["1"]
    least = min(x_shape[1], result_shape[1])
    assert re.search(rf"f32\[{least},48\]\S* (transpose|copy)\(", compiled), "the narrower of the two is transposed"


def test_a_cpu_adds_up_along_the_rows_of_the_first_factor_for_keys_too() -> None:
    def by_key(query_bthk: jax.Array, key_bthk: jax.Array, by_scores_bhts: jax.Array) -> jax.Array:
        return jax.vjp(attention_scores, query_bthk, key_bthk)[1](by_scores_bhts)[1]

    shapes = (2, 8, 4, 16), (2, 8, 4, 16), (2, 4, 8, 8)
    compiled = jax.jit(by_key).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)).compile().as_text()
    assert re.findall(r" dot\(.*lhs_contracting_dims=\{(\d)\}", compiled) == ["3"]


def test_elsewhere_the_gradient_is_left_to_the_compiler() -> None:
    def by_kernel(x_nd: jax.Array, kernel_df: jax.Array) -> jax.Array:
        return jax.grad(lambda kernel_df: product(x_nd, kernel_df).sum())(kernel_df)

    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in (NARROW, (16, 64))]
    lowered = {name: jax.export.export(jax.jit(by_kernel), platforms=[name])(*shapes).mlir_module() for name in ("cpu", "cuda")}
    assert {name: "optimization_barrier" in text for name, text in lowered.items()} == {"cpu": True, "cuda": False}
