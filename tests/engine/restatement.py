"""The model written a second time, in plain NumPy, from the equation in core/placement.py alone."""

from typing import Any

import numpy as np

from core.config import RunConfig
from core.placement import PLACEMENTS, BlockSpec, Sites

Parameters = dict[str, Any]


def norm(kind: str, parameters: Parameters, x_nd: np.ndarray) -> np.ndarray:
    if kind == "layernorm":
        x_nd = x_nd - x_nd.mean(axis=1, keepdims=True)
    x_nd = x_nd / np.sqrt((x_nd**2).mean(axis=1, keepdims=True) + 1e-6)
    return x_nd * parameters["scale"] + parameters.get("bias", 0.0)


def dense(parameters: Parameters, x_nd: np.ndarray) -> np.ndarray:
    return x_nd @ parameters["kernel"] + parameters["bias"]


def attended(qkv_te: np.ndarray, heads: int) -> np.ndarray:
    """What the heads of one sequence gather, side by side: (T, D)."""
    query_td, key_td, value_td = np.split(qkv_te, 3, axis=1)
    size = query_td.shape[1] // heads
    gathered_td = np.empty_like(query_td)
    for t, query_d in enumerate(query_td):
        for k in range(0, heads * size, size):
            scores_s = key_td[: t + 1, k : k + size] @ query_d[k : k + size] / np.sqrt(size)
            weights_s = np.exp(scores_s - scores_s.max())
            gathered_td[t, k : k + size] = weights_s @ value_td[: t + 1, k : k + size] / weights_s.sum()
    return gathered_td


def gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def residual(config: RunConfig, spec: BlockSpec, parameters: Parameters, sublayer: str, sites: Sites, x_nd: np.ndarray) -> np.ndarray:
    """x' = N_outer(alpha x + gate N_output(F(s N_input(x)))), with N_inner inside F, before its output projection."""

    def at(site: str, y_nd: np.ndarray) -> np.ndarray:
        if site not in sites:
            return y_nd
        return norm(config.norm, parameters[f"{sublayer}_norm" if len(sites) == 1 else f"{sublayer}_{site}_norm"], y_nd)

    read_nd = spec.input_scale * at("input", x_nd)
    if sublayer == "attention":
        qkv_bte = dense(parameters["qkv"], read_nd).reshape(-1, config.length, 3 * config.width)
        inside_nf = np.concatenate([attended(qkv_te, config.heads) for qkv_te in qkv_bte])
    else:
        inside_nf = gelu(dense(parameters["mlp_in"], read_nd))
    written_nd = dense(parameters["attention_output" if sublayer == "attention" else "mlp_out"], at("inner", inside_nf))
    learned = {"scalar": "gate", "vector": f"{sublayer}_gate", None: ""}[spec.structure.learned_gate]
    gate = parameters.get(learned, spec.gate)
    return at("outer", spec.alpha * x_nd + gate * at("output", written_nd))


def streams(config: RunConfig, parameters: Parameters, tokens_bt: np.ndarray) -> list[np.ndarray]:
    """x_0 to x_L, each (N, D), from unrolled parameters."""
    x_nd = (parameters["embedding"]["embedding"][tokens_bt] + parameters["position"]).reshape(-1, config.width)
    found = [x_nd]
    for i in range(config.layers):
        spec, block = PLACEMENTS[config.placement].block(i + 1, config.layers), parameters[f"block_{i}"]
        x_nd = residual(config, spec, block, "attention", spec.structure.attention, x_nd)
        x_nd = residual(config, spec, block, "mlp", spec.structure.feed_forward, x_nd)
        found.append(x_nd)
    return found


def loss(config: RunConfig, parameters: Parameters, tokens_bt: np.ndarray, targets_bt: np.ndarray) -> float:
    """Mean cross-entropy in nats."""
    x_nd = streams(config, parameters, tokens_bt)[-1]
    if config.final_norm:
        x_nd = norm(config.norm, parameters["final_norm"], x_nd)
    logits_nv = x_nd @ parameters["output"]["kernel"]
    logits_nv = logits_nv - logits_nv.max(axis=1, keepdims=True)
    return float((np.log(np.exp(logits_nv).sum(axis=1)) - np.take_along_axis(logits_nv, targets_bt.reshape(-1, 1), axis=1)[:, 0]).mean())


def unrolled(parameters: Parameters) -> Parameters:
    """The engine's stacked parameters as the article's modules name them: block_0 and so on, as NumPy arrays."""
    blocks: list[Parameters] = []
    for segment in parameters["segments"]:
        count = len(segment["qkv"]["kernel"])
        blocks += [nth(segment, i) for i in range(count)]
    rest = {name: value for name, value in parameters.items() if name != "segments"}
    return rest | {f"block_{i}": block for i, block in enumerate(blocks)}


def nth(stacked: Any, i: int) -> Any:
    return {name: nth(value, i) for name, value in stacked.items()} if isinstance(stacked, dict) else np.asarray(stacked)[i]
