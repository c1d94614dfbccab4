"""Sentences that quote what somebody typed or an error said: Streamlit reads Markdown, pictures included, in every text."""

import re


def verbatim(text: str) -> str:
    """Markdown that shows `text` as it is."""
    return re.sub(r"([\\`*_\[\]<>$~:&])", r"\\\1", text)
