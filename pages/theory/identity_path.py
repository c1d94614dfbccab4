"""Identity path: two placements' blocks, drawn, written as equations and measured, and how far a signal passes untouched."""

import streamlit as st

from core.state.pair import SIDES
from pages.ui.identity_path import drawing, measured, placements
from pages.ui.shared.state import leave

leave()
st.header("Where does the signal pass untouched?", anchor=False)
st.markdown(
    "A residual block adds what its branches write to a stream. Where nothing sits on the stream, signals forward and gradients backward "
    "have **a path that no norm and no scale touches**. "
    "Point at a part of a drawing, or at a term of an equation, or tap it, to see what belongs together. "
    "**Backward, measured** shows, for a trained run, how much of the gradient came along the stream and how much through each branch."
)

pair = placements.current_pair()
stored = [measured.stored_runs(pair, side) for side in SIDES]
entries = [measured.shown_run(pair, side, options) for side, options in zip(SIDES, stored, strict=True)]
left, right, stack = st.columns([4, 4, 7], gap="medium")
with left:
    placements.placement_choice(pair, "left", "Placement")
    measured.run_choice(pair, "left", stored[0], *entries)
with right:
    placements.placement_choice(pair, "right", "Compare with")
    measured.run_choice(pair, "right", stored[1], *reversed(entries))
with stack, st.container(horizontal=True, gap="medium"):
    placements.depth(pair)
    placements.drawn_block(pair)
    placements.final_norm(pair)

runs = [entry.run for entry in entries]
steps = measured.slider_steps(runs)
drawing.compare(pair, entries, steps)
st.caption(drawing.symbols_text(pair))
if pair.view == "measured":
    measured.explain(pair)
measured.spectra(pair, runs)
st.divider()
for column, side, placement, run in zip(st.columns(2, gap="large"), SIDES, pair.placements, runs, strict=True):
    with column:
        placements.facts(placement, pair.layers)
        step = measured.shown_step(pair, steps)
        placements.downloads(placement, pair, step, measured.shown_bands(pair, placement, run, step), side)
