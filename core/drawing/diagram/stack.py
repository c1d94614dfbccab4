"""The stack of blocks: how far the identity path reaches."""

from typing import Literal

from core.drawing.diagram.block import DUAL_TITLE, View
from core.drawing.diagram.shapes import (
    GAP,
    NODE,
    SMALL_NORM,
    WIDTH,
    Slot,
    arrow,
    box,
    lane,
    line,
    node,
    part,
    path_label,
    signal,
    svg,
    text,
)
from core.drawing.words import NAMES, describe, norms_text, structure_text, upper, which
from core.placement.record import BlockSpec, Placement

BESIDE, STREAM = 32, 94  # columns: second stream, stream
LABEL = STREAM + 13


def stack_svg(placement: Placement, layers: int, view: View = "forward") -> str:
    """The stack, embedding at the bottom: the segments, the final norm, the head, and the identity path through them.

    The backward view has the same parts with the signal reversed.
    """
    forward, dual = view == "forward", placement.dual_stream
    left = 60 if dual else 8
    boxes = Slot((left + WIDTH - 8) / 2, 0, WIDTH - 8 - left, 30)  # what all boxes have in common
    drawing, y, first = [ending("embedding", "Embedding", boxes._replace(y=-23))], -38.0, 1
    if placement.embedding_norm:
        norm = Slot(STREAM, y - 26, *SMALL_NORM)
        drawing += [
            lane(STREAM, y, norm.bottom + GAP, to=None if forward else "down"),
            norm_part("embedding_norm", "norm on the embedding", norm, forward),
        ]
        y = norm.top - GAP
    start = y
    drawing.append(signal(LABEL, start - 13, "x", "0", forward))
    if dual:
        y -= 36  # where the second stream leaves
    for _, segment in placement.segments(layers):
        room = 26 if y == start else 16  # more above x_0, unless the second stream has made some
        frame = boxes._replace(y=y - room - 36, height=72)
        identity = all(block.identity_path for block in segment)
        last = first == 1 and not forward  # the last that the signal passes
        below = y - NODE[1] / 2 - GAP if dual and last else y  # the gradients of both streams are added there
        ends = last and not dual and (identity or not placement.embedding_norm)
        drawing.append(segment_part(segment, first, frame, below, "down" if ends else None, forward))
        y, first = frame.top, first + len(segment)
    end = y - 28
    drawing.append(signal(LABEL, y - 12, "x", "L", forward))
    if not dual:
        drawing.append(lane(STREAM, y, end, identity=identity, to="up" if identity and forward else None))
    after = end
    if placement.final_norm:
        after = end - SMALL_NORM[1] - 2 * GAP
        norm = Slot(BESIDE if dual else STREAM, (end + after) / 2, *SMALL_NORM)
        drawing.append(norm_part("final_norm", "the final norm", norm, forward))
    if dual:
        add = Slot(STREAM, after - 20, *NODE)
        drawing += [lane(STREAM, y, add.bottom + GAP, identity=identity), dual_part(start, end, after, add.y, forward)]
        title = "the head reads the sum of both streams" if forward else "the gradient goes to both streams, unchanged"
        drawing.append(part("stack.add", title, node(add, plus=forward)))
        after = add.top
    head = boxes._replace(y=after - 38)
    drawing += [line(f"M{STREAM} {after:g}V{head.bottom + (6 if forward else 0):g}"), signal(LABEL, after - 10, "y", "", forward)]
    if forward:
        drawing.append(arrow(STREAM, head.bottom, "up"))
    drawing.append(ending("head", "Head", head))
    title = "the stack of blocks" if forward else "the stack of blocks, backward: the gradient of the loss ℓ goes from the head down"
    return svg(head.top - 8, f"{placement.title}: {title}", describe(placement, layers), drawing)


def ending(name: str, label: str, slot: Slot) -> str:
    return part(f"stack.{name}", label, box(slot, label, "map", 14))


def norm_part(name: str, title: str, slot: Slot, forward: bool) -> str:
    return part(f"stack.{name}", title, box(slot, "Norm", "norm", 12.5, jacobian=not forward))


def dual_part(start: float, end: float, after: float, add: float, forward: bool) -> str:
    """The second stream beside the blocks, from where it leaves the first one to where what is made of it is added."""
    fork, join = start - 34, f"M{BESIDE} {after:g}V{add + 9:g}q0 -9 9 -9H{STREAM - (16 if forward else 0)}"
    names = text(BESIDE + 17, (fork + end) / 2, "r" if forward else "∂ℓ/∂r", 13, "identity", 'font-style="italic"', turned=True)
    if forward:
        path = line(f"M{STREAM} {start:g}V{fork + 9:g}q0 -9 -9 -9H{BESIDE + 9}q-9 0 -9 -9V{end + 8:g}", identity=True)
        shapes = [path, arrow(BESIDE, end, "up", identity=True), line(join), arrow(STREAM - 9, add, "right")]
    else:
        path = line(f"M{BESIDE} {end:g}V{fork - 9:g}q0 9 9 9H{STREAM - 22}", identity=True)
        tip = arrow(STREAM - 9, fork, "right", identity=True)
        meeting = node(Slot(STREAM, fork, *NODE), plus=True)
        shapes = [path, tip, lane(STREAM, start, fork + 9, identity=True, to="down"), meeting, line(join)]
    return part("stack.dual", DUAL_TITLE, *shapes, names)


def skip_mark(start: float, end: float, forward: bool) -> str:
    """The way of a block's input around its norms, in small."""
    path = line(f"M{STREAM} {start:g}H{STREAM - 23}q-9 0 -9 -9V{end + 9:g}q0 -9 9 -9H{STREAM - 6}")
    return path + arrow(STREAM - 3, end if forward else start, "right")


def segment_part(segment: list[BlockSpec], first: int, frame: Slot, below: float, to: Literal["down"] | None, forward: bool) -> str:
    """A segment: what its blocks are, and the stream through them with a mark for everything that stands on it."""
    structure, identity = segment[0].structure, all(block.identity_path for block in segment)
    kinds = []
    for sublayer in NAMES:
        if structure.profiled or any(block.alpha != 1.0 for block in segment):
            kinds.append("scale")
        if "outer" in getattr(structure, sublayer):
            kinds.append("norm")
    places = max(len(kinds), 2) if structure.block_skip else len(kinds)  # so that the way around has room below the last norm
    step = frame.height / (places + 1)
    marks = [Slot(STREAM, frame.top + step * place, 34, 7) for place in range(len(kinds), 0, -1)]
    skip = []
    if structure.block_skip:
        last_addition = frame.top + step * (1.5 if "outer" in structure.feed_forward else 0.5)  # below the last norm
        skip = [skip_mark(frame.bottom - 6, last_addition, forward)]
    left, start = STREAM + 26, 'text-anchor="start"'
    name = upper(which(range(first, first + len(segment))))
    shapes = [
        box(frame, "", "map"),
        text(left, frame.top + 18, name, 13.5, look=f'{start} font-weight="600"'),
        path_label(frame.x + frame.width / 2 - 10, frame.top + 18, identity, 'text-anchor="end"'),
        *(text(left, frame.top + 38 + 17 * row, norms_text(sublayer, structure), 11.5, look=start) for row, sublayer in enumerate(NAMES)),
        *skip,
        lane(STREAM, below, frame.top, marks, identity, to),
        *(box(mark, "", kind) for mark, kind in zip(marks, kinds, strict=True)),
    ]
    return part(f"stack.blocks_{first}", f"{name}: {structure_text(structure)}", *shapes)
