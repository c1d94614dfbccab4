"""Two placements' blocks as drawings and equations that light up together and slide into each other, without asking the server."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from core.diagram import block_svg, stack_svg, upper, which
from core.mathml import math
from core.placement import Placement
from core.symbols import IDENTITY_PATH, Token, equations, jacobian, tokens

HERE = Path(__file__).parent
NAME = "identity_path"
MOUNT = st.components.v2.component(
    NAME, html='<div class="lab"></div>', css=(HERE / f"{NAME}.css").read_text(), js=(HERE / f"{NAME}.js").read_text()
)


def compare(placements: Sequence[Placement], layers: int) -> None:
    MOUNT(key=NAME, data={"sides": [side(placement, layers) for placement in placements]})


def side(placement: Placement, layers: int) -> dict[str, Any]:
    """What is shown of a placement: its last block, which is the usual one, and the equations of all."""
    _, run = placement.segments(layers)[-1]
    drawn = run[-1:] if len(set(run)) > 1 else run
    return {
        "title": escape(placement.title),
        "which": upper(which(range(layers - len(drawn) + 1, layers + 1))),
        "forward": block_svg(run[-1], "forward", placement.dual_stream),
        "backward": block_svg(run[-1], "backward", placement.dual_stream),
        "stack": stack_svg(placement, layers),
        "formulas": formulas(placement, layers),
    }


def formulas(placement: Placement, layers: int) -> str:
    """An HTML definition list's entries."""
    entries: list[tuple[str, list[list[Token]]]] = []
    for run, derivative in zip(equations(placement, layers), jacobian(placement, layers), strict=True):
        entries += [(upper(which(range(run.first, run.last + 1))), run.lines), ("Jacobian ∂x′/∂x", [tokens(derivative)])]
        numbers: list[list[Token]] = [[(latex, None)] for latex in (*run.constants, *run.gains)]
        entries += [(f"At a depth of {layers}", numbers)] if numbers else []
    if placement.dual_stream:
        entries.append(("Jacobian ∂r′/∂r", [[(IDENTITY_PATH, "attention.dual")]]))
    return "".join(f"<dt>{title}</dt>" + "".join(f"<dd>{math(line)}</dd>" for line in lines) for title, lines in entries)
