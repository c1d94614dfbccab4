from functools import cache, partial
from typing import Any

import jax
import numpy as np
import optax
import pytest
from quick import quick_jit

from benchmarks.baseline import Transformer
from core.engine.block import Scales
from core.engine.initialization import initial_parameters
from core.engine.model import Measured, forward, taps
from core.engine.parameters import pack
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from tests.engine import restatement
from tests.engine.restatement import unrolled

SIZE = {"layers": 3, "width": 16, "heads": 2, "length": 8, "batch": 2}
TOKENS_BU = np.random.default_rng(3).integers(0, 64, (SIZE["batch"], SIZE["length"] + 1)).astype(np.int32)
TOKENS_BT, TARGETS_BT = TOKENS_BU[:, :-1], TOKENS_BU[:, 1:]


def start(config: RunConfig) -> dict[str, Any]:
    """A run's initial parameters in float64."""
    return jax.tree.map(np.float64, initial_parameters(config))


def somewhere(config: RunConfig) -> dict[str, Any]:
    """Parameters in float64, away from the start of a run, where biases and positions are zero and the norms' scales one."""
    random = np.random.default_rng(5)
    return jax.tree.map(lambda leaf: leaf + 0.2 * random.standard_normal(leaf.shape), initial_parameters(config))


def passed(config: RunConfig, parameters: dict[str, Any]) -> tuple[jax.Array, Measured]:
    placement = PLACEMENTS[config.placement]
    scales = [Scales.of(segment) for _, segment in placement.segments(config.layers)]
    stack = placement.stack(config.layers)
    return forward(pack(parameters), TOKENS_BT, config, stack, scales, taps(stack))


def engine(config: RunConfig, parameters: dict[str, Any]) -> tuple[jax.Array, Measured]:
    return compiled(config)(parameters)


@cache
def compiled(config: RunConfig) -> Any:
    return quick_jit(partial(passed, config))


def engine_loss_and_gradient(config: RunConfig, parameters: dict[str, Any]) -> tuple[jax.Array, dict[str, Any]]:
    def loss_of(parameters: dict[str, Any]) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(passed(config, parameters)[0], TARGETS_BT.ravel()).mean()

    loss, gradient = quick_jit(jax.value_and_grad(loss_of))(parameters)
    assert {leaf.dtype for leaf in jax.tree.leaves((loss, gradient))} == {np.dtype(np.float64)}
    return loss, unrolled(gradient)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_loss_and_gradient_equal_those_of_the_articles_model(placement: str) -> None:
    config = RunConfig(placement=placement, **SIZE)
    parameters = somewhere(config)
    loss, gradient = engine_loss_and_gradient(config, parameters)
    article = quick_jit(jax.value_and_grad(lambda parameters: Transformer(config).loss(parameters, TOKENS_BU)))
    article_loss, article_gradient = article(unrolled(parameters))
    np.testing.assert_allclose(loss, article_loss, rtol=1e-12)
    assert jax.tree.structure(gradient) == jax.tree.structure(article_gradient)
    for (path, leaf), expected in zip(jax.tree_util.tree_leaves_with_path(gradient), jax.tree.leaves(article_gradient), strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=1e-9, atol=1e-12, err_msg=jax.tree_util.keystr(path))


@pytest.mark.usefixtures("float64", "made_up")
@pytest.mark.parametrize(
    ("placement", "norm"),
    [(name, "layernorm") for name in (*PLACEMENTS, "inner", "every", "scalar", "vector", "mixed")]
    + [(name, norm) for name in ("pre", "every", "hybrid") for norm in ("rmsnorm", "dyt")],
)
def test_loss_and_gradient_equal_those_of_the_equation(placement: str, norm: str) -> None:
    check_loss_and_gradient(RunConfig(placement=placement, norm=norm, **SIZE))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("placement", ["pre", "hybrid"])
def test_loss_and_gradient_with_normalized_queries_and_keys(placement: str) -> None:
    check_loss_and_gradient(RunConfig(placement=placement, qk_norm=True, **SIZE))


def check_loss_and_gradient(config: RunConfig) -> None:
    """The gradient of each parameter array, along one random direction, against the restatement's central difference."""
    parameters = somewhere(config)
    loss, gradient = engine_loss_and_gradient(config, parameters)
    flat, structure = jax.tree_util.tree_flatten_with_path(unrolled(parameters))
    leaves = [leaf for _, leaf in flat]

    def moved(i: int, by: np.ndarray) -> float:
        return restatement.loss(config, structure.unflatten([*leaves[:i], leaves[i] + by, *leaves[i + 1 :]]), TOKENS_BT, TARGETS_BT)

    np.testing.assert_allclose(loss, moved(0, np.zeros_like(leaves[0])), rtol=1e-12)
    random = np.random.default_rng(11)
    for i, (path, leaf) in enumerate(flat):
        direction = random.standard_normal(leaf.shape)
        direction *= 1e-6 / np.linalg.norm(direction)
        slope = (moved(i, direction) - moved(i, -direction)) / 2
        derivative = np.vdot(structure.flatten_up_to(gradient)[i], direction)
        np.testing.assert_allclose(derivative, slope, rtol=1e-5, atol=1e-14, err_msg=jax.tree_util.keystr(path))


@pytest.mark.usefixtures("float64", "made_up")
@pytest.mark.parametrize("placement", ["every", "residual_dual"])
def test_the_signal_is_the_losss_gradient_by_what_the_stream_and_what_the_branch_reads(placement: str) -> None:
    """Against central differences of the restatement by every number that a sublayer reads, moved for one of its two ways alone."""
    config = RunConfig(placement=placement, layers=2, width=16, heads=2, length=8, batch=1)
    parameters, stack = somewhere(config), PLACEMENTS[placement].stack(2)
    tokens_bt, targets_bt = TOKENS_BT[:1], TARGETS_BT[:1]
    scales = [Scales.of(segment) for _, segment in PLACEMENTS[placement].segments(2)]

    def loss_of(taps: list[jax.Array]) -> jax.Array:
        logits_nv, _ = forward(pack(parameters), tokens_bt, config, stack, scales, taps)
        return optax.softmax_cross_entropy_with_integer_labels(logits_nv, targets_bt.ravel()).mean()

    power_l22 = np.concatenate(quick_jit(jax.grad(loss_of))(taps(stack)))
    flat = unrolled(parameters)
    moved_l22nd = np.zeros((2, 2, 2, config.length, config.width))
    for way, power in np.ndenumerate(power_l22):
        gradient_nd = np.zeros(moved_l22nd.shape[3:])
        for i in np.ndindex(gradient_nd.shape):
            losses = []
            for by in (1e-5, -1e-5):
                moved_l22nd[*way, *i] = by
                losses.append(restatement.loss(config, flat, tokens_bt, targets_bt, moved_l22nd))
            moved_l22nd[*way, *i] = 0
            gradient_nd[i] = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose(power, (gradient_nd**2).sum(), rtol=1e-6, err_msg=str(way))


@pytest.mark.usefixtures("float64", "made_up")
@pytest.mark.parametrize("placement", ["pre", "post", "every"])
def test_no_logit_depends_on_a_later_token(placement: str) -> None:
    config = RunConfig(placement=placement, **SIZE)
    parameters, moved = somewhere(config), somewhere(config)
    moved["position"][4] += np.random.default_rng(1).standard_normal(config.width)
    before_btv, after_btv = (np.reshape(engine(config, values)[0], (SIZE["batch"], SIZE["length"], 64)) for values in (parameters, moved))
    np.testing.assert_array_equal(before_btv[:, :4], after_btv[:, :4])
    assert (np.abs(before_btv[:, 4:] - after_btv[:, 4:]).max(axis=2) > 1e-4).all()


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_post_norm_keeps_the_stream_at_one_and_pre_norm_lets_it_grow(norm: str) -> None:
    def rms_l(placement: str) -> np.ndarray:
        config = RunConfig(placement=placement, norm=norm, **SIZE | {"width": 64})
        return np.asarray(engine(config, start(config))[1]["stream_rms"])

    # The rms of a norm's output is sqrt(m / (m + eps)) for the mean square m of what it reads, here above 1/4.
    assert (rms_l("post")[1:] < 1).all()
    assert (rms_l("post")[1:] > 1 - 2 * 1e-6).all()
    assert (np.diff(rms_l("pre")) > 0.1).all()


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("final_norm", [True, False])
def test_only_a_final_norm_takes_the_last_streams_scale_from_the_logits(norm: str, final_norm: bool) -> None:
    config = RunConfig(placement="post", norm=norm, final_norm=final_norm, **SIZE)
    parameters, scaled = somewhere(config), somewhere(config)
    for leaf_ld in scaled["segments"][0]["mlp_norm"].values():  # what the last block's norm writes is the last stream
        leaf_ld[-1] *= 5
    (logits_nv, streams), (scaled_nv, scaled_streams) = engine(config, parameters), engine(config, scaled)
    np.testing.assert_allclose(scaled_streams["stream_rms"][-1], 5 * streams["stream_rms"][-1])
    np.testing.assert_allclose(scaled_nv, logits_nv if final_norm else 5 * logits_nv, rtol=1e-5, atol=1e-5)  # eps is 1e-6


def test_placement_none_has_no_norm_at_all(tiny: RunConfig) -> None:
    modules = initial_parameters(RunConfig.from_dict(tiny.to_dict() | {"placement": "none", "final_norm": None}))
    assert modules.keys() == {"embedding", "position", "segments", "output"}
    assert modules["segments"][0].keys() == {"qkv", "attention_output", "mlp_in", "mlp_out"}


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("placement", ["pre", "every", "vector"])
def test_no_type_is_promoted_silently(placement: str) -> None:
    """Optax and Flax's float64 rely on implicit promotion, so strictness is asked of the forward pass alone."""
    config = RunConfig(placement=placement, **SIZE)
    with jax.numpy_dtype_promotion("strict"):
        logits_nv, streams = jax.eval_shape(partial(passed, config), initial_parameters(config))
    assert {leaf.dtype for leaf in jax.tree.leaves((logits_nv, streams))} == {np.dtype(np.float32)}


@pytest.mark.usefixtures("float64")
def test_rezero_starts_as_its_embedding_and_moves_its_gates_alone() -> None:
    """C10: with gates of zero no branch writes anything, so that no gradient reaches a branch's matrices (2003.04887)."""
    config = RunConfig(placement="rezero", **SIZE)
    parameters = start(config)
    logits_nv, _ = engine(config, parameters)
    embedded_nd = parameters["embedding"]["embedding"][TOKENS_BT].reshape(-1, config.width)
    np.testing.assert_allclose(logits_nv, embedded_nd @ parameters["output"]["kernel"], rtol=1e-6)
    _, gradient = engine_loss_and_gradient(config, parameters)
    for i in range(config.layers):
        block = gradient[f"block_{i}"]
        assert block.pop("gate") != 0
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(block))
