"""A chart on a page."""

import streamlit as st

from core.figures.figure import Figure


def figure(shown: Figure, key: str, alt: str) -> None:
    """The browser keeps a chart whose specification and `alt` stay the same, and draws it anew from its tables."""
    st.vega_lite_chart({**shown.spec, "datasets": shown.tables}, width="stretch", key=key, alt=alt)
