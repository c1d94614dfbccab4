from dataclasses import replace

import jax
import numpy as np
import pytest

from benchmarks.baseline import Transformer
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.parameters import parameter_shapes
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from tests.engine import restatement
from tests.engine.restatement import unrolled


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("size", [{"layers": 3}, {"layers": 3, "seed": 123456, "width": 48, "heads": 3, "length": 9}])
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


def test_profiled_factors_are_the_deviation_of_all_branches_below_on_the_first_batch(tiny: RunConfig) -> None:
    """Admin (2004.08249): 1, then sqrt(sum_{j<i} Var f_j), with Var f_j measured where all factors are one."""
    config = replace(tiny, placement="admin_profiled", final_norm=None, layers=3)
    found = unrolled(initial_parameters(config))
    ones = {f"{sublayer}_alpha": np.ones(config.width) for sublayer in ("attention", "mlp")}
    plain = found | {f"block_{i}": found[f"block_{i}"] | ones for i in range(3)}
    tokens_bt = next(batches(config)).tokens_bt
    variances = [written_nd.var(axis=1).mean() for written_nd in restatement.streams(config, plain, tokens_bt)[1]]
    expected = [1.0, *np.sqrt(np.cumsum(variances))[:-1]]
    alphas = [found[f"block_{i}"][name] for i in range(3) for name in ones]
    np.testing.assert_allclose(alphas, np.outer(expected, np.ones(config.width)), rtol=1e-5)
    assert max(expected) > 1.5


def test_parameters_have_the_shapes_that_the_program_is_compiled_for(tiny: RunConfig, made_up: list[str]) -> None:
    for placement in (*made_up, "admin_profiled"):
        config = replace(tiny, placement=placement, final_norm=None)
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), initial_parameters(config))
        assert shapes == parameter_shapes(config, PLACEMENTS[placement].stack(config.layers))
