"""Norm Placement Lab: `streamlit run app.py`."""

import streamlit as st
from starlette.middleware import Middleware

from pages.ui.shared.hearing import OneAtATime
from pages.ui.shared.lifespan import lifespan

app = st.App("pages/router.py", lifespan=lifespan, middleware=[Middleware(OneAtATime)])
