"""Identity path: two placements' blocks, drawn, written as equations and measured, and how far a signal passes untouched."""

import streamlit as st

from pages.ui import identity_path, measured, placements
from pages.ui.state import leave

leave()
st.header("Where does the signal pass untouched?", anchor=False)
st.markdown(
    "A residual block adds what its branches write to a stream. Where nothing sits on the stream, signals forward and gradients backward "
    "have **a path that no norm and no scale touches**. "
    "Point at a part of a drawing, or at a term of an equation, or tap it, to see what belongs together. "
    "**Backward, measured** shows how much of a trained run's gradient came by which way."
)

pair = placements.pair()
left, right, stack = st.columns([4, 4, 7], gap="medium")
with left:
    placements.choice(pair, "left", "Placement")
with right:
    placements.choice(pair, "right", "Beside it")
with stack, st.container(horizontal=True, gap="medium"):
    placements.depth(pair)
    placements.drawn(pair)
    placements.final_norm(pair)

runs = [measured.run_of(pair, side) for side in measured.SIDES]
identity_path.compare(pair, runs)
st.caption(
    "x, h, x′: the stream before, within and after a block. A, F: attention and feed-forward. "
    "N: a norm, with its site where a sublayer has several. W: matrices, their biases left out. "
    "φ: GELU. G: the heads' gains. J: the Jacobian of what its index names. e: the embedding. y: what the output matrix reads."
)
st.divider()
st.subheader("Measured in trained runs", anchor=False)
for column, side in zip(st.columns(2, gap="large"), measured.SIDES, strict=True):
    with column:
        measured.choice(pair, side)
measured.explained()
measured.spectra(pair, runs)
st.divider()
for column, side, placement, run in zip(st.columns(2, gap="large"), measured.SIDES, pair.placements, runs, strict=True):
    with column:
        placements.facts(placement, pair.layers)
        placements.exports(placement, pair, measured.exported(pair, placement, run), side)
