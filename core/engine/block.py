"""A block of the causal Transformer. The residual sublayer below is the equation of core/placement/record.py, whose records it reads.

Glossary of shapes: B batch, T time, N = B T tokens, D width, H heads, K head width, F feed-forward width, L blocks, V vocabulary.
Outside attention the tokens are one axis: the matrix products are larger and XLA's CPU code is faster.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
from flax import linen as nn

from core.engine.product import attention_scores, product
from core.placement.record import BlockSpec, Matrix, Site, Sites, Structure
from core.runs.config import RunConfig

EPSILON = 1e-6
SUBLAYERS = ("attention", "mlp")  # as parameters name them
DYT_ALPHA = 0.5  # at first
Branch = Callable[[jax.Array, Callable[[jax.Array], jax.Array]], jax.Array]


def contract(x_nd: jax.Array, kernel_df: jax.Array, dimensions: Any, **_: Any) -> jax.Array:
    """What Linen's Dense calls for its product: always of x's last axis by the kernel's first, which is all that `dimensions` says."""
    return product(x_nd, kernel_df)


Dense = partial(nn.Dense, dot_general=contract)


class DyT(nn.Module):
    """gamma tanh(alpha x) + beta, with one learned number alpha: it takes a norm's place (Zhu et al. 2025, arXiv 2503.10622)."""

    @nn.compact
    def __call__(self, x_nd: jax.Array) -> jax.Array:
        alpha = self.param("alpha", nn.initializers.constant(DYT_ALPHA), ())
        scale_d = self.param("scale", nn.initializers.ones_init(), (x_nd.shape[-1],))
        bias_d = self.param("bias", nn.initializers.zeros_init(), (x_nd.shape[-1],))
        return scale_d * jnp.tanh(alpha * x_nd) + bias_d


NORM_MODULES: dict[str, Callable[..., nn.Module]] = {
    "layernorm": partial(nn.LayerNorm, epsilon=EPSILON),
    "rmsnorm": partial(nn.RMSNorm, epsilon=EPSILON),
    "dyt": DyT,
}


class Scales(NamedTuple):
    """A block's numbers, or all blocks' along a leading axis: arguments of the compiled program, not part of it."""

    alpha: Any
    gate: Any
    input_scale: Any

    @classmethod
    def of(cls, blocks: list[BlockSpec]) -> "Scales":
        return cls(*(jnp.array([getattr(block, name) for block in blocks], float) for name in cls._fields))


@jax.custom_vjp
def tap(x: jax.Array, power: jax.Array) -> jax.Array:
    """x itself. The gradient by `power`, which is a number that does nothing, is the squared L2 norm of the gradient that arrives here."""
    return x


tap.defvjp(lambda x, power: (x, None), lambda _, gradient: (gradient, jnp.vdot(gradient, gradient)))


def norm_name(sublayer: str, sites: Sites, site: Site) -> str:
    """The article's module name where a sublayer has one norm; with the site in it where there are more."""
    return f"{sublayer}_norm" if len(sites) == 1 else f"{sublayer}_{site}_norm"


class Block(nn.Module):
    """Attention, then feed-forward, each a residual sublayer with norms at its structure's sites.

    Maps the stream to the stream above, and to the sum of what the two branches wrote.
    """

    structure: Structure
    norm: str
    heads: int
    length: int

    @nn.compact
    def __call__(self, x_nd: jax.Array, scales: Scales, tap_22: Any = (None, None)) -> tuple[jax.Array, jax.Array]:
        structure, skip = self.structure, x_nd if self.structure.block_skip else 0.0
        attention, mlp = (scales._replace(gate=gate) for gate in self.gates(x_nd.shape[-1], scales))
        if structure.profiled:
            attention, mlp = (
                attention._replace(alpha=self.stream_scale("attention", x_nd)),
                mlp._replace(alpha=self.stream_scale("mlp", x_nd)),
            )
        h_nd, attended_nd = self.residual("attention", structure.attention, self.attention, x_nd, attention, tap_22[0])
        out_nd, fed_nd = self.residual("mlp", structure.feed_forward, self.feed_forward, h_nd, mlp, tap_22[1], skip)
        return out_nd, attended_nd + fed_nd

    def residual(
        self,
        sublayer: str,
        sites: Sites,
        branch: Branch,
        x_nd: jax.Array,
        scales: Scales,
        tap_2: Any = None,
        skip: jax.Array | float = 0.0,
    ) -> tuple[jax.Array, jax.Array]:
        """The sublayer's output, and what its branch adds to the stream; `skip` is added, too."""

        def norm(site: Site, y_nd: jax.Array) -> jax.Array:
            return NORM_MODULES[self.norm](name=norm_name(sublayer, sites, site))(y_nd) if site in sites else y_nd

        stream_nd, read_nd = (x_nd, x_nd) if tap_2 is None else (tap(x_nd, power) for power in tap_2)
        y_nd = scales.input_scale * norm("input", read_nd)
        y_nd = branch(y_nd, lambda inner_nf: norm("inner", inner_nf))
        y_nd = scales.gate * norm("output", y_nd)
        stream_nd = scales.alpha * stream_nd
        self.sow("intermediates", sublayer, (stream_nd, y_nd))  # kept for who asks for it, as core.engine.admin does
        return norm("outer", stream_nd + y_nd + skip), y_nd

    def gates(self, width: int, scales: Scales) -> tuple[jax.Array, jax.Array]:
        """What multiplies the two branches; `core.engine.initialization` sets the learned ones to the placement's initial value."""
        zeros = nn.initializers.zeros_init()
        match self.structure.learned_gate:
            case "scalar":
                gate = self.param("gate", zeros, ())
                return gate, gate
            case "vector":
                return self.param("attention_gate", zeros, (width,)), self.param("mlp_gate", zeros, (width,))
            case _:
                return scales.gate, scales.gate

    def stream_scale(self, sublayer: str, x_nd: jax.Array) -> jax.Array:
        return self.param(f"{sublayer}_alpha", nn.initializers.ones_init(), x_nd.shape[-1:])

    def attention(self, x_nd: jax.Array, inner_norm: Callable[[jax.Array], jax.Array]) -> jax.Array:
        tokens, width = x_nd.shape
        qkv_3nd = jnp.split(Dense(3 * width, name="qkv")(x_nd), 3, axis=-1)
        query_bthk, key_bthk, value_bthk = map(self.of_heads, get_args(Matrix), qkv_3nd)
        scores_bhts = attention_scores(query_bthk, key_bthk) / jnp.sqrt(width // self.heads).astype(x_nd.dtype)
        causal_ts = jnp.tril(jnp.ones((self.length, self.length), bool))
        weights_bhts = nn.softmax(jnp.where(causal_ts, scores_bhts, jnp.finfo(x_nd.dtype).min))
        heads_bthk = jnp.einsum("bhts,bshk->bthk", weights_bhts, value_bthk)
        if self.structure.head_gain:
            heads_bthk = self.param("head_gain", nn.initializers.ones_init(), (self.heads, 1)) * heads_bthk
        return Dense(width, name="attention_output")(inner_norm(heads_bthk.reshape(tokens, width)))

    def of_heads(self, matrix: Matrix, y_nd: jax.Array) -> jax.Array:
        y_bthk = y_nd.reshape(-1, self.length, self.heads, y_nd.shape[-1] // self.heads)
        return NORM_MODULES[self.norm](name=f"{matrix}_norm")(y_bthk) if matrix in self.structure.head_norms else y_bthk

    def feed_forward(self, x_nd: jax.Array, inner_norm: Callable[[jax.Array], jax.Array]) -> jax.Array:
        width = x_nd.shape[-1]
        hidden_nf = nn.gelu(Dense(4 * width, name="mlp_in")(x_nd))
        return Dense(width, name="mlp_out")(inner_norm(hidden_nf))


def block_of(config: RunConfig, structure: Structure) -> Block:
    if config.qk_norm:
        structure = replace(structure, head_norms=structure.head_norms | {"query", "key"})
    return Block(structure, config.norm, config.heads, config.length)
