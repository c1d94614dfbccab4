from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from quick import quick_jit

from core.engine.block import Scales, block_of
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.jacobian import jacobians, singular_values
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from tests.engine import restatement
from tests.engine.restatement import unrolled


def somewhere(config: RunConfig) -> Any:
    """Parameters away from the start of a run, where biases are zero and the norms' scales one."""
    random = np.random.default_rng(5)
    return jax.tree.map(lambda leaf: leaf + 0.2 * random.standard_normal(leaf.shape), initial_parameters(config))


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("placement", "norm"),
    [(name, "layernorm") for name in (*PLACEMENTS, "inner", "every", "scalar", "vector", "mixed")]
    + [(name, norm) for name in ("every", "hybrid") for norm in ("rmsnorm", "dyt")],
)
def test_the_jacobians_are_the_slopes_of_the_restatement(tiny: RunConfig, placement: str, norm: str) -> None:
    """By central differences: the first token's position moves the stream before the first block, and nothing else does."""
    config = replace(tiny, placement=placement, norm=norm, final_norm=None)
    parameters = somewhere(config)
    flat = unrolled(parameters)
    record = PLACEMENTS[placement]
    tokens_bt = next(batches(config)).tokens_bt[:1]

    def streams_ld(moved_d: np.ndarray) -> np.ndarray:
        """x_0 to x_L, then the sum of x_0 and all that is written."""
        position_td = flat["position"].copy()
        position_td[0] += moved_d
        found, written = restatement.streams(config, flat | {"position": position_td}, tokens_bt)
        return np.array([*found, found[0] + sum(written)])[:, 0]

    steps_dd = 1e-5 * np.eye(config.width)
    x0_dd, *slopes_ldd = np.array([(streams_ld(step_d) - streams_ld(-step_d)) / 2e-5 for step_d in steps_dd]).transpose(1, 2, 0)
    stack_ed, first_dd, second_dd = jacobians(config, parameters)
    expected = np.concatenate(slopes_ldd[1:]) if record.dual_stream else slopes_ldd[1]
    np.testing.assert_allclose(stack_ed @ x0_dd, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first_dd @ x0_dd, slopes_ldd[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second_dd @ slopes_ldd[0], slopes_ldd[1], rtol=1e-5, atol=1e-6)


def test_a_jacobian_is_the_one_that_jax_derives(tiny: RunConfig) -> None:
    parameters, structure = somewhere(tiny), PLACEMENTS["pre"].stack(2).segments[0][0]
    block = block_of(tiny, structure).clone(length=1)
    with jax.enable_x64(True):
        first = jax.tree.map(lambda leaf: leaf[0], parameters["segments"][0])
        x_d = parameters["embedding"]["embedding"][next(batches(tiny)).tokens_bt[0, 0]] + parameters["position"][0]
        expected_dd = quick_jit(jax.jacrev(lambda x_d: block.apply({"params": first}, x_d[None], Scales(1.0, 1.0, 1.0))[0][0]))(x_d)
    np.testing.assert_allclose(jacobians(tiny, parameters)[1], expected_dd, rtol=1e-9, atol=1e-12)


def test_they_are_the_singular_values(tiny: RunConfig) -> None:
    found = singular_values(tiny, initial_parameters(tiny))
    assert (found.shape, found.dtype) == ((tiny.layers + 1, tiny.width), np.float32)
    np.testing.assert_allclose(found, np.linalg.svd(jacobians(tiny, initial_parameters(tiny)), compute_uv=False), rtol=1e-5)
    assert (np.diff(found) <= 0).all()


def test_a_norm_on_the_stream_takes_two_directions_from_a_lone_token(tiny: RunConfig) -> None:
    """The mean of the features and their length: LayerNorm's output has neither."""
    found = singular_values(replace(tiny, placement="post", final_norm=None), initial_parameters(replace(tiny, placement="post")))
    assert (found[:, -2:] < 1e-5).all()
    assert (found[:, :-2] > 1e-5).all()


def test_an_untouched_block_stretches_nothing(tiny: RunConfig) -> None:
    """ReZero's gates are zero at first."""
    config = replace(tiny, placement="rezero", final_norm=None)
    np.testing.assert_array_equal(singular_values(config, initial_parameters(config)), 1)


def test_what_is_no_number_has_no_singular_values(tiny: RunConfig) -> None:
    parameters = initial_parameters(tiny)
    parameters["segments"][0]["mlp_in"]["kernel"][1, 0, 0] = np.nan
    stack_d, first_d, second_d = singular_values(tiny, parameters)
    assert np.isnan(stack_d).all()
    assert np.isfinite(first_d).all()
    assert np.isnan(second_d).all()


def test_what_float32_cannot_hold_is_infinite(tiny: RunConfig) -> None:
    config = replace(tiny, placement="custom:attn=none,ffn=none,alpha=1000", final_norm=None, layers=8)
    stack_d, *blocks = singular_values(config, initial_parameters(config))
    assert np.isinf(stack_d).any()
    assert np.isfinite(blocks).all()
