"""Norm Placement Lab: `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

icon = Path(__file__).parent / "pages/ui/icon.svg"  # Streamlit looks for pages beside this file, for an icon where it was started
st.set_page_config(page_title="Norm Placement Lab", page_icon=icon, layout="wide", initial_sidebar_state=312)
sections = {
    "Lab": [st.Page("pages/lab/train.py", title="Train", icon=":material/show_chart:", default=True)],
    "Theory": [st.Page("pages/theory/identity_path.py", title="Identity path", icon=":material/timeline:")],
}
st.navigation(sections, position="top").run()
