"""The drawings of a placement, held against its record."""

import io
import math
import re
from dataclasses import replace
from itertools import combinations
from typing import get_args
from xml.etree.ElementTree import Element, fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from core.drawing.diagram.block import SLOTS, View, block_svg
from core.drawing.diagram.shapes import PALETTE, WIDEST, WIDTH, Theme, png, resolve_colours
from core.drawing.diagram.stack import stack_svg
from core.drawing.words import describe, likeness_text
from core.lenses.backward import bands, percents
from core.placement.record import BlockSpec, Placement, Site, Structure
from core.placement.table import PLACEMENTS, POST, PRE

SVG = "{http://www.w3.org/2000/svg}"
SUBLAYERS = ("attention", "feed_forward")
THEMES: tuple[Theme, ...] = get_args(Theme)
VIEWS: tuple[View, ...] = get_args(View)
LAYERS = 8
NUMBERS = [0.0, 1e-6, 0.2887, 1.0, 2.5, 200.0]

sites = st.frozensets(st.sampled_from(get_args(Site)))
heads = st.frozensets(st.sampled_from(["query", "key", "value"]))
structures = st.builds(Structure, sites, sites, st.sampled_from([None, "scalar", "vector"]), heads, *[st.booleans()] * 3)
number = st.sampled_from(NUMBERS)
gains = st.sampled_from([(), (("value", 0.5), ("mlp_out", 2.0))])
specs = st.builds(BlockSpec, structures, number, number, number, gains)
few = st.builds(BlockSpec, st.sampled_from([PRE, POST]), st.sampled_from([1.0, 2.0]))  # so that segments have more than one block
stacks = st.builds(
    lambda blocks, final, embedding, dual: replace(
        PLACEMENTS["pre"],
        title='Made up, <b> & "c"',
        block=lambda layer, layers: blocks[layer % len(blocks)],
        final_norm=final,
        embedding_norm=embedding,
        dual_stream=dual,
    ),
    st.lists(few, min_size=1, max_size=5) | st.lists(specs, min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
every_placement = pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)


def parts(drawing: str) -> dict[str, Element]:
    """The drawn parts by name; none is drawn twice."""
    groups = [group for group in fromstring(drawing).iter(f"{SVG}g") if "data-part" in group.attrib]
    named = {group.attrib["data-part"]: group for group in groups}
    assert len(named) == len(groups)
    assert all(group[0].tag == f"{SVG}title" and group[0].text for group in groups)
    return named


def shapes(group: Element, name: str) -> list[Element]:
    return [shape for shape in group.iter() if name in shape.get("class", "").split()]


def with_identity(drawn: dict[str, Element]) -> set[str]:
    return {name for name, group in drawn.items() if shapes(group, "identity")}


def expected_norms(structure: Structure) -> set[str]:
    return {f"{sublayer}.{site}" for sublayer in SUBLAYERS for site in getattr(structure, sublayer)} | {
        f"attention.{matrix}" for matrix in structure.head_norms
    }


def expected_scales(spec: BlockSpec) -> set[str]:
    numbers = {"alpha": spec.alpha, "gate": spec.gate, "scale": spec.input_scale}
    names = {name for name, number in numbers.items() if number != 1.0}
    names |= {name for name, has in (("gate", spec.structure.learned_gate), ("alpha", spec.structure.profiled)) if has}
    return {f"{sublayer}.{name}" for sublayer in SUBLAYERS for name in names} | (
        {"attention.head_gain"} if spec.structure.head_gain else set()
    )


def check_block(spec: BlockSpec, view: View, dual: bool) -> None:
    drawn = parts(block_svg(spec, view, dual))
    assert {name for name, group in drawn.items() if shapes(group, "norm")} == expected_norms(spec.structure)
    assert {name for name, group in drawn.items() if shapes(group, "scale")} == expected_scales(spec)
    always = {f"{sublayer}.{name}" for sublayer in SUBLAYERS for name in ("stream", "branch", "add")}
    others = {f"{sublayer}.dual" for sublayer in SUBLAYERS if dual} | ({"feed_forward.block_skip"} if spec.structure.block_skip else set())
    assert drawn.keys() == expected_norms(spec.structure) | expected_scales(spec) | always | others
    streams = {f"{sublayer}.stream" for sublayer in SUBLAYERS if spec.identity_path}
    assert with_identity(drawn) == streams | {f"{sublayer}.dual" for sublayer in SUBLAYERS if dual}
    assert all(shapes(drawn[f"{sublayer}.{name}"], "line") for sublayer in SUBLAYERS for name in ("stream", "branch"))


@given(specs, st.floats(0, 1), st.booleans())
def test_a_band_is_as_wide_as_the_share_and_lies_under_the_line_of_its_part(spec: BlockSpec, share: float, known: bool) -> None:
    shares = {f"{sublayer}.{name}": share if known else math.nan for sublayer in SUBLAYERS for name in ("stream", "branch")}
    shares |= {"feed_forward.block_skip": 0.25} if spec.structure.block_skip else {}
    root = fromstring(block_svg(spec, "backward", bands=bands(shares)))
    groups = list(root.iter(f"{SVG}g"))
    ways = {group.attrib["data-part"]: group for group in groups if group.get("class") == "way"}
    assert ways.keys() == shares.keys()
    lines = [place for place, group in enumerate(groups) if shapes(group, "line")]
    assert max(groups.index(band) for band in ways.values()) < min(lines)
    for name, value in shares.items():
        width = float(ways[name][0].attrib["stroke-width"])
        assert width == pytest.approx(0 if math.isnan(value) else WIDEST * value, abs=0.01)
        assert ways[name][1].text == percents(shares)[name]
        assert "lab-identity" in ways[name][0].attrib["stroke"] or not (spec.identity_path and name.endswith("stream"))


def test_a_drawing_without_shares_has_no_bands() -> None:
    assert 'class="way"' not in block_svg(BlockSpec(PRE), "backward")


def pieces(group: Element) -> list[tuple[float, float]]:
    """Top and bottom of every piece of a stream's line."""
    ways = [re.fullmatch(r"M\S+ (\S+)V(\S+)", shape.attrib["d"]) for shape in shapes(group, "line")]
    found = [(float(way[2]), float(way[1])) for way in ways if way]
    assert all(top < bottom for top, bottom in found)
    return found


def check_text(root: Element) -> None:
    assert root.attrib["role"] == "img"
    assert [child.tag for child in root[:2]] == [f"{SVG}title", f"{SVG}desc"]
    assert all(child.text for child in root[:2])
    left, _, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, width) == (0, WIDTH)
    assert height > 0


@every_placement
def test_a_placement_is_drawn_as_its_record_has_it(placement: Placement) -> None:
    for layer in (1, LAYERS):
        for view in VIEWS:
            spec = placement.block(layer, LAYERS)
            check_text(fromstring(block_svg(spec, view, placement.dual_stream)))
            check_block(spec, view, placement.dual_stream)


@given(specs, st.sampled_from(VIEWS), st.booleans())
def test_so_is_a_block_that_nobody_has_thought_of(spec: BlockSpec, view: View, dual: bool) -> None:
    check_block(spec, view, dual)
    check_text(fromstring(block_svg(spec, view, dual)))


@given(specs, st.sampled_from(VIEWS))
def test_a_stream_that_is_no_identity_breaks_at_everything_that_stands_on_it(spec: BlockSpec, view: View) -> None:
    drawn = parts(block_svg(spec, view))
    for sublayer in SUBLAYERS:
        lines = pieces(drawn[f"{sublayer}.stream"])
        on_it = [SLOTS[sublayer][name] for name in ("alpha", "outer") if f"{sublayer}.{name}" in drawn]
        assert all(bottom < slot.top or slot.bottom < top for slot in on_it for top, bottom in lines)
        assert len(lines) == 1 if spec.identity_path else len(lines) > 1 + len(on_it)


def test_slots_do_not_overlap_and_lie_within_the_drawing() -> None:
    _, top, width, height = map(float, fromstring(block_svg(BlockSpec(PRE))).attrib["viewBox"].split())
    inside = {"inner", "head_gain", "query", "key", "value"}
    slots = {(sublayer, name): slot for sublayer in SUBLAYERS for name, slot in SLOTS[sublayer].items() if name != "end"}
    for (sublayer, name), slot in slots.items():
        assert slot.width / 2 <= slot.x <= width - slot.width / 2
        assert top < slot.top < slot.bottom < top + height
        if name in inside:
            around = SLOTS[sublayer]["map"]
            assert around.top < slot.top < slot.bottom < around.bottom
            assert abs(slot.x - around.x) < (around.width - slot.width) / 2
    for (one, a), (other, b) in combinations(slots.items(), 2):
        if not (one[0] == other[0] and "map" in (one[1], other[1]) and {one[1], other[1]} & inside):
            apart = abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
            assert apart, f"{one} and {other}"


def test_a_norm_can_slide_from_any_site_to_any_other() -> None:
    assert len({SLOTS[sublayer][site][2:] for sublayer in SUBLAYERS for site in get_args(Site)}) == 1


@given(specs)
def test_a_box_stands_in_its_slot(spec: BlockSpec) -> None:
    for name, group in parts(block_svg(spec)).items():
        sublayer, _, element = name.partition(".")
        for rect in shapes(group, "norm") + shapes(group, "scale"):
            slot = SLOTS[sublayer][element]
            x, y, width, height = (float(rect.attrib[side]) for side in ("x", "y", "width", "height"))
            assert (x + width / 2, y + height / 2, width, height) == pytest.approx(slot)


@pytest.mark.parametrize("view", VIEWS)
def test_pre_and_post_norm_differ_only_in_norms_and_in_how_the_stream_looks(view: View) -> None:
    pre, post = (parts(block_svg(BlockSpec(structure), view)) for structure in (PRE, POST))
    norms = {f"{sublayer}.{site}" for sublayer in SUBLAYERS for site in ("input", "outer")}
    assert pre.keys() ^ post.keys() == norms
    different = {name for name in pre.keys() & post.keys() if tostring(pre[name]) != tostring(post[name])}
    assert different == {"attention.stream", "feed_forward.stream"}


@given(specs, st.booleans())
def test_the_backward_view_has_the_same_parts_and_its_arrow_points_down(spec: BlockSpec, dual: bool) -> None:
    forward, backward = (parts(block_svg(spec, view, dual)) for view in VIEWS)
    assert forward.keys() == backward.keys()
    heads = {
        (view, sublayer): re.findall(rb"\) rotate\((\d+)\)", tostring(drawn[f"{sublayer}.stream"]))
        for view, drawn in zip(VIEWS, (forward, backward), strict=True)
        for sublayer in SUBLAYERS
    }
    assert {key: turns for key, turns in heads.items() if turns} == {
        ("forward", "feed_forward"): [b"0"],
        ("backward", "attention"): [b"180"],
    }


@every_placement
def test_the_stack_of_a_placement_is_drawn_as_its_record_has_it(placement: Placement) -> None:
    check_stack(placement, LAYERS)


@given(stacks, st.integers(1, 9))
def test_so_is_a_stack_that_nobody_has_thought_of(placement: Placement, layers: int) -> None:
    check_stack(placement, layers)


def check_stack(placement: Placement, layers: int) -> None:
    for view in VIEWS:
        check_view_of_stack(placement, layers, view)


def check_view_of_stack(placement: Placement, layers: int, view: View) -> None:
    drawing = stack_svg(placement, layers, view)
    check_text(fromstring(drawing))
    drawn = parts(drawing)
    segments, first = {}, 1
    for _, segment in placement.segments(layers):
        segments[f"stack.blocks_{first}"] = (first, segment)
        first += len(segment)
    optional = {
        "stack.embedding_norm": placement.embedding_norm,
        "stack.final_norm": placement.final_norm,
        "stack.dual": placement.dual_stream,
        "stack.add": placement.dual_stream,
    }
    assert drawn.keys() == segments.keys() | {"stack.embedding", "stack.head"} | {name for name, has in optional.items() if has}
    whole = {name for name, (_, segment) in segments.items() if all(block.identity_path for block in segment)}
    assert with_identity(drawn) == whole | {name for name in ("stack.dual",) if placement.dual_stream}
    beyond = [line for line in fromstring(drawing) if "identity" in line.get("class", "")]
    assert len(beyond) == (list(segments)[-1] in whole), "from the last block to what follows"
    for name, (first, segment) in segments.items():
        words = f"Blocks {first} to {first + len(segment) - 1}" if len(segment) > 1 else f"Block {first}"
        assert words in list(drawn[name].itertext())
        structure = segment[0].structure
        assert len(shapes(drawn[name], "norm")) == ("outer" in structure.attention) + ("outer" in structure.feed_forward)
        assert len(shapes(drawn[name], "scale")) == 2 * any(block.alpha != 1.0 or structure.profiled for block in segment)
        around = re.search(r'd="M94 (\S+)H71q-9 0 -9 -9V(\S+)q', tostring(drawn[name], encoding="unicode"))
        assert (around is not None) == structure.block_skip
        assert around is None or float(around[1]) - 9 >= float(around[2]), "its two corners have room"
    assert ("∂ℓ/∂" in drawing) == (view == "backward")
    assert ("translate(94 -38) rotate(180)" in drawing) == (view == "backward"), "into the embedding"


def test_a_second_stream_has_its_name() -> None:
    for view, before in {"forward": "", "backward": "∂ℓ/∂"}.items():
        words = [text.text for text in fromstring(block_svg(BlockSpec(POST), view, dual=True)).iter(f"{SVG}text")]
        assert {f"{before}{name}" for name in ("x", "x′", "r", "r′")} <= set(words)
        assert f">{before}r</text>" in stack_svg(PLACEMENTS["residual_dual"], LAYERS, view)


@pytest.mark.parametrize(
    ("name", "layer", "words"),
    [("pre", 3, "like all blocks"), ("mix", 2, "like blocks 1 to 2"), ("mix", 8, "like blocks 3 to 8"), ("keel", 1, "unlike all others")],
)
def test_a_block_is_told_which_it_is_like(name: str, layer: int, words: str) -> None:
    assert likeness_text(PLACEMENTS[name], layer, LAYERS) == words


@every_placement
def test_the_text_tells_what_the_record_has(placement: Placement) -> None:
    check_description(placement, LAYERS)


@given(stacks, st.integers(1, 9))
def test_the_text_tells_it_of_any_record(placement: Placement, layers: int) -> None:
    check_description(placement, layers)


def check_description(placement: Placement, layers: int) -> None:
    words = describe(placement, layers)
    blocks = [placement.block(layer, layers) for layer in range(1, layers + 1)]
    named = {site for site in get_args(Site) if f"{site} norm" in words}
    assert named == {site for block in blocks for site in block.structure.attention | block.structure.feed_forward}
    heads = {matrix for matrix, plural in (("query", "queries"), ("key", "keys"), ("value", "values")) if f"head's {plural}" in words}
    assert heads == {matrix for block in blocks for matrix in block.structure.head_norms}
    assert ("gain for each head" in words) == any(block.structure.head_gain for block in blocks)
    assert ("multiplied by learned vectors" in words) == any(block.structure.profiled for block in blocks)
    assert ("added once more" in words) == any(block.structure.block_skip for block in blocks)
    assert ("learned from there" in words) == any(block.structure.learned_gate for block in blocks)
    assert ("norm on the embedding" in words) == placement.embedding_norm
    assert ("second stream" in words) == placement.dual_stream
    assert ("final norm" in words) == placement.final_norm
    assert ("no identity path" in words) != placement.identity_path(layers)
    assert 2 <= len(re.findall(r"\.(?= |$)", words)) <= 8
    assert words.endswith(".")


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str, theme: Theme) -> float:
    low, high = sorted(luminance(PALETTE[name][theme]) for name in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_lines_stand_out(theme: Theme) -> None:
    grounds = ("paper", "panel", "map-fill")
    words = [(tone, ground) for tone in ("ink", "quiet", "identity") for ground in grounds] + [("ink", "norm-fill"), ("ink", "scale-fill")]
    assert {pair: ratio for pair in words if (ratio := contrast(*pair, theme)) < 4.5} == {}
    lines = [(stroke, ground) for stroke in ("quiet", "identity", "norm", "scale", "map", "ink") for ground in grounds]
    assert {pair: ratio for pair in lines if (ratio := contrast(*pair, theme)) < 3} == {}


@every_placement
def test_a_file_has_a_themes_own_colours(placement: Placement) -> None:
    for drawing in (block_svg(placement.block(1, LAYERS), "forward", placement.dual_stream), stack_svg(placement, LAYERS)):
        assert all(name in PALETTE for name in re.findall(r"var\(--lab-([\w-]+), #", drawing))
        for theme in THEMES:
            fixed = resolve_colours(drawing, theme)
            assert "var(" not in fixed
            assert set(re.findall(r'"(#\w+)"', fixed)) <= {colours[theme] for colours in PALETTE.values()}


@pytest.mark.parametrize("theme", THEMES)
def test_a_picture_is_a_sharp_png_on_the_themes_paper(theme: Theme) -> None:
    drawing = block_svg(PLACEMENTS["pre"].block(1, LAYERS))
    content = png(drawing, theme)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    assert picture.width == 2 * WIDTH
    assert "#{:02x}{:02x}{:02x}".format(*picture.getpixel((0, 0))) == PALETTE["paper"][theme]
