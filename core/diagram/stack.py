"""The stack of blocks: how far the identity path reaches."""

from core.diagram.block import DUAL_TITLE
from core.diagram.shapes import GAP, NODE, SMALL_NORM, WIDTH, Slot, arrow, box, lane, line, node, part, path_label, svg, text
from core.diagram.words import NAMES, describe, norms_text, structure_text, upper, which
from core.placement import BlockSpec, Placement

BESIDE, STREAM = 32, 94  # columns: second stream, stream


def stack_svg(placement: Placement, layers: int) -> str:
    """The stack, embedding at the bottom: runs of equal blocks, the final norm, the head, and the identity path through them."""
    dual = placement.dual_stream
    left = 60 if dual else 8
    boxes = Slot((left + WIDTH - 8) / 2, 0, WIDTH - 8 - left, 30)  # what all boxes have in common
    drawing, y, first = [ending("embedding", "Embedding", boxes._replace(y=-23))], -38.0, 1
    if placement.embedding_norm:
        norm = Slot(STREAM, y - 26, *SMALL_NORM)
        drawing += [lane(STREAM, y, norm.bottom + GAP), norm_part("embedding_norm", "norm on the embedding", norm)]
        y = norm.top - GAP
    start = y
    if dual:
        y -= 12  # where the second stream leaves
    for _, run in placement.segments(layers):
        frame = boxes._replace(y=y - 52, height=72)
        identity = all(block.identity_path for block in run)
        drawing.append(run_part(run, first, frame, y, identity))
        y, first = frame.top, first + len(run)
    end = y - 24
    if not dual:
        drawing.append(lane(STREAM, y, end, identity=identity, to="up" if identity else None))
    after = end - (SMALL_NORM[1] + 2 * GAP) * placement.final_norm
    if placement.final_norm:
        norm = Slot(BESIDE if dual else STREAM, (end + after) / 2, *SMALL_NORM)
        drawing.append(norm_part("final_norm", "the final norm", norm))
    if dual:
        add = Slot(STREAM, after - 20, *NODE)
        way = f"M{STREAM} {start:g}v-3q0 -9 -9 -9H{BESIDE + 9}q-9 0 -9 -9V{end + 8:g}"
        feed = line(way, identity=True) + arrow(BESIDE, end, "up", identity=True)
        rest = line(f"M{BESIDE} {after:g}V{add.y + 9:g}q0 -9 9 -9H{STREAM - 16}") + arrow(STREAM - 9, add.y, "right")
        drawing += [lane(STREAM, y, add.bottom + GAP, identity=identity), part("stack.dual", DUAL_TITLE, feed, rest)]
        drawing.append(part("stack.add", "the head reads the sum of both streams", node(add, plus=True)))
        after = add.top
    head = boxes._replace(y=after - 35)
    drawing += [line(f"M{STREAM} {after:g}V{head.bottom + 6:g}"), arrow(STREAM, head.bottom, "up"), ending("head", "Head", head)]
    return svg(head.top - 8, f"{placement.title}: the stack of blocks", describe(placement, layers), drawing)


def ending(name: str, label: str, slot: Slot) -> str:
    return part(f"stack.{name}", label, box(slot, label, "map", 14))


def norm_part(name: str, title: str, slot: Slot) -> str:
    return part(f"stack.{name}", title, box(slot, "Norm", "norm", 12.5))


def run_part(run: list[BlockSpec], first: int, frame: Slot, below: float, identity: bool) -> str:
    """A run of equal blocks: what they are, and the stream through them with a mark for everything that stands on it."""
    structure = run[0].structure
    scaled = ["scale"] * any(block.alpha != 1.0 or block.structure.profiled for block in run)
    kinds = [kind for sublayer in NAMES for kind in scaled + ["norm"] * ("outer" in getattr(structure, sublayer))]
    step = frame.height / (len(kinds) + 1)
    marks = [Slot(STREAM, frame.bottom - step * place, 34, 7) for place in range(1, len(kinds) + 1)]
    left, start = STREAM + 26, 'text-anchor="start"'
    name = upper(which(range(first, first + len(run))))
    shapes = [
        box(frame, "", "map"),
        text(left, frame.top + 18, name, 13.5, look=f'{start} font-weight="600"'),
        path_label(frame.x + frame.width / 2 - 10, frame.top + 18, identity, 'text-anchor="end"'),
        *(text(left, frame.top + 38 + 17 * row, norms_text(sublayer, structure), 11.5, look=start) for row, sublayer in enumerate(NAMES)),
        lane(STREAM, below, frame.top, marks, identity),
        *(box(mark, "", kind) for mark, kind in zip(marks, kinds, strict=True)),
    ]
    return part(f"stack.blocks_{first}", f"{name}: {structure_text(structure)}", *shapes)
