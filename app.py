"""Norm Placement Lab: `streamlit run app.py`."""

import streamlit as st

from pages.ui.shared.lifespan import lifespan

app = st.App("pages/router.py", lifespan=lifespan)
