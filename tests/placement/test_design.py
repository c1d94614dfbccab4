"""Placements of the user's own: their text, what it describes, and what is said of a text that describes none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drawing.words import omissions_text
from core.placement.design import MOST, Design, DesignError, placement_of
from core.placement.record import BlockSpec, Site, Structure
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.settings import ConfigError
from core.state.address import read_run, write_run

SITES: list[Site] = ["input", "inner", "output", "outer"]
sites = st.sets(st.sampled_from(SITES)).map(frozenset)
numbers = st.floats(0, MOST)
designs = st.builds(Design, sites, sites, numbers, numbers, st.sampled_from([None, "scalar", "vector"]), numbers)


@given(designs)
def test_a_design_is_read_back_from_its_text(design: Design) -> None:
    assert Design.parse(design.text) == design
    assert placement_of(design.text).name == design.text


@given(designs, st.integers(1, 96))
def test_a_design_is_the_block_that_it_names_at_every_depth(design: Design, layers: int) -> None:
    [(structure, segment)] = placement_of(design.text).segments(layers)
    assert structure == Structure(design.attn, design.ffn, design.learned)
    assert len(segment) == layers
    for block in segment:
        assert (block.alpha, block.gate, dict(block.init_gain).get("value", 1.0)) == (design.alpha, design.gate, design.gain)
        assert Design.like(block) == design


@pytest.mark.parametrize("name", ["pre", "post", "none", "sandwich", "output", "layerscale", "rezero", "deepnorm", "sub"])
def test_a_design_like_a_placement_of_the_table_is_that_placement(name: str) -> None:
    block = PLACEMENTS[name].block(12, 12)
    assert placement_of(Design.like(block).text).block(12, 12) == block


@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("layer", [1, 12])
def test_what_a_design_cannot_have_is_said(name: str, layer: int) -> None:
    placement = PLACEMENTS[name]
    design = Design.like(placement.block(layer, 12)).placement()
    same = design.stack(12) == placement.stack(12) and design.segments(12) == placement.segments(12)
    assert (omissions_text(placement, layer, 12) == "") == same


def test_it_is_said_by_name() -> None:
    assert omissions_text(PLACEMENTS["keel"], 12, 12) == "This design is like block 12 of Keel, without what differs in block 1."
    assert omissions_text(PLACEMENTS["residual_dual"], 3, 4) == "This design is like block 3 of ResiDual, without its second stream."


def test_a_typed_address_has_spaces_for_plus_signs() -> None:
    assert RunConfig(placement="custom:attn=input output,ffn=outer").placement == "custom:attn=input+output,ffn=outer"
    assert RunConfig(placement="custom:attn=input + output,ffn=outer").placement == "custom:attn=input+output,ffn=outer"


def test_different_texts_of_one_design_are_one_run() -> None:
    one, other = (RunConfig(placement=f"custom:{parts}") for parts in ("attn=output+input,ffn=none", "alpha=1.0, attn=input+output"))
    assert one == other
    assert one.placement == "custom:attn=input+output,ffn=none"
    assert read_run(write_run(one)) == (one, [])


@given(designs)
def test_a_design_goes_through_an_address(design: Design) -> None:
    config = RunConfig(placement=design.text, layers=3)
    assert read_run(write_run(config)) == (config, [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("custom:", "its parts can be attn, ffn, alpha, gate, gain, learned, each once at most"),
        ("custom:attn=input,attn=outer", "each once at most"),
        ("custom:beta=2", "its parts can be attn"),
        ("custom:attn=sideways", "its attn is 'sideways' and must be none, or some of input, inner, output, outer"),
        ("custom:ffn=input+input", "its ffn is 'input+input'"),
        ("custom:ffn=", "its ffn is ''"),
        ("custom:alpha=-1", "its alpha is '-1' and must be a number from 0 to 1000"),
        ("custom:gate=nan", "its gate is 'nan'"),
        ("custom:learned=yes", "its learned is 'yes' and must be one of scalar, vector"),
    ],
)
def test_what_is_no_design_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        RunConfig(placement=text)
    sentence = str(refusal.value)
    assert sentence.startswith(f"placement is '{text}'; ")
    assert words in sentence
    assert sentence.endswith(".")
    assert read_run(text) == (RunConfig(), [f"{sentence} pre is used."])


@given(st.text())
def test_no_text_but_a_design_is_read(text: str) -> None:
    try:
        design = Design.parse(text)
    except DesignError:
        return
    assert Design.parse(design.text) == design


def test_a_final_norm_follows_where_the_last_sublayer_ends_without_one() -> None:
    assert [placement_of(f"custom:ffn={sites}").final_norm for sites in ("none", "input", "outer")] == [True, True, False]


def test_its_identity_path_is_the_records() -> None:
    assert isinstance(placement_of("custom:attn=input").block(1, 1), BlockSpec)
    assert [placement_of(f"custom:{parts}").identity_path(4) for parts in ("attn=input", "attn=outer", "alpha=2")] == [True, False, False]
