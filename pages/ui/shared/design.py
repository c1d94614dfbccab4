"""The parts of the user's own design, as widgets."""

from collections.abc import Callable
from typing import Any, get_args

import streamlit as st

from core.drawing.words import omissions_text
from core.placement.design import LEARNED, MOST, is_design, placement_of, sort_sites
from core.placement.record import Site

CONSTANT = "constant"
GATES = {CONSTANT: CONSTANT, "scalar": "learned", "vector": "learned vector"}
SITES_HELP = (
    "**input**: what the branch reads. **inner**: inside the branch, before its output projection. **output**: what the branch writes. "
    "**outer**: the stream, after the addition, where it cuts the identity path."
)
GAIN_HELP = "What multiplies the initial values of the value, output and feed-forward matrices, which are LeCun normal without it."


def design_parts(part: Callable[..., None]) -> None:
    """Draws a widget for each field of a design, by `part(widget, field, label, to_widget, from_widget, **options)`.

    `to_widget` turns the field's value into the widget's, `from_widget` the widget's into the field's.
    """
    for field, label in {"attn": "Norms of attention", "ffn": "Norms of feed-forward"}.items():
        part(st.pills, field, label, sort_sites, frozenset, options=get_args(Site), selection_mode="multi", help=SITES_HELP)
    left, right = st.columns(2)
    for column, field, label, about in (
        (left, "alpha", "Stream × α", None),
        (right, "gate", "Branch × g", None),
        (left, "gain", "Initial gain", GAIN_HELP),
    ):
        with column:
            part(st.number_input, field, label, float, float, min_value=0.0, max_value=MOST, step=0.1, format="%g", help=about)
    with right:
        part(st.selectbox, "learned", "g is", gate_choice, learned_gate, options=[CONSTANT, *LEARNED], format_func=GATES.__getitem__)


def remember_omissions(chosen: str, before: str, layer: int, layers: int) -> None:
    """For callbacks: where a design has just replaced a placement of the table, remembers what it leaves out of block `layer`."""
    if is_design(chosen) and not is_design(before):
        st.session_state.setdefault("designs_lack", {})[chosen] = omissions_text(placement_of(before), layer, layers)


def tell_omissions(design: str) -> None:
    """Says what `remember_omissions` remembers of this design; once it has been changed, nothing."""
    if sentence := st.session_state.get("designs_lack", {}).get(design):
        st.caption(f":material/info: {sentence}")


def gate_choice(learned: str | None) -> str:
    return learned or CONSTANT


def learned_gate(choice: Any) -> str | None:
    return None if choice == CONSTANT else choice
