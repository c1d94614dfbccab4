"""Quantities of a layer against the layer, at one step."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from core.figures.axes import (
    LINE,
    Line,
    Mark,
    axis_frame,
    colour,
    dash,
    ends,
    ruler_at,
    said,
    shown_values,
    value_axis,
    whole,
    with_quantity,
)
from core.figures.figure import SPECS, Figure, Tables, made_once, stream
from core.once import once
from core.runs.quantities import LAYERS


def layer_chart(lines: Sequence[Line], name: str, step: int, height: int = 260, legend: bool = False, width: int | None = None) -> Figure:
    """A quantity of LAYERS against the layer, at one step; a run that ended before it is shown where it ended."""
    lines = with_quantity(lines, name)
    deepest = max((line.history.layers for line in lines), default=1)
    named = tuple(Mark(line.slot, f"{line.label}, at its last step, {line.last}" if line.last < step else line.label) for line in lines)
    return Figure(layer_spec(name, named, deepest, height, legend, width), layer_tables(lines, name, step))


@once(SPECS)
def layer_spec(name: str, marks: tuple[Mark, ...], deepest: int, height: int, legend: bool, width: int | None) -> dict[str, Any]:
    """Vega-Lite whose layers name the tables of `layer_tables`."""
    quantity = LAYERS[name]
    base = alt.Chart(alt.NamedData(name)).encode(
        alt.X("layer:Q").title("layer").scale(nice=False).axis(whole(quantity.first_layer, deepest)),
        value_axis(quantity.unit, quantity.log, f"{name}_axis"),
        colour(marks, legend),
        dash(marks, legend),
    )
    curves = base.mark_line(**LINE, invalid="break-paths-filter-domains")
    dots = base.mark_point(filled=True, size=30, opacity=1, invalid="filter")
    ruler, _ = ruler_at(name, "layer", marks, name)
    size = {"height": height} | ({"width": width} if width else {})
    return (
        alt.layer(ends(f"{name}_axis"), curves, ruler, dots).properties(title=alt.Title(quantity.title, anchor="start"), **size).to_dict()
    )


@made_once("layers")
def layer_tables(lines: Sequence[Line], name: str, step: int) -> Tables:
    data = layer_at(lines, name, step)
    return {name: stream(data), f"{name}_axis": stream(axis_frame(data.value.to_numpy(float), LAYERS[name].log))}


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
