"""Norm Placement Lab: `streamlit run app.py`."""

import streamlit as st

st.set_page_config(page_title="Norm Placement Lab", page_icon="pages/ui/icon.svg", layout="wide")
st.navigation({"Lab": [st.Page("pages/lab/train.py", title="Train", icon=":material/show_chart:", default=True)]}, position="top").run()
