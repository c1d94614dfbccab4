"""Singular values against their rank."""

import altair as alt
import numpy as np
import pandas as pd

from core.figures.axes import COLOURS, DASHES, LINE, Chart, value_axis, whole
from core.lenses.spectra import NIL, WHEN

SLOTS = dict(zip(WHEN, (8, 1), strict=True))  # whose colour and dash they have


def spectrum_chart(before_d: np.ndarray, after_d: np.ndarray, domain: tuple[float, float], title: str, height: int = 280) -> Chart:
    """A Jacobian's singular values against their rank, at the times of WHEN, on a log axis from the least to the greatest of `domain`."""
    values = zip(WHEN, (before_d, after_d), strict=True)
    frames = [
        pd.DataFrame({"when": when, "rank": np.arange(1, len(value_d) + 1), "value": value_d.astype(float)}) for when, value_d in values
    ]
    data = pd.concat(frames)[lambda frame: (frame.value >= NIL) & np.isfinite(frame.value)]
    slots = [slot - 1 for slot in SLOTS.values()]
    base = alt.Chart(data).encode(
        alt.X("rank:Q").title("rank").scale(domain=[1, len(before_d)], nice=False).axis(whole(data["rank"])),
        value_axis("singular value", True, pd.Series(domain)),
        alt.Color("when:N", scale=alt.Scale(domain=[*WHEN], range=[COLOURS[slot] for slot in slots]), legend=None),
        alt.StrokeDash("when:N", scale=alt.Scale(domain=[*WHEN], range=[DASHES[slot] for slot in slots]), legend=None),
        tooltip=["when:N", "rank:Q", alt.Tooltip("value:Q", title="singular value", format=".4~g")],
    )
    unchanged = alt.Chart(pd.DataFrame({"value": [1.0]})).mark_rule(color=COLOURS[7], strokeDash=DASHES[2]).encode(alt.Y("value:Q"))
    layers = unchanged, base.mark_line(**LINE), base.mark_point(filled=True, size=16, opacity=1)
    return alt.layer(*layers).properties(height=height, title=alt.Title(title, anchor="start"))
