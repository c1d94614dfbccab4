"""Two placements' blocks as drawings and equations that light up together and slide into each other, without asking the server."""

import re
from html import escape
from pathlib import Path
from typing import Any, get_args

import streamlit as st

from core.drawing.diagram.block import View, block_svg
from core.drawing.diagram.shapes import WIDEST
from core.drawing.diagram.stack import stack_svg
from core.drawing.equations import IDENTITY_PATH, Token, ends, equations, jacobian, tokens
from core.drawing.mathml import math
from core.drawing.words import likeness_text, upper, which
from core.once import once
from core.placement.record import Placement
from core.runs.labels import labels
from core.state.address import write_run
from core.state.pair import Pair
from pages.ui.identity_path import placements
from pages.ui.identity_path.measured import measurements, reason_for_none
from pages.ui.shared.results import Result

HERE = Path(__file__)
NAME = "identity_path"
MOUNT = st.components.v2.component(
    NAME, html='<div class="lab"></div>', css=HERE.with_suffix(".css").read_text(), js=HERE.with_suffix(".js").read_text()
)
VIEWS: tuple[View, ...] = get_args(View)


def compare(pair: Pair, entries: list[Result], steps: list[int]) -> None:
    """Both sides as one component, with the runs that they show and the slider's steps.

    The browser draws another view at once and reports it afterwards; `heard` is the number of the last report that this answers.
    """
    known = [entry.config for entry in entries if entry.run]
    names = dict(zip(known, labels(known), strict=True))
    data = {
        "sides": [
            side(placement, pair.drawn, pair.layers)
            | {"measured": measurements(placement, pair, entry.run, names.get(entry.config, ""), steps)}
            | {"missing": reason_for_none(entry), "train": write_run(entry.config)}
            for placement, entry in zip(pair.placements, entries, strict=True)
        ],
        "steps": steps,
        "step": pair.step,
        "widest": WIDEST,
        "title": f"Block {pair.drawn} of {pair.layers}",
        "drawn": pair.drawn,
        "view": pair.view,
        "slide": pair.slide,
        "heard": st.session_state.get("pair_heard", 0),
    }
    MOUNT(key=NAME, data=data, on_shown_change=hear)


def hear() -> None:
    """The callback for what the browser reports."""
    said = st.session_state[NAME].get("shown")
    if isinstance(said, dict) and isinstance(said.get("said"), int):
        st.session_state.pair_heard = said["said"]
        placements.show({name: said[name] for name in ("view", "slide", "block", "step") if name in said})


@once(256)
def side(placement: Placement, layer: int, layers: int) -> dict[str, Any]:
    """What is shown of a placement: one block and the stack in both views, and the equations of all blocks."""
    segments = equations(placement, layers)
    return {
        "title": escape(placement.title),
        "which": likeness_text(placement, layer, layers),
        "block": {view: block_svg(placement.block(layer, layers), view, placement.dual_stream) for view in VIEWS},
        "stack": {view: stack_svg(placement, layers, view) for view in VIEWS},
        "segments": [(segment.first, segment.last) for segment in segments],
        "formulas": formulas(placement, layers),
    }


def formulas(placement: Placement, layers: int) -> str:
    """The equations, Jacobians and values of a placement, as the entries of an HTML definition list."""
    entries: list[tuple[str, list[list[Token]]]] = []
    for segment, derivative in zip(equations(placement, layers), jacobian(placement, layers), strict=True):
        entries += [(upper(which(range(segment.first, segment.last + 1))), segment.lines), ("Jacobian ∂x′/∂x", [tokens(derivative)])]
        numbers = [pieces(latex) for latex in (*segment.constants, *segment.gains)]
        if numbers:
            entries.append((f"At a depth of {layers}", numbers))
    if placement.dual_stream:
        entries.append(("Jacobian ∂r′/∂r", [[(IDENTITY_PATH, "attention.dual")]]))
    entries.append(("Before the first block, and what the head reads", ends(placement)))
    return "".join(f"<dt>{title}</dt>" + "".join(f"<dd>{math(line)}</dd>" for line in lines) for title, lines in entries)


def pieces(latex: str) -> list[Token]:
    """A line that may break before a plus sign and before words."""
    first, *rest = re.split(r" (?=\+ )|\\ (?=\\text)", latex)
    return [(first, None), *((text, None) for part in rest for text in (" ", part))]


def symbols_text(pair: Pair) -> str:
    """What the symbols on the page stand for."""
    blocks = [block for placement in pair.placements for _, segment in placement.segments(pair.layers) for block in segment]
    structures = [block.structure for block in blocks]
    entries = {
        "x, h, x′: the stream before, within and after a block": True,
        "x₀, x_L: before the first block and after the last of L": True,
        "r: the second stream": any(placement.dual_stream for placement in pair.placements),
        "A, F: attention and feed-forward": True,
        "N: a norm, with its site where a sublayer has several": True,
        "α: what multiplies the stream": any(block.alpha != 1 for block in blocks),
        "ω: learned factors of the stream's features; diag(ω) has them on its diagonal": any(one.profiled for one in structures),
        "s: what multiplies what a branch reads": any(block.input_scale != 1 for block in blocks),
        "g: what multiplies what a branch writes": any(block.gate != 1 or block.structure.learned_gate for block in blocks),
        "an index l: its value goes with the block's number": len({(block.alpha, block.input_scale, block.gate) for block in blocks}) > 2,
        "G: the heads' gains": any(one.head_gain for one in structures),
        "W: matrices, their biases left out. φ: GELU": any(
            "inner" in one.attention | one.feed_forward or one.head_gain for one in structures
        ),
        "I: the identity. J: the Jacobian of what its index names": True,
        "e: the embedding. y: what the output matrix reads": True,
    }
    return ". ".join(words for words, has in entries.items() if has) + "."
