"""Train: the article's three runs first, then any comparison of up to eight."""

import streamlit as st

from pages.ui.shared import polling
from pages.ui.shared.results import results, to_do
from pages.ui.shared.state import comparison, keep, read_address, write_address
from pages.ui.shared.turn import turn
from pages.ui.train import charts, controls, run_panel

read_address()
controls.editor()

st.header("Where should a Transformer put its norms?", anchor=False)
st.markdown(
    "A small causal Transformer, trained side by side with its normalization in different places. "
    "**Change a run in the sidebar, press Run, and watch** what happens to its loss, its gradients and its residual stream. "
    "On a phone, » at the top opens the sidebar."
)

drawn, at_first = comparison(), results()
every, (on_the_way, missing) = polling.seconds(at_first, None), to_do(at_first)
run_panel.actions(at_first, on_the_way, every)
places = run_panel.cards(at_first)


@st.fragment(run_every=every)
@turn()
def panel() -> None:
    current = results()
    if comparison() is not drawn or to_do(current) != (on_the_way, missing) or polling.seconds(current, every) != every:
        keep()  # what stands outside must follow, or the polling change
        st.rerun()
    st.session_state.kept = False
    run_panel.states(current, places)
    charts.charts(current)


panel()
write_address()
