"""Quantities of a layer against the layer, at one step."""

from collections.abc import Sequence
from dataclasses import replace

import altair as alt
import numpy as np
import pandas as pd

from core.figures.axes import LINE, Line, colour, dash, ruler_at, said, shown_values, value_axis, whole, with_quantity
from core.runs.quantities import LAYERS


def layer_chart(lines: Sequence[Line], name: str, step: int, height: int = 260, legend: bool = False) -> alt.LayerChart | alt.FacetChart:
    """A quantity of LAYERS against the layer, at one step; a run that ended before it is shown where it ended."""
    quantity, lines = LAYERS[name], with_quantity(lines, name)
    data = layer_at(lines, name, step)
    base = alt.Chart(data).encode(
        alt.X("layer:Q").title("layer").scale(nice=False).axis(whole(data.layer)),
        value_axis(quantity.unit, quantity.log, data.value),
        colour(lines, legend),
        dash(lines, legend),
    )
    curves = base.mark_line(**LINE, invalid="break-paths-filter-domains")
    dots = base.mark_point(filled=True, size=30, opacity=1, invalid="filter")
    ended = [
        replace(line, label=f"{line.label}, at its last step, {len(line.history)}") if len(line.history) < step else line for line in lines
    ]
    ruler, _ = ruler_at(data, "layer", ended, name)
    return alt.layer(curves, ruler, dots).properties(height=height, title=alt.Title(quantity.title, anchor="start"))


def layer_at(lines: Sequence[Line], name: str, step: int) -> pd.DataFrame:
    """Columns run, layer, value, and said, the value in words."""
    frames = []
    for line in lines:
        value_sl = line.history[name]
        row = min(step, len(value_sl)) - 1
        if row >= 0:
            value_l = value_sl[row].astype(np.float64)
            layers = np.arange(len(value_l)) + LAYERS[name].first_layer
            words = [said(value) for value in value_l.tolist()]
            frames.append(pd.DataFrame({"run": str(line.slot), "layer": layers, "value": shown_values(value_l), "said": words}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["run", "layer", "value", "said"])
