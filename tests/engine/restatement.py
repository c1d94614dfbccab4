"""The model written a second time, in plain NumPy, from the equation in core/placement/record.py alone."""

from typing import Any

import numpy as np

from core.placement.record import BlockSpec, Sites
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig

Parameters = dict[str, Any]


def norm(kind: str, parameters: Parameters, x_nd: np.ndarray) -> np.ndarray:
    if kind == "dyt":
        return parameters["scale"] * np.tanh(parameters["alpha"] * x_nd) + parameters["bias"]
    if kind == "layernorm":
        x_nd = x_nd - x_nd.mean(axis=1, keepdims=True)
    x_nd = x_nd / np.sqrt((x_nd**2).mean(axis=1, keepdims=True) + 1e-6)
    return x_nd * parameters["scale"] + parameters.get("bias", 0.0)


def dense(parameters: Parameters, x_nd: np.ndarray) -> np.ndarray:
    return x_nd @ parameters["kernel"] + parameters["bias"]


def attended(config: RunConfig, parameters: Parameters, normed: set[str], qkv_te: np.ndarray) -> np.ndarray:
    """What the heads of one sequence gather, side by side: (T, D)."""
    gathered_thk = []
    for h in range(config.heads):
        matrices_tk = [np.split(matrix_td, config.heads, axis=1)[h] for matrix_td in np.split(qkv_te, 3, axis=1)]
        query_tk, key_tk, value_tk = (
            norm(config.norm, parameters[f"{name}_norm"], matrix_tk) if name in normed else matrix_tk
            for name, matrix_tk in zip(("query", "key", "value"), matrices_tk, strict=True)
        )
        gain = parameters["head_gain"][h] if "head_gain" in parameters else 1.0
        scores_ts = np.where(np.tri(config.length, dtype=bool), query_tk @ key_tk.T / np.sqrt(key_tk.shape[1]), -np.inf)
        weights_ts = np.exp(scores_ts - scores_ts.max(axis=1, keepdims=True))
        gathered_thk.append(gain * (weights_ts @ value_tk) / weights_ts.sum(axis=1, keepdims=True))
    return np.concatenate(gathered_thk, axis=1)


def gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def residual(
    config: RunConfig,
    spec: BlockSpec,
    parameters: Parameters,
    sublayer: str,
    sites: Sites,
    x_nd: np.ndarray,
    moved_2nd: Any = (0.0, 0.0),
    skip: Any = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """x' = N_outer(alpha x + gate N_output(F(s N_input(x))) + skip), with N_inner inside F, before its output projection.

    Also what the branch adds: gate N_output(F(...)). `moved_2nd` is added to the x of the addition and to the one that the branch reads.
    """

    def at(site: str, y_nd: np.ndarray) -> np.ndarray:
        if site not in sites:
            return y_nd
        return norm(config.norm, parameters[f"{sublayer}_norm" if len(sites) == 1 else f"{sublayer}_{site}_norm"], y_nd)

    read_nd = spec.input_scale * at("input", x_nd + moved_2nd[1])
    if sublayer == "attention":
        qkv_bte = dense(parameters["qkv"], read_nd).reshape(-1, config.length, 3 * config.width)
        normed = {*spec.structure.head_norms, *(("query", "key") if config.qk_norm else ())}
        inside_nf = np.concatenate([attended(config, parameters, normed, qkv_te) for qkv_te in qkv_bte])
    else:
        inside_nf = gelu(dense(parameters["mlp_in"], read_nd))
    written_nd = dense(parameters["attention_output" if sublayer == "attention" else "mlp_out"], at("inner", inside_nf))
    learned = {"scalar": "gate", "vector": f"{sublayer}_gate", None: ""}[spec.structure.learned_gate]
    gate = parameters.get(learned, spec.gate)
    added_nd = gate * at("output", written_nd)
    alpha = parameters.get(f"{sublayer}_alpha", spec.alpha)
    return at("outer", alpha * (x_nd + moved_2nd[0]) + added_nd + skip), added_nd


def streams(
    config: RunConfig, parameters: Parameters, tokens_bt: np.ndarray, moved_l22nd: Any = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """x_0 to x_L, from unrolled parameters, and what each of the 2 L branches adds, each (N, D)."""
    x_nd = (parameters["embedding"]["embedding"][tokens_bt] + parameters["position"]).reshape(-1, config.width)
    if PLACEMENTS[config.placement].embedding_norm:
        x_nd = norm(config.norm, parameters["embedding_norm"], x_nd)
    found, written = [x_nd], []
    for i in range(config.layers):
        spec, block = PLACEMENTS[config.placement].block(i + 1, config.layers), parameters[f"block_{i}"]
        skip = x_nd if spec.structure.block_skip else 0.0
        attention, mlp = np.zeros((2, 2)) if moved_l22nd is None else moved_l22nd[i]
        h_nd, attended_nd = residual(config, spec, block, "attention", spec.structure.attention, x_nd, attention)
        x_nd, fed_nd = residual(config, spec, block, "mlp", spec.structure.feed_forward, h_nd, mlp, skip)
        found.append(x_nd)
        written += [attended_nd, fed_nd]
    return found, written


def loss(
    config: RunConfig,
    parameters: Parameters,
    tokens_bt: np.ndarray,
    targets_bt: np.ndarray,
    moved_l22nd: Any = None,
    counted_bt: Any = True,
) -> float:
    """Mean cross-entropy in nats of the positions that count."""
    found, written = streams(config, parameters, tokens_bt, moved_l22nd)
    dual = PLACEMENTS[config.placement].dual_stream
    end_nd = found[0] + sum(written) if dual else found[-1]
    if config.final_norm:
        end_nd = norm(config.norm, parameters["final_norm"], end_nd)
    logits_nv = (found[-1] + end_nd if dual else end_nd) @ parameters["output"]["kernel"]
    logits_nv = logits_nv - logits_nv.max(axis=1, keepdims=True)
    loss_n = np.log(np.exp(logits_nv).sum(axis=1)) - np.take_along_axis(logits_nv, targets_bt.reshape(-1, 1), axis=1)[:, 0]
    return float(loss_n[np.broadcast_to(counted_bt, targets_bt.shape).ravel()].mean())


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
