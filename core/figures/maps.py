"""Quantities of a layer over steps and layers, as heat maps."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from core.figures.axes import Line, shown_values, whole, with_quantity
from core.runs.quantities import LAYERS

CELLS_SHOWN = 9000  # on a heat map


def heat_maps(lines: Sequence[Line], name: str, height: int = 240) -> list[alt.Chart]:
    """A quantity of LAYERS over steps and layers, one map a run, all on one colour scale."""
    quantity, lines = LAYERS[name], with_quantity(lines, name)
    values = np.concatenate([np.zeros(0), *(shown_values(line.history[name]).ravel() for line in lines)])
    values = values[np.isfinite(values)]
    colours = alt.Scale(type="log", scheme="viridis", domain=[values.min(), values.max()] if len(values) else [1, 10])
    return [
        alt.Chart(cells, title=alt.Title(line.label, anchor="start"), height=height)
        .mark_rect(strokeWidth=1, stroke=alt.expr("scale('color', datum.value)"))  # covers the hairlines between cells
        .encode(
            alt.X("step:Q").title("step").scale(nice=False, zero=False).axis(whole(cells.step_end)),
            alt.X2("step_end:Q"),
            alt.Y("layer:Q").title("layer").scale(nice=False, zero=False).axis(whole(cells.layer_end)),
            alt.Y2("layer_end:Q"),
            alt.Color("value:Q", scale=colours).title(quantity.unit).legend(gradientLength=height - 100, format="~g", tickCount=4),
            tooltip=["step:Q", "layer:Q", alt.Tooltip("value:Q", title=quantity.title.lower(), format=".6~g")],
        )
        for line in lines
        for cells in [cell_frame(line, name, CELLS_SHOWN // len(lines))]
    ]


def heat_map(lines: Sequence[Line], name: str) -> alt.VConcatChart:
    """The heat maps of all runs, for a file."""
    return alt.vconcat(*(chart.properties(width=640) for chart in heat_maps(lines, name)))


def cell_frame(line: Line, name: str, cells: int) -> pd.DataFrame:
    """Columns step, step_end, layer, layer_end, value; a stretch of steps is shown by the greatest value of each layer in it."""
    value_sl = shown_values(line.history[name].astype(np.float64))
    steps, layers = value_sl.shape
    stretches = min(steps, max(cells // layers, 1))
    start = np.arange(stretches) * steps // stretches
    layer = np.tile(np.arange(layers) + LAYERS[name].first_layer, stretches)
    return pd.DataFrame(
        {
            "step": np.repeat(start + 1, layers),
            "step_end": np.repeat(np.append(start[1:], steps) + 1, layers),
            "layer": layer,
            "layer_end": layer + 1,
            "value": np.fmax.reduceat(value_sl, start).ravel(),
        }
    )
