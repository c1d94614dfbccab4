"""A chart as a picture, drawn in this process: nothing is fetched."""

import io
from pathlib import Path

import vl_convert
from PIL import Image

from core.figures.figure import Figure
from core.runs.settings import ConfigError
from core.runs.whole_file import write_whole

SCALE = 2  # pixels for one of the chart's units, so that text stays sharp on dense screens and in print


def png(chart: Figure) -> bytes:
    return vl_convert.vegalite_to_png(chart.whole(), scale=SCALE, allowed_base_urls=[])


def svg(chart: Figure) -> str:
    return vl_convert.vegalite_to_svg(chart.whole(), allowed_base_urls=[])


def webp(chart: Figure) -> bytes:
    picture = io.BytesIO()
    Image.open(io.BytesIO(png(chart))).convert("RGB").save(picture, "webp", lossless=True)
    return picture.getvalue()


FORMATS = {".png": png, ".svg": lambda chart: svg(chart).encode(), ".webp": webp}


def check(path: Path) -> None:
    """Raises ConfigError where the name does not tell a format that `write` knows."""
    if path.suffix.lower() not in FORMATS:
        *others, last = FORMATS
        raise ConfigError(f"plot is {str(path)!r}; its name must end in {', '.join(others)} or {last}.")


def write(chart: Figure, path: Path) -> None:
    """Draws the chart into a file, in the format that its suffix names. Raises ConfigError for another suffix, and OSError."""
    check(path)
    write_whole(path, FORMATS[path.suffix.lower()](chart))
