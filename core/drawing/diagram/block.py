"""One block. Every element that a record can ask for has one fixed slot, so that blocks differ only in what stands in the slots."""

from collections.abc import Iterator, Mapping
from typing import Literal

from core.drawing.diagram.shapes import (
    NODE,
    NORM,
    PILL,
    WIDTH,
    Slot,
    arrow,
    band,
    box,
    colour,
    lane,
    line,
    node,
    part,
    path_label,
    svg,
    text,
)
from core.drawing.words import MATRICES, NAMES, SITES, block_text, number_text
from core.placement.record import BlockSpec

View = Literal["forward", "backward"]

DUAL, ASIDE, STREAM, BRANCH = 20, 64, 124, 258  # columns: second stream, the way of block_skip, stream, branch
FOOT, INPUT = -26, Slot(STREAM, -50, *NODE)  # where the stream begins, and where block_skip leaves it
DUAL_TITLE = "the second stream, untouched: it adds up what the branches write"


def sublayer_slots(fork: float, heads: bool) -> dict[str, Slot]:
    """The slots of one sublayer, from where its branch leaves the stream; only attention has heads."""
    slots, top = {"fork": Slot(STREAM, fork, *NODE)}, fork - 16
    for name, size in (("input", NORM), ("scale", PILL), ("map", (168, 100 if heads else 58)), ("output", NORM), ("gate", PILL)):
        slots[name] = Slot(BRANCH, top - size[1] / 2, *size)
        top = slots[name].top - 9
    inside = slots["map"]
    slots["inner"] = Slot(BRANCH, inside.top + 17, *NORM)
    if heads:
        slots["head_gain"] = Slot(BRANCH, inside.top + 40, PILL[0], 16)
        slots |= {matrix: Slot(BRANCH + 52 * place, inside.bottom - 15, 48, 18) for place, matrix in enumerate(MATRICES, -1)}
    slots["add"] = Slot(STREAM, top - 13, *NODE)
    slots["alpha"] = Slot(STREAM, top + 21, 64, PILL[1])
    slots["dual"] = Slot(DUAL, top - 35, *NODE)
    slots["outer"] = Slot(STREAM, top - 60, *NORM)
    slots["end"] = Slot(STREAM, slots["outer"].top - 20, *NODE)  # the next sublayer's fork, or the block's end
    return slots


ATTENTION = sublayer_slots(INPUT.y - 30, heads=True)
SLOTS = {"attention": ATTENTION, "feed_forward": sublayer_slots(ATTENTION["end"].y, heads=False)}
BESIDE = (ATTENTION["fork"].y + ATTENTION["alpha"].bottom) / 2  # the height of the words beside a stream
END = SLOTS["feed_forward"]["end"].y
SEAM = ATTENTION["outer"].top - 6  # between the two sublayers' pieces of a stream, clear of the next fork's circle
SPANS = {"attention": (FOOT, SEAM - 0.5), "feed_forward": (SEAM, END - 18)}  # of a stream, bottom to top; no seam shows


def block_svg(spec: BlockSpec, view: View = "forward", dual: bool = False, bands: Mapping[str, tuple[float, str]] | None = None) -> str:
    """One block, from x at the bottom to x' at the top; the backward view has the same parts with the signal reversed.

    `dual` adds the second stream, Placement.dual_stream. `bands` have, by part, the share of the gradient that arrives by it, 0 to 1,
    and this share in words, as core.lenses.backward.bands gives them.
    """
    forward = view == "forward"
    left = DUAL + 28 if dual else 8
    drawing = [
        f'<rect x="{left}" y="{END + 4:g}" width="{WIDTH - 8 - left}" height="{FOOT - 8 - END:g}" rx="14" fill="{colour("panel")}"/>'
    ]
    if bands:
        drawing += draw_bands(spec, dual, bands)
    if spec.structure.block_skip:
        drawing.append(skip_part(forward))
    for sublayer in NAMES:
        if dual:
            drawing.append(dual_part(sublayer, spec, forward))
        drawing.append(branch_part(sublayer, spec, forward))
        for name, (kind, label, title) in elements(sublayer, spec).items():
            size = 13.5 if name in SITES else 12
            drawn = box(SLOTS[sublayer][name], label, kind, size, jacobian=name in SITES and not forward)
            drawing.append(part(f"{sublayer}.{name}", f"{NAMES[sublayer]}: {title}", drawn))
        added = "the branch is added to the stream" if forward else "the gradient goes both ways, unchanged"
        drawing.append(part(f"{sublayer}.add", f"{NAMES[sublayer]}: {added}", node(SLOTS[sublayer]["add"], plus=forward)))
        drawing.append(stream_part(sublayer, spec, forward, bold=bands is None))
    italic, signal = 'font-style="italic"', "" if forward else "∂ℓ/∂"
    for y, mark in ((FOOT + 12, ""), (END - 31, "′")):
        drawing.append(text(STREAM, y, f"{signal}x{mark}", 17, look=italic))
        if dual and forward:
            drawing.append(text(DUAL, y, f"r{mark}", 17, look=italic))
        elif dual:  # there is no room to the left of the column
            drawing.append(text(2, y, f"{signal}r{mark}", 17, look=f'{italic} text-anchor="start"'))
    drawing.append(text(STREAM - 15, SLOTS["feed_forward"]["fork"].y, f"{signal}h", 15, look=f'{italic} text-anchor="end"'))
    title = "One block" if forward else "One block, backward: the gradient of the loss ℓ passes the Jacobians J"
    if bands is not None:
        title += "; a band is as wide as the share of the gradient that arrives by it"
    return svg(END - 46, title, block_text(spec, dual), drawing)


def elements(sublayer: str, spec: BlockSpec) -> dict[str, tuple[str, str, str]]:
    """What stands in a sublayer's slots: part to kind, label and title."""
    structure = spec.structure
    found = {site: ("norm", "Norm", f"norm {where}") for site, where in SITES.items() if site in getattr(structure, sublayer)}
    if sublayer == "attention":
        heads = {matrix: plural for matrix, plural in MATRICES.items() if matrix in structure.head_norms}
        found |= {matrix: ("norm", f"Norm {matrix[0]}", f"norm of each head's {plural}") for matrix, plural in heads.items()}
        if structure.head_gain:
            found["head_gain"] = ("scale", "× gain per head", "a learned factor for each head, one at first")
    scales = {
        "scale": (spec.input_scale, "what the branch reads, times s ="),
        "gate": (spec.gate, "what the branch writes, times"),
        "alpha": (spec.alpha, "the stream, times α ="),
    }
    found |= {name: ("scale", f"× {number_text(by)}", f"{says} {number_text(by)}") for name, (by, says) in scales.items() if by != 1.0}
    if structure.profiled:
        found["alpha"] = (
            "scale",
            "× ω",
            "the stream, times a learned vector ω, at first the root of the summed variances of stream and branch below, one at the bottom",
        )
    if structure.learned_gate:
        label, title = f"× {number_text(spec.gate)}, learned", f"what the branch writes, times a learned {structure.learned_gate}"
        found["gate"] = ("scale", label, f"{title}, {number_text(spec.gate)} at first")
    return found


def draw_bands(spec: BlockSpec, dual: bool, bands: Mapping[str, tuple[float, str]]) -> Iterator[str]:
    """The bands under the ways back from an addition to where they meet again; a second stream's gradient joins that of the branch."""
    for sublayer in NAMES:
        fork, add = SLOTS[sublayer]["fork"].y, SLOTS[sublayer]["add"].y
        beside = (fork + SLOTS[sublayer]["alpha"].bottom) / 2
        down = f"V{fork - 9:g}q0 9 -9 9H{STREAM}"
        branch = f"M{BRANCH} {split(sublayer).y:g}{down}" if dual else f"M{STREAM} {add:g}H{BRANCH - 9}q9 0 9 9{down}"
        around = f"M{STREAM} {add:g}H{ASIDE + 9}q-9 0 -9 9V{INPUT.y - 9:g}q0 9 9 9H{STREAM}"
        left = 'text-anchor="end"'
        paths = {  # where each band runs, and where its words stand
            "stream": (f"M{STREAM} {add:g}V{fork:g}", STREAM - 15, beside, left),
            "branch": (branch, (STREAM + BRANCH - NORM[0] / 2) / 2, fork - 20, ""),
            "block_skip": (around, ASIDE - 14, BESIDE, left),
        }
        for name, (path, x, y, look) in paths.items():
            way = f"{sublayer}.{name}"
            if way in bands:
                yield band(way, path, *bands[way], x, y, look, identity=name == "stream" and spec.identity_path)


def split(sublayer: str) -> Slot:
    """Where a second stream takes what the branch writes."""
    return Slot(BRANCH, SLOTS[sublayer]["add"].y + 12, 14, 14)


def stream_part(sublayer: str, spec: BlockSpec, forward: bool, bold: bool) -> str:
    """The stream past one sublayer. It is drawn last: an identity passes over the plus, anything else stops at what stands on it."""
    slots, identity = SLOTS[sublayer], spec.identity_path
    breaks = [slots[name] for name in ("add" if forward else "fork", *elements(sublayer, spec)) if slots[name].x == STREAM]
    if sublayer == "attention" and spec.structure.block_skip and not forward:
        breaks.append(INPUT)
    shape = lane(STREAM, *SPANS[sublayer], breaks, identity, heading(sublayer, forward), bold)
    if sublayer == "attention":
        shape += path_label(STREAM + 18, BESIDE, identity, turned=True)
    title = "the residual stream, untouched" if identity else "the residual stream"
    return part(f"{sublayer}.stream", f"{NAMES[sublayer]}: {title}", shape)


def heading(sublayer: str, forward: bool) -> Literal["up", "down"] | None:
    """Where the arrow head of a stream's piece points; only the signal's last piece has one."""
    if (sublayer == "feed_forward") != forward:
        return None
    return "up" if forward else "down"


def branch_part(sublayer: str, spec: BlockSpec, forward: bool) -> str:
    """The branch's line and its map; backward, the sum where it meets the stream again."""
    slots, held = SLOTS[sublayer], elements(sublayer, spec)
    fork, add, frame = slots["fork"], slots["add"], slots["map"]
    start, end = (STREAM, STREAM + 16) if forward else (STREAM + 16, STREAM)
    path = line(f"M{start} {fork.y:g}H{BRANCH - 9}q9 0 9 -9V{add.y + 9:g}q0 -9 -9 -9H{end}")
    meeting = arrow(STREAM + 9, add.y, "left") if forward else node(fork, plus=True) + arrow(STREAM + 9, fork.y, "left")
    floor = min([slots[name].top for name in MATRICES if name in held], default=frame.bottom)
    ceiling = max([slots[name].bottom for name in ("head_gain", "inner") if name in held], default=frame.top)
    name = text(BRANCH, (floor + ceiling) / 2, NAMES[sublayer], 15, jacobian=not forward)  # amid what else is in the frame
    return part(f"{sublayer}.branch", f"{NAMES[sublayer]}: the branch", path, meeting, box(frame, "", "map"), name)


def skip_part(forward: bool) -> str:
    """The way from the block's input around everything to its last addition."""
    add = SLOTS["feed_forward"]["add"].y
    start, end = (STREAM, STREAM - 16) if forward else (STREAM - 16, STREAM)
    path = line(f"M{start} {INPUT.y:g}H{ASIDE + 9}q-9 0 -9 -9V{add + 9:g}q0 -9 9 -9H{end}")
    meeting = arrow(STREAM - 9, add, "right") if forward else node(INPUT, plus=True) + arrow(STREAM - 9, INPUT.y, "right")
    return part("feed_forward.block_skip", "Feed-forward: the block's input, added once more", path, meeting)


def dual_part(sublayer: str, spec: BlockSpec, forward: bool) -> str:
    """The second stream past one sublayer, and what the branch writes to it: a line that hops over what it crosses."""
    slot, tap = SLOTS[sublayer]["dual"], split(sublayer)
    crossed = [STREAM, ASIDE] if spec.structure.block_skip and sublayer == "attention" else [STREAM]
    hops = "".join(f"H{x + 7}a7 7 0 0 0 -14 0" for x in crossed)
    feed = line(f"M{BRANCH} {tap.y:g}V{slot.y + 9:g}q0 -9 -9 -9{hops}H{DUAL + (16 if forward else 0)}")
    meeting = arrow(DUAL + 9, slot.y, "left") if forward else arrow(BRANCH, tap.top, "down")
    nodes = node(slot, plus=forward) + node(tap, plus=not forward)
    path = lane(DUAL, *SPANS[sublayer], identity=True, to=heading(sublayer, forward))
    if sublayer == "attention":
        path += path_label(DUAL + 17, BESIDE, identity=True, turned=True)
    return part(f"{sublayer}.dual", f"{NAMES[sublayer]}: {DUAL_TITLE}", feed, nodes, meeting, path)
