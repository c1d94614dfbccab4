"""Singular values against their rank."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from cachetools import cached

from core.figures.axes import COLOURS, DASHES, LINE, axis_frame, ends, value_axis, whole
from core.figures.figure import KEEPING, KEPT, SPECS, Figure, Tables, stream
from core.lenses.spectra import NIL, WHEN
from core.once import once

SLOTS = dict(zip(WHEN, (8, 1), strict=True))  # whose colour and dash they have


def spectrum_chart(before_d: np.ndarray, after_d: np.ndarray, domain: tuple[float, float], title: str, height: int = 280) -> Figure:
    """A Jacobian's singular values against their rank, at the times of WHEN, on a log axis from the least to the greatest of `domain`."""
    return Figure(spectrum_spec(title, len(before_d), height), spectrum_tables(before_d, after_d, domain))


def same_spectrum(before_d: np.ndarray, after_d: np.ndarray, domain: tuple[float, float]) -> tuple[Any, ...]:
    return "spectrum", before_d.tobytes(), after_d.tobytes(), domain


@cached(KEPT, key=same_spectrum, condition=KEEPING)
def spectrum_tables(before_d: np.ndarray, after_d: np.ndarray, domain: tuple[float, float]) -> Tables:
    values = zip(WHEN, (before_d, after_d), strict=True)
    frames = [
        pd.DataFrame({"when": when, "rank": np.arange(1, len(value_d) + 1), "value": value_d.astype(float)}) for when, value_d in values
    ]
    data = pd.concat(frames)
    data = data[(data.value >= NIL) & np.isfinite(data.value)]
    return {"spectrum": stream(data), "spectrum_axis": stream(axis_frame(np.array(domain), log=True))}


@once(SPECS)
def spectrum_spec(title: str, ranks: int, height: int) -> dict[str, Any]:
    slots = [slot - 1 for slot in SLOTS.values()]
    base = alt.Chart(alt.NamedData("spectrum")).encode(
        alt.X("rank:Q").title("rank").scale(domain=[1, ranks], nice=False).axis(whole(1, ranks)),
        value_axis("singular value", True, "spectrum_axis"),
        alt.Color("when:N", scale=alt.Scale(domain=[*WHEN], range=[COLOURS[slot] for slot in slots]), legend=None),
        alt.StrokeDash("when:N", scale=alt.Scale(domain=[*WHEN], range=[DASHES[slot] for slot in slots]), legend=None),
        tooltip=["when:N", "rank:Q", alt.Tooltip("value:Q", title="singular value", format=".4~g")],
    )
    unchanged = alt.Chart(alt.Data(values=[{"value": 1.0}])).mark_rule(color=COLOURS[7], strokeDash=DASHES[2]).encode(alt.Y("value:Q"))
    layers = ends("spectrum_axis"), unchanged, base.mark_line(**LINE), base.mark_point(filled=True, size=16, opacity=1)
    return alt.layer(*layers).properties(height=height, title=alt.Title(title, anchor="start")).to_dict()
