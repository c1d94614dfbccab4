from dataclasses import replace

import numpy as np
import pytest

from core.config import RunConfig
from core.engine.data import start_tokens_sb
from core.engine.initialization import initial_parameters
from core.engine.jacobian import compiled, singular_values
from core.placement import PLACEMENTS
from tests.engine import restatement
from tests.engine.restatement import unrolled


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("placement", ["pre", "every", "mixed", "b2t", "residual_dual"])
def test_they_are_those_of_the_restatements_slopes(tiny: RunConfig, placement: str) -> None:
    """By central differences: the first token's position moves the stream before the first block, and nothing else does."""
    config = replace(tiny, placement=placement, final_norm=None)
    parameters = unrolled(initial_parameters(config))
    tokens_bt = (start_tokens_sb(config)[0, :1, None] + np.arange(config.length)) % 64

    def streams_ld(moved_d: np.ndarray) -> np.ndarray:
        """x_0 to x_L, then the sum of x_0 and all that is written."""
        position_td = parameters["position"].astype(float)
        position_td[0] += moved_d
        found, written = restatement.streams(config, parameters | {"position": position_td}, tokens_bt)
        return np.array([*found, found[0] + sum(written)])[:, 0]

    steps_dd = 1e-5 * np.eye(config.width)
    slopes_ldd = np.array([(streams_ld(step_d) - streams_ld(-step_d)) / 2e-5 for step_d in steps_dd]).transpose(1, 2, 0)
    stack_ed = np.concatenate(slopes_ldd[2:]) if placement == "residual_dual" else slopes_ldd[2]
    found = singular_values(config, initial_parameters(config))
    assert (found.shape, found.dtype) == ((config.layers + 1, config.width), np.float32)
    for values_d, jacobian in zip(found[:2], (stack_ed, slopes_ldd[1]), strict=True):
        np.testing.assert_allclose(values_d, np.linalg.svd(jacobian, compute_uv=False), rtol=1e-5, atol=1e-7)
    if placement == "pre":  # where the first block can be undone, the second is what is left
        second_dd = slopes_ldd[2] @ np.linalg.inv(slopes_ldd[1])
        np.testing.assert_allclose(found[2], np.linalg.svd(second_dd, compute_uv=False), rtol=1e-5)


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


def test_runs_that_differ_in_numbers_alone_share_a_program(tiny: RunConfig) -> None:
    compiled.cache_clear()
    for placement, seed in (("pre", 1), ("scaled_init", 2), ("ln_scaling", 3)):
        config = replace(tiny, placement=placement, seed=seed, learning_rate=0.1 * seed, final_norm=None)
        singular_values(config, initial_parameters(config))
    assert compiled.cache_info().misses == 1
    assert PLACEMENTS["pre"].stack(2) == PLACEMENTS["ln_scaling"].stack(2)
