"""Matrix products, whose gradients XLA's CPU compiler can compute fast.

Its best kernels want the first factor's rows to hold what is added up. In the gradient by a product's second factor the first factor's
columns do, and JAX's own rules leave it so, which costs up to twice the time (docs/performance.md). Here what is narrower of the two is
transposed before.
"""

import jax
import jax.numpy as jnp

Factors = tuple[jax.Array, jax.Array]


@jax.custom_vjp
def product(x_nd: jax.Array, kernel_df: jax.Array) -> jax.Array:
    return x_nd @ kernel_df


def product_gradients(factors: Factors, gradient_nf: jax.Array) -> Factors:
    x_nd, kernel_df = factors
    by_kernel_df = jax.lax.platform_dependent(x_nd, gradient_nf, cpu=rows_first, default=lambda x_nd, gradient_nf: x_nd.T @ gradient_nf)
    return gradient_nf @ kernel_df.T, by_kernel_df


def rows_first(x_nd: jax.Array, gradient_nf: jax.Array) -> jax.Array:
    """x' gradient. The barriers keep XLA from taking transposition and product for one."""
    if x_nd.shape[1] <= gradient_nf.shape[1]:
        return jax.lax.optimization_barrier(x_nd.T) @ gradient_nf
    return jax.lax.optimization_barrier(jax.lax.optimization_barrier(gradient_nf.T) @ x_nd).T


@jax.custom_vjp
def attention_scores(query_bthk: jax.Array, key_bthk: jax.Array) -> jax.Array:
    """Each query by each key of its head, (B, H, T, T)."""
    return jnp.einsum("bthk,bshk->bhts", query_bthk, key_bthk)


def attention_scores_gradients(factors: Factors, gradient_bhts: jax.Array) -> Factors:
    query_bthk, key_bthk = factors
    by_query_bthk = jnp.einsum("bhts,bshk->bthk", gradient_bhts, key_bthk)
    by_key_bhks = jax.lax.dot_general(query_bthk, gradient_bhts, (((1,), (2,)), ((0, 2), (0, 1))))  # einsum would swap the two
    return by_query_bthk, by_key_bhks.transpose(0, 3, 1, 2)


# What the backward pass keeps is decided by what is computed here: a call of `product` would hide that it is a product.
product.defvjp(lambda x_nd, kernel_df: (x_nd @ kernel_df, (x_nd, kernel_df)), product_gradients)
attention_scores.defvjp(lambda *factors: (attention_scores(*factors), factors), attention_scores_gradients)
