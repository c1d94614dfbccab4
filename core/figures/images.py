"""An Altair chart as a picture, drawn in this process: nothing is fetched."""

import io
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from PIL import Image

from core.runs.settings import ConfigError

SCALE = 2  # pixels for one of the chart's units, so that text stays sharp on dense screens and in print
PARTS = ("layer", "hconcat", "vconcat", "concat")


def png(chart: Any) -> bytes:
    return vl_convert.vegalite_to_png(inline(chart).to_dict(), scale=SCALE, allowed_base_urls=[])


def svg(chart: Any) -> str:
    return vl_convert.vegalite_to_svg(inline(chart).to_dict(), allowed_base_urls=[])


def webp(chart: Any) -> bytes:
    picture = io.BytesIO()
    Image.open(io.BytesIO(png(chart))).convert("RGB").save(picture, "webp", lossless=True)
    return picture.getvalue()


FORMATS = {".png": png, ".svg": lambda chart: svg(chart).encode(), ".webp": webp}


def check(path: Path) -> None:
    """Raises ConfigError where the name does not tell a format that `write` knows."""
    if path.suffix.lower() not in FORMATS:
        *others, last = FORMATS
        raise ConfigError(f"plot is {str(path)!r}; its name must end in {', '.join(others)} or {last}.")


def write(chart: Any, path: Path) -> None:
    """Draws the chart into a file, in the format that its suffix names. Raises ConfigError for another suffix, and OSError."""
    check(path)
    path.write_bytes(FORMATS[path.suffix.lower()](chart))


def inline(chart: Any) -> Any:
    """A copy of the chart that holds its data as values.

    Altair would convert data frames by a setting that is global to all threads, and Streamlit changes it whenever it draws.
    """
    copy = chart.copy()
    pending = [copy]
    while pending:
        part = pending.pop()
        if isinstance(part.data, pd.DataFrame):
            part.data = alt.to_values(part.data)  # {values: rows}
        pending += [child for name in PARTS for child in getattr(part, name, None) or []]
    return copy
