"""The article's two block Jacobians, I + J_F J_N and J_N (I + J_F), by automatic differentiation of the blocks themselves."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from quick import quick_jit

from core.engine.block import EPSILON, NORM_MODULES, Block, Scales
from core.placement.table import PLACEMENTS

LENGTH, WIDTH = 4, 8
PLAIN = Scales(1.0, 1.0, 1.0)
Sublayer = Literal["attention", "mlp"]


class Residual(Block):
    """One residual sublayer of a block alone."""

    sublayer: Sublayer = "attention"

    @nn.compact
    def __call__(self, x_nd: jax.Array, scales: Scales) -> jax.Array:
        if self.sublayer == "attention":
            return self.residual("attention", self.structure.attention, self.attention, x_nd, scales)[0]
        return self.residual("mlp", self.structure.feed_forward, self.feed_forward, x_nd, scales)[0]


class Branch(Residual):
    """The branch F of a residual sublayer alone."""

    @nn.compact
    def __call__(self, x_nd: jax.Array, scales: Scales) -> jax.Array:
        return (self.attention if self.sublayer == "attention" else self.feed_forward)(x_nd, lambda inner_nf: inner_nf)


def stream() -> np.ndarray:
    return 0.5 + 2.0 * np.random.default_rng(2).standard_normal((LENGTH, WIDTH))


def parameters_of(block: Block) -> Any:
    random = np.random.default_rng(7)
    shapes = jax.eval_shape(block.init, jax.random.PRNGKey(0), stream(), PLAIN)["params"]
    return jax.tree.map(lambda leaf: 0.5 * random.standard_normal(leaf.shape), shapes)


def jacobian(function: Callable[[jax.Array], jax.Array], x: Any) -> np.ndarray:
    """The derivative of all of a function's outputs by all of its inputs, both flattened."""
    return np.asarray(quick_jit(jax.jacrev(function))(jnp.asarray(x))).reshape(np.size(x), np.size(x))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("sublayer", ["attention", "mlp"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_sublayers_jacobian_is_the_articles(placement: str, sublayer: Sublayer, norm: str) -> None:
    structure = PLACEMENTS[placement].block(1, 1).structure
    residual, branch = (kind(structure, norm, 2, LENGTH, sublayer) for kind in (Residual, Branch))
    parameters = parameters_of(residual)

    def of_norm(x_nd: jax.Array) -> jax.Array:
        return NORM_MODULES[norm](epsilon=EPSILON).apply({"params": parameters[f"{sublayer}_norm"]}, x_nd)

    def of_branch(x_nd: jax.Array) -> jax.Array:
        return branch.apply({"params": parameters}, x_nd, PLAIN)

    identity, x_nd = np.eye(stream().size), stream()
    if placement == "pre":
        expected = identity + jacobian(of_branch, of_norm(x_nd)) @ jacobian(of_norm, x_nd)
    else:
        expected = jacobian(of_norm, x_nd + of_branch(x_nd)) @ (identity + jacobian(of_branch, x_nd))
    found = jacobian(lambda x_nd: residual.apply({"params": parameters}, x_nd, PLAIN), x_nd)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert np.abs(expected - identity).max() > 0.1


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_blocks_jacobian_is_the_product_of_its_sublayers(placement: str) -> None:
    structure, x_nd = PLACEMENTS[placement].block(1, 1).structure, stream()
    block = Block(structure, "layernorm", 2, LENGTH)
    parameters = parameters_of(block)
    attention, mlp = (
        lambda x_nd, sublayer=sublayer: Residual(structure, "layernorm", 2, LENGTH, sublayer).apply({"params": parameters}, x_nd, PLAIN)
        for sublayer in ("attention", "mlp")
    )
    found = jacobian(lambda x_nd: block.apply({"params": parameters}, x_nd, PLAIN)[0], x_nd)
    np.testing.assert_allclose(found, jacobian(mlp, attention(x_nd)) @ jacobian(attention, x_nd), rtol=0, atol=1e-10)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])  # the smallest one feels epsilon
def test_layernorm_kills_two_directions_and_scales_the_others(size: float) -> None:
    """Its Jacobian's eigenvalues: 0 for the shift, eps / sigma^3 for the input's own direction, 1 / sigma for the rest."""
    norm = NORM_MODULES["layernorm"](epsilon=EPSILON)
    parameters = {"scale": np.ones(WIDTH), "bias": np.zeros(WIDTH)}
    g_d = size * stream()[0]
    sigma = np.sqrt(g_d.var() + EPSILON)
    j_dd = sigma * jacobian(lambda g_d: norm.apply({"params": parameters}, g_d), g_d)
    own_d = (g_d - g_d.mean()) / g_d.std()
    np.testing.assert_allclose(j_dd @ np.ones(WIDTH), 0, atol=1e-10)
    np.testing.assert_allclose(j_dd @ own_d, EPSILON / sigma**2 * own_d, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.svd(j_dd, compute_uv=False)[: WIDTH - 2], 1, rtol=1e-9)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_rmsnorm_kills_one_direction_and_scales_the_others(size: float) -> None:
    norm = NORM_MODULES["rmsnorm"](epsilon=EPSILON)
    g_d = size * stream()[0]
    r = np.sqrt((g_d**2).mean() + EPSILON)
    j_dd = r * jacobian(lambda g_d: norm.apply({"params": {"scale": np.ones(WIDTH)}}, g_d), g_d)
    own_d = g_d / np.linalg.norm(g_d)
    np.testing.assert_allclose(j_dd @ own_d, EPSILON / r**2 * own_d, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.svd(j_dd, compute_uv=False)[: WIDTH - 1], 1, rtol=1e-9)
