import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.placement.record import BlockSpec, Placement, Site, Structure, same_sites, uniform
from core.placement.table import PLACEMENTS

DEPTHS = (1, 2, 12, 96)
MATRICES = {"query", "key", "value", "attention_output", "mlp_in", "mlp_out"}
SITES: list[Site] = ["input", "inner", "output", "outer"]


def placement_of(blocks: list[BlockSpec]) -> Placement:
    return replace(PLACEMENTS["pre"], block=lambda layer, layers: blocks[layer - 1])


sites = st.sets(st.sampled_from(SITES)).map(frozenset)
structures = st.builds(Structure, sites, sites, st.sampled_from([None, "scalar", "vector"]), profiled=st.booleans())
few = st.sampled_from([Structure(), Structure(frozenset({"outer"}), frozenset({"outer"}))])
specs = st.builds(BlockSpec, few | structures, st.sampled_from([1.0, 2.0]))


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_entry_is_complete_and_stands_under_its_own_name(name: str) -> None:
    placement = PLACEMENTS[name]
    assert placement.name == name
    assert re.fullmatch(r"[a-z][a-z0-9_-]*", name), "a name stands in addresses and commands"
    assert re.fullmatch(r"\d{4}\.\d{4,5}", placement.arxiv) or name == "scaled_init", "the GPT-2 report is on no preprint server"
    assert placement.summary.endswith(".")
    assert re.search(r"\b(19|20)\d\d, ", placement.source)
    assert placement.title
    assert placement.used_by


def test_titles_tell_placements_apart() -> None:
    assert len({placement.title for placement in PLACEMENTS.values()}) == len(PLACEMENTS)


@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("layers", DEPTHS)
def test_every_placement_describes_every_depth(name: str, layers: int) -> None:
    blocks = [block for _, segment in PLACEMENTS[name].segments(layers) for block in segment]
    assert blocks == [PLACEMENTS[name].block(layer, layers) for layer in range(1, layers + 1)]
    for block in blocks:
        assert dict(block.init_gain).keys() <= MATRICES
        assert min(block.alpha, block.input_scale, *dict(block.init_gain).values()) > 0


@pytest.mark.parametrize(
    ("name", "attention_and_feed_forward", "final_norm", "identity_path"),
    [("pre", {"input"}, True, True), ("post", {"outer"}, False, False), ("none", set(), False, True)],
)
def test_the_articles_placements(name: str, attention_and_feed_forward: set[Site], final_norm: bool, identity_path: bool) -> None:
    placement = PLACEMENTS[name]
    for layers in DEPTHS:
        [(structure, segment)] = placement.segments(layers)
        assert structure == Structure(frozenset(attention_and_feed_forward), frozenset(attention_and_feed_forward))
        assert segment == [BlockSpec(structure)] * layers
        assert placement.identity_path(layers) is identity_path
    assert placement.final_norm is final_norm


@given(st.lists(specs, min_size=1, max_size=12))
def test_segments_are_the_blocks_in_order_cut_where_the_structure_changes(blocks: list[BlockSpec]) -> None:
    segments = placement_of(blocks).segments(len(blocks))
    assert [block for _, segment in segments for block in segment] == blocks
    assert all(block.structure == structure for structure, segment in segments for block in segment)
    assert all(before != after for (before, _), (after, _) in pairwise(segments))


@given(structures, st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 0.1, 1.0]))
def test_a_block_keeps_the_identity_path_unless_it_norms_or_scales_the_stream(structure: Structure, alpha: float, gate: float) -> None:
    block = BlockSpec(structure, alpha=alpha, gate=gate)
    normed = "outer" in structure.attention or "outer" in structure.feed_forward
    assert block.identity_path == (alpha == 1.0 and not normed and not structure.profiled)


@given(st.lists(specs, min_size=1, max_size=12))
def test_one_block_cuts_the_identity_path_of_the_stack(blocks: list[BlockSpec]) -> None:
    assert placement_of(blocks).identity_path(len(blocks)) == all(block.identity_path for block in blocks)


@given(structures)
def test_a_structure_can_be_the_key_of_a_compiled_program(structure: Structure) -> None:
    twin = Structure(
        frozenset(sorted(structure.attention)),
        frozenset(sorted(structure.feed_forward)),
        structure.learned_gate,
        profiled=structure.profiled,
    )
    assert (hash(structure), structure) == (hash(twin), twin)


def test_same_sites_puts_norms_into_both_sublayers() -> None:
    block = uniform(same_sites("input", "output"))(3, 8)
    assert block.structure.attention == block.structure.feed_forward == {"input", "output"}
