"""Identity path: two placements' blocks, drawn and written as equations, and how far a signal passes untouched."""

import streamlit as st

from pages.ui import identity_path, placements
from pages.ui.state import leave

leave()
st.header("Where does the signal pass untouched?", anchor=False)
st.markdown(
    "A residual block adds what its branches write to a stream. Where nothing sits on the stream, signals forward and gradients backward "
    "have **a path that no norm and no scale touches**. "
    "Point at a part of a drawing, or at a term of an equation, or tap it, to see what belongs together."
)

pair = placements.pair()
left, right, depth = st.columns([3, 3, 1], gap="medium")
with left:
    first = placements.choice(pair, "left", "Placement")
with right:
    second = placements.choice(pair, "right", "Beside it")
with depth:
    placements.depth(pair)

identity_path.compare([first, second], pair.layers)
st.caption(
    "x, h, x′: the stream before, within and after a block. A, F: attention and feed-forward. "
    "N: a norm, with its site where a sublayer has several. W: matrices, their biases left out. "
    "φ: GELU. G: the heads' gains. J: the Jacobian of what its index names."
)
st.divider()
for column, side, placement in zip(st.columns(2, gap="large"), ("left", "right"), (first, second), strict=True):
    with column:
        placements.facts(placement, pair.layers)
        placements.exports(placement, pair.layers, side)
