"""Drawings of a placement, from its record alone: one block, the stack of blocks, and the same in words.

Every element that a record can ask for has one fixed slot, so that two blocks' drawings differ only in what stands in the slots. A drawn
part is a group with `data-part="{sublayer}.{part}"`, sublayer attention or feed_forward. The parts: stream, input, scale (s), branch, inner,
output, gate, add, outer, skip (alpha); query, key, value (head norms), head_gain; block_skip; dual (the second stream). In a group the
signal's lines have the class `line`, so that a page can set their widths. Colours are CSS variables, see PALETTE.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

import vl_convert

from core.images import SCALE
from core.placement import BlockSpec, Placement, Structure

Theme = Literal["light", "dark"]
View = Literal["forward", "backward"]

# A page sets --lab-paper and so on; where it does not, the light theme's colour holds.
PALETTE: dict[Theme, dict[str, str]] = {
    "light": {
        "paper": "#ffffff",
        "panel": "#f3f5f8",
        "ink": "#1c2430",
        "quiet": "#5b6675",
        "identity": "#2463b4",
        "norm": "#bd4a14",
        "norm-fill": "#fde6d8",
        "scale": "#7b45b5",
        "scale-fill": "#efe6f9",
        "map": "#5b6675",
        "map-fill": "#ffffff",
    },
    "dark": {
        "paper": "#11151c",
        "panel": "#1b212b",
        "ink": "#e6eaf0",
        "quiet": "#98a3b3",
        "identity": "#6cabf7",
        "norm": "#f0935a",
        "norm-fill": "#4a2a17",
        "scale": "#bb94ee",
        "scale-fill": "#35264c",
        "map": "#98a3b3",
        "map-fill": "#11151c",
    },
}
FONT = "'Source Sans', 'Source Sans Pro', 'Helvetica Neue', Arial, sans-serif"
NAMES = {"attention": "Attention", "feed_forward": "Feed-forward"}
SITES = {  # bottom to top
    "input": "on what the branch reads",
    "inner": "inside the branch, before its output projection",
    "output": "on what the branch writes",
    "outer": "on the stream, after the addition",
}
MATRICES = {"query": "queries", "key": "keys", "value": "values"}


class Slot(NamedTuple):
    """A place on the grid: its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


WIDTH, HEIGHT = 360, 640
DUAL, ASIDE, STREAM, BRANCH = 24, 62, 122, 256  # columns: second stream, the way of block_skip, stream, branch
FEET = HEIGHT - 68  # where the block's first branch leaves the stream; below it, the block's input
NORM, PILL, NODE = (76, 22), (116, 18), (18, 18)
LANE, BOXES, SMALL_NORM = 104, 206, (56, 20)  # the stack's columns: stream, boxes
DUAL_TITLE = "the second stream, untouched: it adds up what the branches write"


def sublayer_slots(fork: float, head_slots: bool) -> dict[str, Slot]:
    """The slots of one sublayer, from where its branch leaves the stream."""
    rows = [("input", *NORM), ("scale", *PILL), ("map", 164, 92 if head_slots else 56), ("output", *NORM), ("gate", *PILL)]
    slots, top = {"fork": Slot(STREAM, fork, *NODE)}, fork - 14
    for part, width, height in rows:
        slots[part] = Slot(BRANCH, top - height / 2, width, height)
        top -= height + 9
    inside = slots["map"]
    slots["inner"] = Slot(BRANCH, inside.top + 5 + NORM[1] / 2, *NORM)
    if head_slots:
        slots["head_gain"] = Slot(BRANCH, slots["inner"].bottom + 4 + PILL[1] / 2, *PILL)
        slots |= {part: Slot(BRANCH + 51 * place, inside.bottom - 14, 48, 18) for place, part in zip((-1, 0, 1), MATRICES, strict=True)}
    slots["add"] = Slot(STREAM, top - 9, *NODE)
    slots["skip"] = Slot(STREAM, slots["add"].y + 32, 62, 18)
    slots["dual"] = Slot(DUAL, top - 31, *NODE)
    slots["outer"] = Slot(STREAM, top - 43 - NORM[1] / 2, *NORM)
    slots["end"] = Slot(STREAM, slots["outer"].top - 20, *NODE)
    return slots


ATTENTION = sublayer_slots(FEET, head_slots=True)
SLOTS = {"attention": ATTENTION, "feed_forward": sublayer_slots(ATTENTION["end"].y, head_slots=False)}
INPUT = Slot(STREAM, FEET + 22, *NODE)  # where block_skip leaves


def block_svg(spec: BlockSpec, view: View = "forward", dual: bool = False) -> str:
    """One block, from x at the bottom to x' at the top; the backward view has the same parts with the signal reversed.

    `dual` adds the second stream, Placement.dual_stream.
    """
    forward, structure = view == "forward", spec.structure
    head, foot = SLOTS["feed_forward"]["end"].y, HEIGHT - 18
    drawing = [f'<rect x="42" y="{head + 6:g}" width="310" height="{FEET + 32 - head:g}" rx="14" fill="{colour("panel")}"/>']
    if structure.block_skip:
        drawing.append(block_skip(forward))
    for sublayer, sites in (("attention", structure.attention), ("feed_forward", structure.feed_forward)):
        slots, first = SLOTS[sublayer], sublayer == "attention"
        span = (foot - 12 if first else slots["fork"].y, slots["end"].y if first else head - 16)
        if dual:
            drawing.append(dual_stream(sublayer, span, forward, structure.block_skip and first))
        drawing.append(branch(sublayer, spec, forward))
        drawing += [
            part(sublayer, site, f"norm {SITES[site]}", box(slots[site], "Norm", "norm", jacobian=not forward))
            for site in SITES
            if site in sites
        ]
        drawing += scales(sublayer, spec)
        added = "the branch is added to the stream" if forward else "the gradient goes both ways, unchanged"
        drawing.append(part(sublayer, "add", added, node(slots["add"], plus=forward)))
        drawing.append(stream(sublayer, spec, span, forward))
    path, tone = ("identity path", "identity") if spec.identity_path else ("path interrupted", "quiet")
    clear = (ATTENTION["fork"].y + ATTENTION["skip"].bottom) / 2
    drawing.append(text(STREAM + 20, clear, path, 12, tone, turned=True, bold=spec.identity_path))
    if dual:
        drawing.append(text(DUAL + 34, clear, "identity path", 12, "identity", turned=True, bold=True))
    ends = ("x", "x′") if forward else ("∂ℓ/∂x", "∂ℓ/∂x′")
    for label, y in zip(ends, (foot - 6, head - 10), strict=True):
        drawing.append(text(STREAM + 16, y, label, 17, italic=True, anchor="start"))
    title = f"One Transformer block, {'forward' if forward else 'backward: the gradients, J a Jacobian'}"
    return svg(HEIGHT, title, block_text(spec, dual), drawing)


def stream(sublayer: str, spec: BlockSpec, span: tuple[float, float], forward: bool) -> str:
    """The stream past one sublayer: one thick line where it is an identity, else dashed and broken at everything that stands on it."""
    slots, (bottom, top) = SLOTS[sublayer], span
    last = (sublayer == "feed_forward") == forward
    tip, identity = (top if forward else bottom), spec.identity_path
    on_it = ["add" if forward else "fork"]
    on_it += ["skip"] * (spec.alpha != 1.0) + ["outer"] * ("outer" in getattr(spec.structure, sublayer))
    breaks = [slots[name] for name in on_it] + [INPUT] * (sublayer == "attention" and spec.structure.block_skip and not forward)
    lines = lane(STREAM, bottom, top, breaks, identity)
    heads = [arrow(STREAM, tip, "up" if forward else "down", identity)] if last else []
    return part(sublayer, "stream", "the residual stream" + ", untouched" * identity, *lines, *heads)


def branch(sublayer: str, spec: BlockSpec, forward: bool) -> str:
    """The branch's line, its map with what is inside it, and in the backward view the sum where it meets the stream."""
    slots, structure = SLOTS[sublayer], spec.structure
    fork, add, inside = slots["fork"], slots["add"], slots["map"]
    start, end = (STREAM, STREAM + 16) if forward else (STREAM + 16, STREAM)
    way = f"M{start} {fork.y:g}H{BRANCH - 9}q9 0 9 -9V{add.y + 9:g}q0 -9 -9 -9H{end}"
    tip = arrow(STREAM + 9, (add if forward else fork).y, "left")
    parts = [] if forward else [node(fork, plus=True)]
    held = [name for name in (*MATRICES, "head_gain", "inner") if name in slots and drawn_inside(sublayer, name, structure)]
    floor = min((slots[name].top for name in held if name in MATRICES), default=inside.bottom)
    ceiling = max((slots[name].bottom for name in held if name not in MATRICES), default=inside.top)
    frame = box(inside, "", "map")
    name = text(BRANCH, (floor + ceiling) / 2, NAMES[sublayer], 15, jacobian=not forward)
    heads = [
        part(
            sublayer, matrix, f"norm of each head's {MATRICES[matrix]}", box(slots[matrix], f"Norm {matrix[0].upper()}", "norm", size=11.5)
        )
        for matrix in MATRICES
        if matrix in held
    ]
    if "head_gain" in held:
        heads.append(
            part(sublayer, "head_gain", "a learned factor for each head", box(slots["head_gain"], "× gain per head", "scale", size=12))
        )
    title = "the branch" if forward else "the gradient through the branch, added to the stream's"
    return part(sublayer, "branch", title, line(way), tip, *parts, frame, name) + "".join(heads)


def drawn_inside(sublayer: str, name: str, structure: Structure) -> bool:
    if name == "head_gain":
        return structure.head_gain
    return name in (getattr(structure, sublayer) if name == "inner" else structure.head_norms)


def scales(sublayer: str, spec: BlockSpec) -> list[str]:
    """What multiplies the branch's input, its output and the stream, where that is not one."""
    learned, slots = spec.structure.learned_gate, SLOTS[sublayer]
    kind = {None: "", "scalar": " by one number, learned from that on", "vector": " by a vector, learned from that on"}[learned]
    shown = [
        ("scale", spec.input_scale, spec.input_scale != 1.0, "what the branch reads is multiplied", ""),
        (
            "gate",
            spec.gate,
            learned is not None or spec.gate != 1.0,
            f"what the branch writes is multiplied{kind}",
            ", learned" * bool(learned),
        ),
        ("skip", spec.alpha, spec.alpha != 1.0, "the stream is multiplied", ""),
    ]
    return [
        part(sublayer, name, f"{says}: × {number(value)}", box(slots[name], f"× {number(value)}{note}", "scale", size=12))
        for name, value, drawn, says, note in shown
        if drawn
    ]


def block_skip(forward: bool) -> str:
    """The way from the block's input around everything to its last addition."""
    add = SLOTS["feed_forward"]["add"]
    start, end = (STREAM, STREAM - 16) if forward else (STREAM - 16, STREAM)
    way = f"M{start} {INPUT.y:g}H{ASIDE + 9}q-9 0 -9 -9V{add.y + 9:g}q0 -9 9 -9H{end}"
    shapes = [line(way), arrow(STREAM - 9, (add if forward else INPUT).y, "right")] + [node(INPUT, plus=True)] * (not forward)
    return part("feed_forward", "block_skip", "the block's input, added once more", *shapes)


def dual_stream(sublayer: str, span: tuple[float, float], forward: bool, over_skip: bool) -> str:
    """The second stream past one sublayer, and what the branch writes to it; the line hops over what it crosses."""
    slot, add, (bottom, top) = SLOTS[sublayer]["dual"], SLOTS[sublayer]["add"], span
    hops = "".join(f"H{x + 7}a7 7 0 0 0 -14 0" for x in [STREAM, *[ASIDE] * over_skip])
    feed = line(f"M{BRANCH} {add.y + 10:g}V{slot.y + 9:g}q0 -9 -9 -9{hops}H{DUAL}")
    split = Slot(BRANCH, add.y + 11, 14, 14)
    tip = arrow(DUAL + 9, slot.y, "left") if forward else arrow(BRANCH, split.top, "down")
    last = (sublayer == "feed_forward") == forward
    heads = [arrow(DUAL, top if forward else bottom, "up" if forward else "down", True)] if last else []
    way = line(f"M{DUAL} {bottom:g}V{top:g}", identity=True)
    shapes = [feed, node(slot, plus=forward), node(split, plus=not forward), tip, way, *heads]
    return part(sublayer, "dual", DUAL_TITLE, *shapes)


def lane(x: float, bottom: float, top: float, breaks: Sequence[Slot] = (), identity: bool = False) -> list[str]:
    """A stream's line: in one piece, whatever it passes, where it is an identity; else dashed, with a gap at each break."""
    if identity:
        return [line(f"M{x} {bottom:g}V{top:g}", identity=True)]
    edges = [bottom]
    for slot in sorted(breaks, key=lambda slot: -slot.y):
        edges += [slot.bottom + 4, slot.top - 4]
    edges.append(top)
    return [line(f"M{x} {start:g}V{stop:g}", dashed=True) for start, stop in zip(edges[::2], edges[1::2], strict=True)]


def stack_svg(placement: Placement, layers: int) -> str:
    """The whole stack, embedding at the bottom: runs of equal blocks, and how far the identity path reaches. Upwards is negative."""
    drawing, y, first = [stack_box("embedding", "Embedding", -24)], -39.0, 1
    if placement.embedding_norm:
        norm = Slot(LANE, y - 26, *SMALL_NORM)
        drawing += [
            *lane(LANE, y, norm.bottom + 4),
            part("stack", "embedding_norm", "norm on the embedding", box(norm, "Norm", "norm", 12)),
        ]
        y = norm.top - 4
    start = y
    y -= 12 * placement.dual_stream
    for _, run in placement.segments(layers):
        frame = Slot(BOXES, y - 52, 292, 72)
        drawing.append(stack_run(run, frame, first, start if first == 1 else y))
        y, first = frame.top, first + len(run)
    identity, end = run[-1].identity_path, y - 24
    after = end - 28 * placement.final_norm
    if placement.dual_stream:
        add = Slot(LANE, after - 20, *NODE)
        drawing += [
            *lane(LANE, y, add.bottom, identity=identity),
            line(f"M{LANE} {start - 12:g}H{DUAL}"),
            part("stack", "dual", DUAL_TITLE, *lane(DUAL, start - 12, end, identity=True), arrow(DUAL, end, "up", True)),
            line(f"M{DUAL} {after:g}V{add.y + 9:g}q0 -9 9 -9H{LANE - 16}"),
            arrow(LANE - 9, add.y, "right"),
            part("stack", "add", "the sum of both streams", node(add, plus=True)),
        ]
        after = add.top
    else:
        drawing += [*lane(LANE, y, end, identity=identity), *[arrow(LANE, end, "up", True)] * identity]
    if placement.final_norm:
        norm = Slot(DUAL if placement.dual_stream else LANE, end - 14, *SMALL_NORM)
        drawing.append(part("stack", "final_norm", "the final norm", box(norm, "Norm", "norm", 12)))
    drawing += [line(f"M{LANE} {after:g}V{after - 16:g}"), arrow(LANE, after - 20, "up"), stack_box("head", "Head", after - 35)]
    return svg(-after + 58, f"{placement.title}: the stack of blocks", describe(placement, layers), drawing, top=after - 58)


def stack_box(name: str, label: str, y: float) -> str:
    return part("stack", name, label, box(Slot(BOXES, y, 292, 30), label, "map", 14))


def stack_run(run: list[BlockSpec], frame: Slot, first: int, below: float) -> str:
    """A run of equal blocks: what they are, and the stream through them with a mark for everything that stands on it."""
    structure, identity = run[0].structure, all(block.identity_path for block in run)
    name, left, right = numbers([(first, len(run))]), LANE + 32, frame.x + frame.width / 2 - 10
    path, tone = ("identity path", "identity") if identity else ("path interrupted", "quiet")
    scaled = any(block.alpha != 1.0 for block in run)
    kinds = [kind for sites in (structure.attention, structure.feed_forward) for kind in ["scale"] * scaled + ["norm"] * ("outer" in sites)]
    marks = [Slot(LANE, frame.bottom - frame.height * (place + 1) / (len(kinds) + 1), 34, 7) for place in range(len(kinds))]
    shapes = [box(frame, "", "map"), text(left, frame.top + 18, name, 13.5, anchor="start", bold=True)]
    shapes.append(text(right, frame.top + 18, path, 12, tone, anchor="end", bold=identity))
    for place, sublayer in enumerate(NAMES):
        words = f"{NAMES[sublayer].lower()}: {', '.join(norms(sublayer, structure)) or 'no norm'}"
        shapes.append(text(left, frame.top + 37 + 17 * place, words, 12, anchor="start"))
    shapes += lane(LANE, below, frame.top, marks, identity) + [box(mark, "", kind) for mark, kind in zip(marks, kinds, strict=True)]
    return part("stack", f"blocks_{first}", f"{name}: {structure_text(structure)}", *shapes)


def describe(placement: Placement, layers: int) -> str:
    """The placement in two to eight sentences, for whoever does not see the drawing."""
    blocks = [placement.block(layer, layers) for layer in range(1, layers + 1)]
    runs: dict[Structure, list[tuple[int, int]]] = {}
    first = 1
    for structure, run in placement.segments(layers):
        runs.setdefault(structure, []).append((first, len(run)))
        first += len(run)
    kinds = [f"{numbers(where)}: {structure_text(structure)}" for structure, where in runs.items()]
    sentences = [f"{placement.title} has {layers} block{'s' * (layers > 1)}, each with attention first and feed-forward second."]
    sentences += [f"{kind}." for kind in kinds] if len(kinds) <= 2 else [f"{'; '.join(kinds)}."]
    sentences += scales_text(blocks)
    if placement.embedding_norm:
        sentences.append("A norm on the embedding comes before the first block.")
    if placement.dual_stream:
        sentences.append("A second stream only adds up what the branches write; the head reads the sum of both.")
    of = "the second stream" if placement.dual_stream else "the last block"
    sentences.append(f"{'A final norm follows' if placement.final_norm else 'No norm follows'} {of}.")
    broken = [(layer, 1) for layer, block in enumerate(blocks, 1) if not block.identity_path]
    if placement.identity_path(layers):
        sentences.append("The embedding reaches the end of the stack on an identity path, without passing a norm or a scale.")
    else:
        sentences.append(f"There is no identity path: the stream passes a norm or a scale in {numbers(broken).lower()}.")
    return " ".join(sentences)


def block_text(spec: BlockSpec, dual: bool) -> str:
    """One block in words."""
    path = "crosses the block on an identity path" if spec.identity_path else "passes a norm or a scale"
    second = " A second stream only adds up what the branches write." * dual
    return " ".join([f"{upper(structure_text(spec.structure))}.", *scales_text([spec]), f"The stream {path}.{second}"])


def structure_text(structure: Structure) -> str:
    words = []
    for sublayer, name in NAMES.items():
        parts = [f"the {site} norm {SITES[site]}" for site in SITES if site in getattr(structure, sublayer)]
        if sublayer == "attention":
            parts += [f"a norm of each head's {plural}" for matrix, plural in MATRICES.items() if matrix in structure.head_norms]
            parts += ["a learned gain for each head"] * structure.head_gain
        words.append(f"{name.lower()} has {', '.join(parts) or 'no norm'}")
    return "; ".join(words + ["the block's input is added once more at its last addition"] * structure.block_skip)


def scales_text(blocks: Sequence[BlockSpec]) -> list[str]:
    """A sentence on the numbers, where they are not all one."""
    learned = any(block.structure.learned_gate for block in blocks)
    gains = {name: 1.0 for block in blocks for name, _ in block.init_gain}
    values = {
        "the stream is multiplied by {} before each addition": [block.alpha for block in blocks],
        "what a branch reads is multiplied by {}": [block.input_scale for block in blocks],
        "what a branch writes is multiplied by {}" + ", learned from there" * learned: [block.gate for block in blocks],
        f"{', '.join(gains).replace('_', ' ')} start {{}} times as large": [gain for block in blocks for _, gain in block.init_gain],
    }
    words = [text.format(span(of)) for text, of in values.items() if set(of) - {1.0} or (learned and "writes" in text)]
    return [f"{upper('; '.join(words))}."] if words else []


def norms(sublayer: str, structure: Structure) -> list[str]:
    """The norms of a sublayer, each in a word."""
    heads = [matrix for matrix in MATRICES if matrix in structure.head_norms and sublayer == "attention"]
    return heads + [site for site in SITES if site in getattr(structure, sublayer)]


def numbers(runs: Sequence[tuple[int, int]]) -> str:
    """Runs of blocks (first, length) in words: block 1, blocks 2 to 5 and 7."""
    merged: list[list[int]] = []
    for first, length in runs:
        if merged and merged[-1][1] == first - 1:
            merged[-1][1] += length
        else:
            merged.append([first, first + length - 1])
    words = [f"{first} to {last}" if last > first else str(first) for first, last in merged]
    return f"Block{'s' * (words != ['1'] and (len(words) > 1 or ' ' in words[0]))} {', '.join(words)}"


def span(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def number(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}".replace("e-0", "e-")


def upper(words: str) -> str:
    return words[:1].upper() + words[1:]


# Shapes.


def svg(height: float, title: str, description: str, drawing: list[str], top: float = 0) -> str:
    """A drawing of the given height, with its name and its text."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top:g} {WIDTH} {height:g}" role="img" font-family="{FONT}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f'<rect y="{top:g}" width="{WIDTH}" height="{height:g}" fill="{colour("paper")}"/>{"".join(drawing)}</svg>'
    )


def part(sublayer: str, name: str, title: str, *shapes: str) -> str:
    owner = f"{NAMES[sublayer]}: " if sublayer in NAMES else ""
    return f'<g data-part="{sublayer}.{name}"><title>{escape(owner + title)}</title>{"".join(shapes)}</g>'


def box(slot: Slot, label: str, kind: str, size: float = 13.5, jacobian: bool = False) -> str:
    radius = {"norm": 5, "scale": slot.height / 2, "map": 9}[kind]
    x, width = slot.x - slot.width / 2, slot.width
    frame = (
        f'<rect class="{kind}" x="{x:g}" y="{slot.top:g}" width="{width:g}" height="{slot.height:g}" rx="{min(radius, slot.height / 2):g}" '
        f'fill="{colour(f"{kind}-fill")}" stroke="{colour(kind)}" stroke-width="1.5"/>'
    )
    return frame + (text(slot.x, slot.y, label, size, jacobian=jacobian) if label else "")


def node(slot: Slot, plus: bool) -> str:
    """A circled plus where signals are added, a dot where one goes two ways."""
    radius, arm = slot.width / 2, slot.width / 2 - 3.5
    if not plus:
        return f'<circle cx="{slot.x:g}" cy="{slot.y:g}" r="3.5" fill="{colour("quiet")}"/>'
    return (
        f'<g fill="{colour("paper")}" stroke="{colour("ink")}" stroke-width="1.8"><circle cx="{slot.x:g}" cy="{slot.y:g}" r="{radius:g}"/>'
        f'<path d="M{slot.x - arm:g} {slot.y:g}h{2 * arm:g}M{slot.x:g} {slot.y - arm:g}v{2 * arm:g}"/></g>'
    )


def line(way: str, identity: bool = False, dashed: bool = False) -> str:
    look = f'class="line identity" stroke="{colour("identity")}" stroke-width="5"'
    if not identity:
        look = f'class="line" stroke="{colour("quiet")}" stroke-width="2"' + ' stroke-dasharray="5 4"' * dashed
    return f'<path d="{way}" fill="none" {look}/>'


def arrow(x: float, y: float, to: Literal["up", "down", "left", "right"], identity: bool = False) -> str:
    """An arrow head with its tip at the point."""
    length, half = (15, 9) if identity else (9, 5)
    across, along = {"up": (0, 1), "down": (0, -1), "left": (1, 0), "right": (-1, 0)}[to]
    left, right = ((x + across * length + side * along * half, y + along * length + side * across * half) for side in (-1, 1))
    points = " ".join(f"{px:g},{py:g}" for px, py in ((x, y), left, right))
    return f'<polygon points="{points}" fill="{colour("identity" if identity else "quiet")}"/>'


def text(
    x: float,
    y: float,
    words: str,
    size: float,
    tone: str = "ink",
    anchor: str = "middle",
    bold: bool = False,
    italic: bool = False,
    turned: bool = False,
    jacobian: bool = False,
) -> str:
    """Words centred at a height; a map's name becomes the index of its Jacobian."""
    content = escape(words)
    if jacobian:
        content = f'<tspan font-style="italic">J</tspan><tspan font-size="{size - 2:g}" dx="1" dy="3">{content}</tspan>'
    look = ' font-weight="600"' * bold + ' font-style="italic"' * italic + f' transform="rotate(-90 {x:g} {y:g})"' * turned
    place = f'x="{x:g}" y="{y + 0.35 * size:g}" font-size="{size:g}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour(tone)}"{look}>{content}</text>'


def colour(name: str) -> str:
    return f"var(--lab-{name}, {PALETTE['light'][name]})"


def resolved(drawing: str, theme: Theme) -> str:
    """The drawing in a theme's own colours, for a file."""
    return re.sub(r"var\(--lab-([a-z-]+), #\w+\)", lambda match: PALETTE[theme][match[1]], drawing)


def png(drawing: str, theme: Theme = "light") -> bytes:
    """The drawing as a picture."""
    return vl_convert.svg_to_png(resolved(drawing, theme), scale=SCALE)
