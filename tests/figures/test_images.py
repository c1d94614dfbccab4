"""Charts as pictures."""

import io
from pathlib import Path
from xml.etree import ElementTree

import altair as alt
import pandas as pd
import pytest
from PIL import Image

from core.figures import images
from core.figures.figure import Figure, stream
from core.runs.settings import ConfigError


def chart(rows: int = 3) -> Figure:
    """Two panels of layers, like the figures; one value is missing."""
    data = pd.DataFrame({"step": range(rows), "loss": [float("nan"), *(1.0 + row for row in range(rows - 1))]})
    curve = (
        alt.Chart(alt.NamedData("curve"), width=100, height=80).mark_line().encode(x="step:Q", y=alt.Y("loss:Q", title="Pre-Norm · loss"))
    )
    return Figure(alt.hconcat(alt.layer(curve, curve.mark_point()), curve).to_dict(), {"curve": stream(data)})


def picture(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def test_a_png_is_sharp_and_white() -> None:
    drawn = picture(images.png(chart()))
    root = ElementTree.fromstring(images.svg(chart()))
    assert drawn.format == "PNG"
    assert drawn.size == tuple(images.SCALE * int(root.attrib[side]) for side in ("width", "height"))
    assert drawn.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)


def test_an_svg_keeps_its_text_and_needs_nothing_from_elsewhere() -> None:
    root = ElementTree.fromstring(images.svg(chart()))
    names = {name.rpartition("}")[2] for element in root.iter() for name in (element.tag, *element.attrib)}
    assert "Pre-Norm · loss" in "".join(root.itertext())
    assert not names & {"image", "style", "link", "href"}


def test_a_webp_has_the_pixels_of_the_png() -> None:
    drawn = picture(images.webp(chart()))
    assert drawn.format == "WEBP"
    assert drawn.convert("RGB").tobytes() == picture(images.png(chart())).convert("RGB").tobytes()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".webp", ".PNG"])
def test_the_suffix_names_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    images.check(path)
    images.write(chart(), path)
    assert path.read_bytes() == images.FORMATS[suffix.lower()](chart())


@pytest.mark.parametrize("name", ["picture.gif", "picture", "png", "picture.png.txt"])
def test_another_suffix_is_refused_with_the_allowed_ones(tmp_path: Path, name: str) -> None:
    for refuse in (images.check, lambda path: images.write(chart(), path)):
        with pytest.raises(ConfigError, match=r"\.png, \.svg or \.webp\.$"):
            refuse(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_many_rows_are_drawn() -> None:
    assert picture(images.png(chart(rows=6000))).size


def test_nothing_is_fetched() -> None:
    elsewhere = Figure(alt.Chart("https://example.com/data.csv").mark_point().encode(x="a:Q").to_dict(), {})
    for draw in (images.png, images.svg):
        with pytest.raises(ValueError, match="not allowed"):
            draw(elsewhere)
