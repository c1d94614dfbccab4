"""A run's mark in text: a short line in its colour and dash, as an image that Markdown can hold."""

from collections.abc import Mapping
from functools import cache
from urllib.parse import quote

import streamlit as st

from core.figures.axes import COLOURS, DASHES


@cache
def swatch(slot: int) -> str:
    """Markdown for the mark of the run in this slot."""
    dashes = " ".join(str(length) for length in DASHES[slot - 1])
    line = f'<path d="M1 8H31" stroke="{COLOURS[slot - 1]}" stroke-width="4" stroke-dasharray="{dashes}"/>'
    image = f'<svg xmlns="http://www.w3.org/2000/svg" width="32" height="16">{line}</svg>'
    return f"![run {slot}](data:image/svg+xml,{quote(image)})"


def legend(names: Mapping[str, int]) -> None:
    """Names with the marks of their slots; a line breaks between two of them only."""
    with st.container(horizontal=True, gap="small"):
        for name, slot in names.items():
            st.markdown(f"{swatch(slot)} {name}", width="content")
