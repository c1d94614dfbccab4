"""Quantities of a layer over steps and layers, as heat maps."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from core.figures.axes import Line, Mark, ends, marks, shown_values, whole, with_quantity
from core.figures.figure import SPECS, Figure, Tables, made_once, stream
from core.once import once
from core.runs.quantities import LAYERS

CELLS_SHOWN = 9000  # on a heat map


def heat_maps(lines: Sequence[Line], name: str) -> list[Figure]:
    """A quantity of LAYERS over steps and layers, one map a run, all on one colour scale."""
    lines = with_quantity(lines, name)
    tables = map_tables(lines, name)
    specs = [map_spec(name, mark, line.last, line.history.layers) for mark, line in zip(marks(lines), lines, strict=True)]
    return [
        Figure(spec, {table: tables[table] for table in (f"{name}_{line.slot}", f"{name}_range")})
        for spec, line in zip(specs, lines, strict=True)
    ]


def heat_map(lines: Sequence[Line], name: str) -> Figure:
    """The heat maps of all runs, for a file."""
    lines = with_quantity(lines, name)
    maps = [map_layers(name, mark, line.last, line.history.layers, 640) for mark, line in zip(marks(lines), lines, strict=True)]
    return Figure(alt.vconcat(*maps).to_dict(), map_tables(lines, name))


@once(SPECS)
def map_spec(*look: Any) -> dict[str, Any]:
    """What `map_layers` draws, as Vega-Lite."""
    return map_layers(*look).to_dict()


def map_layers(
    name: str, mark: Mark, last: int, deepest: int, width: int | None = None, height: int = 240
) -> alt.LayerChart | alt.FacetChart:
    """A chart whose layers name the tables of `map_tables`."""
    quantity = LAYERS[name]
    cells = (
        alt.Chart(alt.NamedData(f"{name}_{mark.slot}"))
        .mark_rect(strokeWidth=1, stroke=alt.expr("scale('color', datum.value)"))  # covers the hairlines between cells
        .encode(
            alt.X("step:Q").title("step").scale(nice=False, zero=False, domain=[1, last + 1]).axis(whole(1, last + 1)),
            alt.X2("step_end:Q"),
            alt.Y("layer:Q").title("layer").scale(nice=False, zero=False).axis(whole(quantity.first_layer, deepest + 1)),
            alt.Y2("layer_end:Q"),
            alt.Color("value:Q", scale=alt.Scale(type="log", scheme="viridis"))
            .title(quantity.unit)
            .legend(gradientLength=height - 100, format="~g", tickCount=4),
            tooltip=["step:Q", "layer:Q", alt.Tooltip("value:Q", title=quantity.title.lower(), format=".6~g")],
        )
    )
    size = {"height": height} | ({"width": width} if width else {})
    return alt.layer(cells, ends(f"{name}_range", "color")).properties(title=alt.Title(mark.label, anchor="start"), **size)


@made_once("maps")
def map_tables(lines: Sequence[Line], name: str) -> Tables:
    """The cells of each run, and the least and the greatest value of all."""
    frames = {f"{name}_{line.slot}": cell_frame(line, name, CELLS_SHOWN // len(lines)) for line in lines}
    values = np.concatenate([np.zeros(0), *(shown_values(line.history[name]).ravel() for line in lines)])
    values = values[np.isfinite(values)]
    frames[f"{name}_range"] = pd.DataFrame({"value": [values.min(), values.max()] if len(values) else [1.0, 10.0]})
    return {table: stream(frame) for table, frame in frames.items()}


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
