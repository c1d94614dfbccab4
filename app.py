"""Norm Placement Lab: `streamlit run app.py`."""

import streamlit as st

st.set_page_config(page_title="Norm Placement Lab", page_icon="pages/ui/icon.svg", layout="wide", initial_sidebar_state=312)
sections = {
    "Lab": [st.Page("pages/lab/train.py", title="Train", icon=":material/show_chart:", default=True)],
    "Theory": [st.Page("pages/theory/identity_path.py", title="Identity path", icon=":material/timeline:")],
}
st.navigation(sections, position="top").run()
