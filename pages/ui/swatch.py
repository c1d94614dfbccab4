"""A run's mark in text: a short line in its colour and dash, as an image that Markdown can hold."""

from urllib.parse import quote

from core.figures import COLOURS, DASHES


def swatch(slot: int) -> str:
    """Markdown for the mark of the run in this slot."""
    dashes = " ".join(str(length) for length in DASHES[slot - 1])
    line = f'<path d="M1 8H31" stroke="{COLOURS[slot - 1]}" stroke-width="4" stroke-dasharray="{dashes}"/>'
    image = f'<svg xmlns="http://www.w3.org/2000/svg" width="32" height="16">{line}</svg>'
    return f"![run {slot}](data:image/svg+xml,{quote(image)})"
