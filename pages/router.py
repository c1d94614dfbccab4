"""What every page has: its frame and the navigation. Streamlit's main script, which app.py serves."""

from pathlib import Path

import streamlit as st

from pages.ui.shared.turn import turn

ICON = Path(__file__).parent / "ui" / "icon.svg"

st.set_page_config(page_title="Norm Placement Lab", page_icon=ICON, layout="wide", initial_sidebar_state=312)
sections = {
    "Lab": [st.Page("lab/train.py", title="Train", icon=":material/show_chart:", default=True)],
    "Theory": [st.Page("theory/identity_path.py", title="Identity path", icon=":material/timeline:")],
}
page = st.navigation(sections, position="top")
with turn():
    page.run()
