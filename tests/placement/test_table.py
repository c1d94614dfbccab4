"""The table of placements against the constants of the papers, and what follows from the record."""

import math
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.placement.record import BlockSpec
from core.placement.table import PLACEMENTS

DEPTHS = st.integers(1, 96)
UNTOUCHED = {"pre", "none", "residual_scaling", "scaled_init", "normformer", "sandwich", "peri", "output", "sub", "ln_scaling"}
IDENTITY_PATHS = UNTOUCHED | {"rezero", "layerscale", "residual_dual"}


def blocks(name: str, layers: int) -> list[BlockSpec]:
    return list(chain.from_iterable(segment for _, segment in PLACEMENTS[name].segments(layers)))


@given(st.sampled_from(list(PLACEMENTS)), DEPTHS)
def test_few_structures_keep_compilation_independent_of_depth(name: str, layers: int) -> None:
    assert len(PLACEMENTS[name].segments(layers)) <= 2


@given(st.sampled_from(list(PLACEMENTS)), DEPTHS)
def test_an_identity_path_is_a_stack_without_outer_norms_and_stream_scales(name: str, layers: int) -> None:
    expected = name in IDENTITY_PATHS or (name == "mix" and layers < 4)
    assert PLACEMENTS[name].identity_path(layers) == expected


@pytest.mark.parametrize(
    ("layers", "alpha", "beta"),
    [(6, 1.8612, 0.3799), (8, 2, 0.3536), (12, 2.2134, 0.3195), (24, 2.6321, 0.2686), (48, 3.1302, 0.2259), (96, 3.7224, 0.1900)],
)
def test_deepnorm_has_the_constants_of_a_decoder(layers: int, alpha: float, beta: float) -> None:
    for block in blocks("deepnorm", layers):
        gains = dict(block.init_gain)
        assert block.alpha == pytest.approx(alpha, abs=5e-5)
        assert gains == dict.fromkeys(["value", "attention_output", "mlp_in", "mlp_out"], pytest.approx(beta, abs=5e-5))
        assert block.alpha * gains["mlp_in"] == pytest.approx(1 / math.sqrt(2))


@given(DEPTHS)
def test_scales_of_depth(layers: int) -> None:
    for layer in range(1, layers + 1):
        assert PLACEMENTS["residual_scaling"].block(layer, layers).gate ** 2 * 2 * layers == pytest.approx(1)
        assert PLACEMENTS["ln_scaling"].block(layer, layers).input_scale ** 2 * layer == pytest.approx(1)
        assert PLACEMENTS["rezero"].block(layer, layers).gate == 0
        assert PLACEMENTS["keel"].block(layer, layers).alpha == (1 if layer == 1 else 2 * layers)
        scaled, sub = (dict(PLACEMENTS[name].block(layer, layers).init_gain) for name in ("scaled_init", "sub"))
        assert scaled == dict.fromkeys(["attention_output", "mlp_out"], pytest.approx((2 * layers) ** -0.5))
        assert sub == dict.fromkeys(["value", "attention_output", "mlp_in", "mlp_out"], pytest.approx(math.log(2 * layers) ** 0.5))


@pytest.mark.parametrize(("layers", "gain"), [(12, 1.7827), (24, 1.9675)])
def test_sub_has_the_gain_of_a_decoder(layers: int, gain: float) -> None:
    assert dict(PLACEMENTS["sub"].block(1, layers).init_gain)["value"] == pytest.approx(gain, abs=5e-5)


def test_admin_has_the_constant_of_its_library() -> None:
    assert PLACEMENTS["admin"].block(1, 12).alpha == pytest.approx(2.6013, abs=5e-5)


@pytest.mark.parametrize(("layers", "first"), [(12, 3), (24, 6), (96, 24), (3, 0)])
def test_mix_is_post_norm_in_its_first_quarter(layers: int, first: int) -> None:
    structures = [block.structure for block in blocks("mix", layers)]
    post, pre = (PLACEMENTS[name].block(1, layers).structure for name in ("post", "pre"))
    assert structures == [post] * first + [pre] * (layers - first)


@pytest.mark.parametrize(("layers", "epsilon"), [(12, 0.1), (18, 0.1), (19, 1e-5), (24, 1e-5), (25, 1e-6), (96, 1e-6)])
def test_layerscale_starts_smaller_the_deeper_it_is(layers: int, epsilon: float) -> None:
    assert {block.gate for block in blocks("layerscale", layers)} == {epsilon}


def test_keels_first_block_is_the_exception() -> None:
    first, *rest = blocks("keel", 4)
    assert (first.structure.attention, first.structure.feed_forward) == (frozenset({"input"}), frozenset({"input", "outer"}))
    assert {block.structure for block in rest} == {PLACEMENTS["keel"].block(2, 4).structure}
    assert rest[0].structure.attention == rest[0].structure.feed_forward == frozenset({"input", "outer"})
