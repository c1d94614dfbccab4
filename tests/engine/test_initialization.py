from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.baseline import Transformer
from core.drawing.equations import equations
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.parameters import parameter_shapes
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from tests.engine import restatement
from tests.engine.restatement import unrolled


@pytest.mark.parametrize(
    ("placement", "size"), [("pre", {"layers": 3}), ("post", {"layers": 2, "seed": 123456, "width": 48, "heads": 3, "length": 9})]
)
def test_every_parameter_equals_linens_own_bit_for_bit(placement: str, size: dict[str, int]) -> None:
    config = RunConfig(placement=placement, **size)
    ours, linens = unrolled(initial_parameters(config)), Transformer(config).initial()
    assert jax.tree.structure(ours) == jax.tree.structure(linens)
    for (path, leaf), linens_leaf in zip(jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(linens), strict=True):
        assert leaf.dtype == linens_leaf.dtype == np.float32
        np.testing.assert_array_equal(leaf, linens_leaf, err_msg=jax.tree_util.keystr(path))


def test_a_run_of_rmsnorm_starts_as_one_of_layernorm_but_for_the_norms_bias(tiny: RunConfig) -> None:
    layernorm, rmsnorm = (unrolled(initial_parameters(replace(tiny, norm=norm))) for norm in ("layernorm", "rmsnorm"))
    for module in ("attention_norm", "mlp_norm"):
        assert layernorm["block_1"][module].keys() - rmsnorm["block_1"][module].keys() == {"bias"}
    np.testing.assert_array_equal(layernorm["block_1"]["qkv"]["kernel"], rmsnorm["block_1"]["qkv"]["kernel"])


def test_gains_multiply_the_matrices_that_they_name_and_no_others(tiny: RunConfig, made_up: list[str]) -> None:
    plain = unrolled(initial_parameters(replace(tiny, placement="none", final_norm=True)))
    scaled = unrolled(initial_parameters(replace(tiny, placement="scalar")))
    for i in range(tiny.layers):
        gains = dict(PLACEMENTS["scalar"].block(i + 1, tiny.layers).init_gain)
        expected = {name: plain[f"block_{i}"][name]["kernel"] for name in ("attention_output", "mlp_in", "mlp_out")}
        query, key, value = np.split(plain[f"block_{i}"]["qkv"]["kernel"], 3, axis=1)
        expected = {name: np.float32(gains[name]) * kernel for name, kernel in expected.items()}
        expected["qkv"] = np.hstack([np.float32(gains["query"]) * query, key, np.float32(gains["value"]) * value])
        for module, kernel in expected.items():
            np.testing.assert_array_equal(scaled[f"block_{i}"][module]["kernel"], kernel, err_msg=module)
    np.testing.assert_array_equal(scaled["output"]["kernel"], plain["output"]["kernel"])


@pytest.mark.parametrize(("placement", "gates", "shape"), [("scalar", ["gate"], ()), ("vector", ["attention_gate", "mlp_gate"], (16,))])
def test_learned_gates_start_at_the_value_of_their_block(
    tiny: RunConfig, made_up: list[str], placement: str, gates: list[str], shape: tuple[int]
) -> None:
    parameters = unrolled(initial_parameters(replace(tiny, placement=placement)))
    for i in range(tiny.layers):
        assert [name for name in parameters[f"block_{i}"] if name.endswith("gate")] == gates
        for gate in gates:
            value = PLACEMENTS[placement].block(i + 1, tiny.layers).gate
            np.testing.assert_array_equal(parameters[f"block_{i}"][gate], np.full(shape, value, np.float32))


def authors_factors(config: RunConfig) -> tuple[np.ndarray, np.ndarray]:
    """Admin's factors of all sublayers, as Transformer-Clinic (70f72b7) takes them in a profiling run, and the branches' variances."""
    parameters, tokens_bt = unrolled(initial_parameters(config)), next(batches(config)).tokens_bt
    x_nd = (parameters["embedding"]["embedding"][tokens_bt] + parameters["position"]).reshape(-1, config.width).astype(float)
    ratio, ratios, variances = 1.0, [], []
    for i, spec in enumerate(PLACEMENTS[config.placement].block(layer, config.layers) for layer in range(1, config.layers + 1)):
        for sublayer, sites in (("attention", spec.structure.attention), ("mlp", spec.structure.feed_forward)):
            ratios.append(ratio)
            block = parameters[f"block_{i}"] | {f"{sublayer}_alpha": ratio}
            out_nd, written_nd = restatement.residual(config, spec, block, sublayer, sites, x_nd)
            variances.append(written_nd.var())
            x_nd, ratio = out_nd, np.sqrt((ratio * x_nd).var() + written_nd.var())
    return np.array(ratios), np.array(variances)


def profiled_factors(config: RunConfig) -> np.ndarray:
    """All entries of a run's factors when it starts: (2 L, D)."""
    found = unrolled(initial_parameters(config))
    return np.array([found[f"block_{i}"][f"{sublayer}_alpha"] for i in range(config.layers) for sublayer in ("attention", "mlp")])


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_profiled_factors_are_those_of_the_authors_code_on_the_first_batch(tiny: RunConfig, norm: str) -> None:
    config = replace(tiny, placement="admin_profiled", final_norm=None, layers=3, norm=norm)
    expected, _ = authors_factors(config)
    np.testing.assert_allclose(profiled_factors(config), np.outer(expected, np.ones(config.width)), rtol=1e-5)
    assert max(expected) > 1.5


def test_profiled_factors_at_twelve_blocks_are_those_that_were_taken_with_the_authors_code() -> None:
    """From the same matrices, by somebody else. No factor is below one, as it would be without the stream's variance."""
    config = RunConfig(placement="admin_profiled")
    factors = profiled_factors(config)[:, 0]
    np.testing.assert_allclose([*factors[:4], factors[-1]], [1, 1.112, 1.276, 1.397, 3.452], atol=5e-4)
    assert factors.min() == 1
    _, variances = authors_factors(config)
    assert np.sqrt(variances.cumsum()).min() < 0.6


def test_the_shown_formulas_give_the_profiled_factors(tiny: RunConfig) -> None:
    """Read as they stand on the page, they are evaluated with a block's own x, A(x), h and F(h)."""
    config = replace(tiny, placement="admin_profiled", final_norm=None, layers=3)
    [segment] = equations(PLACEMENTS["admin_profiled"], config.layers)
    first, others, of_f = (line.split(" = ")[1].split(r"\ \text")[0] for line in segment.constants)
    readable = {r"\operatorname{Var}": "var", r"\operatorname{diag}(\omega_A) ": "w_a * ", r"\operatorname{diag}(\omega_F) ": "w_f * "}
    for latex, words in {**readable, "A(x)": "a", "F(h)": "f"}.items():
        others, of_f = (text.replace(latex, words) for text in (others, of_f))
    parameters, tokens_bt = unrolled(initial_parameters(config)), next(batches(config)).tokens_bt
    streams, written = restatement.streams(config, parameters, tokens_bt)
    below: dict[str, Any] = {}
    for i in range(config.layers):
        w_a = float(first) if i == 0 else eval(others, below) ** 0.5
        a, f = written[2 * i : 2 * i + 2]
        h = restatement.norm(config.norm, parameters[f"block_{i}"]["attention_norm"], w_a * streams[i] + a)
        w_f = eval(of_f, {"var": np.var, "w_a": w_a, "x": streams[i], "a": a}) ** 0.5
        below = {"var": np.var, "w_f": w_f, "h": h, "f": f}
        np.testing.assert_allclose(parameters[f"block_{i}"]["attention_alpha"], w_a, rtol=1e-5)
        np.testing.assert_allclose(parameters[f"block_{i}"]["mlp_alpha"], w_f, rtol=1e-5)


def test_parameters_have_the_shapes_that_the_program_is_compiled_for(tiny: RunConfig, made_up: list[str]) -> None:
    for placement in (*made_up, "admin_profiled"):
        config = replace(tiny, placement=placement, final_norm=None)
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), initial_parameters(config))
        assert shapes == parameter_shapes(config, PLACEMENTS[placement].stack(config.layers))
