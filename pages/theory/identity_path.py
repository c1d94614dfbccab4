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
    "**Backward, measured** shows how much of a trained run's gradient came by which way."
)

pair = placements.pair()
stored = [measured.stored(pair, side) for side in SIDES]
entries = [measured.shown(pair, side, options) for side, options in zip(SIDES, stored, strict=True)]
left, right, stack = st.columns([4, 4, 7], gap="medium")
with left:
    placements.choice(pair, "left", "Placement")
    measured.choice(pair, "left", stored[0], *entries)
with right:
    placements.choice(pair, "right", "Beside it")
    measured.choice(pair, "right", stored[1], *reversed(entries))
with stack, st.container(horizontal=True, gap="medium"):
    placements.depth(pair)
    placements.drawn(pair)
    placements.final_norm(pair)

runs = [entry.run for entry in entries]
steps = measured.steps_shown(runs)
drawing.compare(pair, entries, steps)
st.caption(drawing.legend(pair))
if pair.view == "measured":
    measured.explained(pair)
measured.spectra(pair, runs)
st.divider()
for column, side, placement, run in zip(st.columns(2, gap="large"), SIDES, pair.placements, runs, strict=True):
    with column:
        placements.facts(placement, pair.layers)
        step = measured.step_shown(pair, steps)
        placements.exports(placement, pair, step, measured.exported(pair, placement, run, step), side)
