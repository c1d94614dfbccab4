"""Two placements' blocks as drawings and equations that light up together and slide into each other, without asking the server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.diagram import block_svg
from core.mathml import math
from core.placement import Placement
from core.symbols import equations, jacobian, tokens

HERE = Path(__file__).parent
NAME = "identity_path"
MOUNT = st.components.v2.component(
    NAME, html='<div class="lab"></div>', css=(HERE / f"{NAME}.css").read_text(), js=(HERE / f"{NAME}.js").read_text()
)


def compare(placements: Sequence[Placement], layers: int) -> None:
    MOUNT(key=NAME, data={"sides": [side(placement, layers) for placement in placements]})


def side(placement: Placement, layers: int) -> dict[str, Any]:
    """What is shown of a placement: its last block, which is the usual one, and the equations of all."""
    block = placement.block(layers, layers)
    return {
        "title": placement.title,
        "forward": block_svg(block, "forward", placement.dual_stream),
        "backward": block_svg(block, "backward", placement.dual_stream),
        "formulas": formulas(placement, layers),
    }


def formulas(placement: Placement, layers: int) -> str:
    """An HTML definition list's entries."""
    entries = []
    runs = equations(placement, layers)
    for run, derivative in zip(runs, jacobian(placement, layers), strict=True):
        where = "" if len(runs) == 1 else f", blocks {run.first} to {run.last}"
        entries += [(f"Block{where}", [math(line) for line in run.lines]), (f"Jacobian ∂x′/∂x{where}", [math(tokens(derivative))])]
        numbers = [math([(latex, None)]) for latex in (*run.constants, *run.gains)]
        entries += [(f"With {layers} blocks", numbers)] if numbers else []
    return "".join(f"<dt>{title}</dt>" + "".join(f"<dd>{line}</dd>" for line in lines) for title, lines in entries)
