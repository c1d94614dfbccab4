from dataclasses import replace

import jax
import numpy as np
import pytest

from core.engine.initialization import initial_parameters
from core.engine.parameters import Packed, block_shapes, cut, pack, parameter_shapes, unpack
from core.placement.table import PLACEMENTS
from core.runs.config import NORMS, RunConfig


def numbered(config: RunConfig) -> dict:
    """Parameters that are all different, in no order that the code could fall back on."""
    random = np.random.default_rng(2)
    shapes = parameter_shapes(config, PLACEMENTS[config.placement].stack(config.layers))
    return jax.tree.map(lambda leaf: random.standard_normal(leaf.shape).astype(leaf.dtype), shapes)


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("placement", [*PLACEMENTS, "every", "scalar", "vector", "mixed"])
def test_what_is_packed_comes_out_again_as_it_was(tiny: RunConfig, placement: str, norm: str) -> None:
    config = replace(tiny, placement=placement, norm=norm, final_norm=True)
    stack = PLACEMENTS[placement].stack(config.layers)
    parameters = numbered(config)
    again = unpack(pack(parameters), config, stack)
    assert jax.tree.structure(again) == jax.tree.structure(parameters)
    jax.tree.map(np.testing.assert_array_equal, again, parameters)


@pytest.mark.parametrize("placement", ["pre", "mix"])
def test_the_shapes_foretell_what_is_packed(tiny: RunConfig, placement: str) -> None:
    config = replace(tiny, placement=placement, layers=4)
    stack = PLACEMENTS[placement].stack(4)
    found, foretold = pack(initial_parameters(config)), jax.eval_shape(pack, parameter_shapes(config, stack))
    assert [leaf.shape for leaf in jax.tree.leaves(found)] == [leaf.shape for leaf in jax.tree.leaves(foretold)]
    assert len(found.segments) == len(stack.segments)


def test_a_row_has_all_that_belongs_to_its_block_and_nothing_else(tiny: RunConfig) -> None:
    parameters, structure = numbered(tiny), PLACEMENTS["pre"].stack(2).segments[0][0]
    [rows_lp] = pack(parameters).segments
    second = cut(rows_lp[1], block_shapes(tiny, structure))
    jax.tree.map(lambda found, expected: np.testing.assert_array_equal(found, expected[1]), second, parameters["segments"][0])


def test_a_traced_run_is_packed_alike(tiny: RunConfig) -> None:
    parameters, stack = numbered(tiny), PLACEMENTS["pre"].stack(2)
    expected = pack(parameters)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(expected)), "nothing is compiled for what is on the host"
    found = jax.jit(pack)(parameters)
    assert isinstance(found, Packed)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    again = jax.jit(lambda packed: unpack(packed, tiny, stack))(expected)
    jax.tree.map(np.testing.assert_array_equal, again, parameters)
