"""How a block, and the stack of blocks, stretches and shrinks what passes it: the singular values of its Jacobian.

They are those of the first token of the run's first sequence. It attends to itself alone, so its Jacobian, D x D, has every way there is,
and that of the stack is the product of the blocks'. Where there is a second stream, the stack's is that of both, 2 D x D.

In NumPy and float64, forward mode: what is zero by algebra is seen to be zero, and nothing is compiled for what takes milliseconds
(docs/performance.md). The tests hold it to the engine's own derivatives. Shapes: n numbers of a token, and their slopes by the D of x.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from core.engine.block import EPSILON, norm_name
from core.engine.feed import batches
from core.placement.design import placement_of
from core.placement.record import BlockSpec, Site, Sites
from core.runs.config import RunConfig

Parameters = dict[str, Any]


class Dual(NamedTuple):
    value_n: np.ndarray
    slope_nd: np.ndarray

    def plus(self, other: "Dual") -> "Dual":
        return Dual(self.value_n + other.value_n, self.slope_nd + other.slope_nd)

    def times(self, factor: Any) -> "Dual":
        """A number, or one for each of the n."""
        return Dual(self.value_n * factor, self.slope_nd * np.reshape(factor, (-1, 1)))


def singular_values(config: RunConfig, parameters: Parameters) -> np.ndarray:
    """(L + 1, D) float32, descending: of the stack, dx_L / dx_0, then of blocks 1..L, dx' / dx.

    Infinite where they are beyond float32, not a number where a matrix has an entry that is none, or is beyond float64.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array([values_of(matrix) for matrix in jacobians(config, parameters)]).astype(np.float32)


def values_of(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.svd(matrix, compute_uv=False) if np.isfinite(matrix).all() else np.full(matrix.shape[1], np.nan)


def jacobians(config: RunConfig, parameters: Parameters) -> list[np.ndarray]:
    """Of the stack, (D, D) or (2 D, D), then of every block, (D, D)."""
    parameters = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), parameters)
    placement = placement_of(config.placement)
    identity_dd = np.eye(config.width)
    x = Dual(parameters["embedding"]["embedding"][next(batches(config)).tokens_bt[0, 0]] + parameters["position"][0], identity_dd)
    if placement.embedding_norm:
        x = normalize(config.norm, parameters["embedding_norm"], x)
    stream_dd = sum_dd = identity_dd
    found = []
    for layer, block in enumerate(blocks(parameters), 1):
        x, written = through(config, placement.block(layer, config.layers), block, Dual(x.value_n, identity_dd))
        sum_dd = sum_dd + written.slope_nd @ stream_dd
        stream_dd = x.slope_nd @ stream_dd
        found.append(x.slope_nd)
    return [np.concatenate([stream_dd, sum_dd]) if placement.dual_stream else stream_dd, *found]


def blocks(parameters: Parameters) -> Iterator[Parameters]:
    """One after the other."""
    for segment in parameters["segments"]:
        for i in range(len(segment["qkv"]["bias"])):
            yield jax.tree.map(lambda stacked, i=i: stacked[i], segment)


def through(config: RunConfig, spec: BlockSpec, parameters: Parameters, x: Dual) -> tuple[Dual, Dual]:
    """The block's output, and what its two branches write."""
    h, attended = residual(config, spec, parameters, "attention", spec.structure.attention, x)
    out, fed = residual(config, spec, parameters, "mlp", spec.structure.feed_forward, h, x if spec.structure.block_skip else None)
    return out, attended.plus(fed)


def residual(
    config: RunConfig, spec: BlockSpec, parameters: Parameters, sublayer: str, sites: Sites, x: Dual, skip: Dual | None = None
) -> tuple[Dual, Dual]:
    """A sublayer's output, and what its branch adds to the stream."""

    def norm(site: Site, y: Dual) -> Dual:
        return normalize(config.norm, parameters[norm_name(sublayer, sites, site)], y) if site in sites else y

    read = norm("input", x).times(spec.input_scale)
    if sublayer == "attention":
        written = dense(parameters["attention_output"], norm("inner", heads(config, spec, parameters, read)))
    else:
        written = dense(parameters["mlp_out"], norm("inner", gelu(dense(parameters["mlp_in"], read))))
    learned = {"scalar": "gate", "vector": f"{sublayer}_gate", None: ""}[spec.structure.learned_gate]
    written = norm("output", written).times(parameters.get(learned, spec.gate))
    added = x.times(parameters.get(f"{sublayer}_alpha", spec.alpha)).plus(written)
    return norm("outer", added.plus(skip) if skip else added), written


def heads(config: RunConfig, spec: BlockSpec, parameters: Parameters, read: Dual) -> Dual:
    """What the heads of a token that attends to itself alone gather: its values."""
    kernel, bias = (np.split(parameters["qkv"][name], 3, axis=-1)[2] for name in ("kernel", "bias"))
    values = dense({"kernel": kernel, "bias": bias}, read)
    if "value" in spec.structure.head_norms:
        parts = zip(*(np.split(part, config.heads) for part in values), strict=True)
        normed = [normalize(config.norm, parameters["value_norm"], Dual(*part)) for part in parts]
        values = Dual(*(np.concatenate(part) for part in zip(*normed, strict=True)))
    if spec.structure.head_gain:
        values = values.times(np.repeat(parameters["head_gain"], config.width // config.heads))
    return values


def dense(parameters: Parameters, y: Dual) -> Dual:
    return Dual(y.value_n @ parameters["kernel"] + parameters["bias"], parameters["kernel"].T @ y.slope_nd)


def normalize(kind: str, parameters: Parameters, y: Dual) -> Dual:
    """The slopes are J = diag(gamma) / sigma (I - 1 1^T / n - y y^T / (n sigma^2)) of the centred y, RMSNorm's without centring."""
    if kind == "dyt":
        value_n = np.tanh(parameters["alpha"] * y.value_n)
        slope_nd = y.slope_nd * (parameters["alpha"] * (1 - value_n**2))[:, None]
    else:
        if kind == "layernorm":
            y = Dual(y.value_n - y.value_n.mean(), y.slope_nd - y.slope_nd.mean(axis=0))
        sigma = np.sqrt(np.mean(y.value_n**2) + EPSILON)
        value_n = y.value_n / sigma
        slope_nd = (y.slope_nd - np.outer(value_n, value_n @ y.slope_nd) / len(value_n)) / sigma
    scaled = Dual(value_n, slope_nd).times(parameters["scale"])
    return Dual(scaled.value_n + parameters.get("bias", 0.0), scaled.slope_nd)


def gelu(y: Dual) -> Dual:
    """GELU in its form with tanh, as Flax has it."""
    inner_n = np.sqrt(2 / np.pi) * (y.value_n + 0.044715 * y.value_n**3)
    tanh_n = np.tanh(inner_n)
    slope_n = (1 + tanh_n) / 2 + y.value_n / 2 * (1 - tanh_n**2) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * y.value_n**2)
    return Dual(y.value_n * (1 + tanh_n) / 2, y.slope_nd * slope_n[:, None])
