"""Norm Placement Lab: `streamlit run app.py`."""

import streamlit as st

st.set_page_config(page_title="Norm Placement Lab", page_icon=":material/account_tree:", layout="wide")
st.navigation({"Lab": [st.Page("pages/lab/train.py", title="Train", icon=":material/show_chart:", default=True)]}, position="top").run()
