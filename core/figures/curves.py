"""Quantities of a step against the step."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from core.data_tasks import TASKS
from core.figures.axes import (
    LINE,
    Line,
    Mark,
    axis_frame,
    colour,
    dash,
    ends,
    marks,
    ruler_at,
    said,
    shown_values,
    value_axis,
    whole,
    with_quantity,
)
from core.figures.figure import SPECS, Figure, Tables, made_once, stream
from core.once import once
from core.runs.history import History
from core.runs.quantities import CURVES

STEPS_SHOWN = 500  # on a curve


def curve_chart(lines: Sequence[Line], name: str, height: int = 300, legend: bool = False, width: int | None = None) -> Figure:
    """A quantity of CURVES against the step. Hovering shows every run's exact value at the step."""
    lines = with_quantity(lines, name)
    return Figure(curve_spec(name, marks(lines), last_step(lines), levels(lines, name), height, legend, width), curve_tables(lines, name))


def article_figure(histories: Mapping[str, History]) -> Figure:
    """Loss and gradient norm of the article's runs side by side on log axes, for a file."""
    task, names = TASKS["progression"], ("loss", "gradient_norm")
    lines = [Line(slot, label, history, task) for slot, (label, history) in enumerate(histories.items(), 1)]
    panels = [curve_layers(name, marks(lines), last_step(lines), levels(lines, name), 320, True, 430) for name in names]
    beside = alt.hconcat(*panels).resolve_scale(color="shared", strokeDash="shared")
    return Figure(beside.to_dict(), {table: data for name in names for table, data in curve_tables(lines, name).items()})


def last_step(lines: Sequence[Line]) -> int:
    return max((line.last for line in lines), default=1)


def levels(lines: Sequence[Line], name: str) -> tuple[float, ...]:
    """The losses of guessing."""
    return tuple(sorted({line.task.guessing for line in lines})) if name == "loss" else ()


@once(SPECS)
def curve_spec(*look: Any) -> dict[str, Any]:
    """What `curve_layers` draws, as Vega-Lite."""
    return curve_layers(*look).to_dict()


def curve_layers(
    name: str, marks: tuple[Mark, ...], last: int, levels: tuple[float, ...], height: int, legend: bool, width: int | None
) -> alt.LayerChart | alt.FacetChart:
    """A chart whose layers name the tables of `curve_tables`."""
    quantity = CURVES[name]
    reach = alt.Scale(nice=False, domain=[1, last]) if last > 1 else alt.Scale(nice=False)
    step = alt.X("step:Q").title("step").scale(reach).axis(whole(1, last))
    value = value_axis(quantity.unit, quantity.log, f"{name}_axis")
    base = alt.Chart(alt.NamedData(name)).encode(step, value, colour(marks, legend), dash(marks, legend))
    curves = base.mark_line(**LINE, invalid="break-paths-filter-domains", clip=True)
    ruler, hover = ruler_at(name, "step", marks, name)
    dots = base.mark_point(filled=True, size=45, opacity=1).transform_filter(hover)
    alone = base.mark_point(filled=True, size=30, opacity=1).properties(data=alt.NamedData(f"{name}_alone"))
    layers = [*map(guessing, levels), ends(f"{name}_axis"), curves, ruler, dots, alone, *divergence(f"{name}_diverged", marks)]
    size = {"height": height} | ({"width": width} if width else {})
    return alt.layer(*layers).properties(title=alt.Title(quantity.title, anchor="start"), **size)


@made_once("curves")
def curve_tables(lines: Sequence[Line], name: str) -> Tables:
    """The curves; of them the points that have no neighbour; what the axis has; and where runs diverged."""
    data = curve_frame(lines, name)
    diverged = [(str(line.slot), line.history.diverged_at, "✕ diverged") for line in lines if line.history.diverged_at]
    frames = {
        name: data,
        f"{name}_alone": without_neighbours(data),
        f"{name}_axis": axis_frame(np.append(data.value, levels(lines, name)), CURVES[name].log),
        f"{name}_diverged": pd.DataFrame(diverged, columns=["run", "step", "name"]),
    }
    return {table: stream(frame) for table, frame in frames.items()}


def curve_frame(lines: Sequence[Line], name: str) -> pd.DataFrame:
    """Columns run, step, value, and said, the value in words: all runs at the same steps, so that hovering compares them."""
    log = CURVES[name].log
    columns = {str(line.slot): line.history[name].astype(np.float64) for line in lines}
    kept = kept_steps(list(columns.values()))
    frames = []
    for run, value_s in columns.items():
        steps = kept[kept < len(value_s)]
        value = value_s[steps]
        words = [said(one) for one in value.tolist()]
        frames.append(pd.DataFrame({"run": run, "step": steps + 1, "value": shown_values(value) if log else value, "said": words}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"run": [], "step": [], "value": [], "said": []})


def kept_steps(columns: list[np.ndarray]) -> np.ndarray:
    """At most STEPS_SHOWN row numbers; of each stretch of steps the least and the greatest finite value of every run are among them."""
    longest = max((len(column) for column in columns), default=0)
    if longest <= STEPS_SHOWN:
        return np.arange(longest)
    kept = {0, longest - 1} | {len(column) - 1 for column in columns if len(column)}
    stretches = (STEPS_SHOWN - len(kept)) // (2 * len(columns))
    for column in columns:
        for rows in np.array_split(np.arange(len(column)), stretches):
            if len(rows):
                finite = np.isfinite(column[rows])
                kept |= {
                    int(rows[np.where(finite, column[rows], np.inf).argmin()]),
                    int(rows[np.where(finite, column[rows], -np.inf).argmax()]),
                }
    return np.array(sorted(kept))


def without_neighbours(data: pd.DataFrame) -> pd.DataFrame:
    """The rows of a curve frame that a line cannot show, since it has nothing to connect them to."""
    missing = data.groupby("run").value.transform
    return data[data.value.notna() & missing(lambda value: value.shift().isna()) & missing(lambda value: value.shift(-1).isna())]


def guessing(loss: float) -> alt.LayerChart | alt.FacetChart:
    """The loss of a model that has learned nothing, as a line with its name."""
    at = alt.Chart(alt.Data(values=[{"value": loss, "name": f"random guessing: {loss:.3f}"}]))
    rule = at.mark_rule(color="#7d858f", strokeDash=[2, 3]).encode(alt.Y("value:Q"))
    text = at.mark_text(color="#7d858f", align="right", dy=-8).encode(alt.Y("value:Q"), x=alt.value("width"), text="name:N")
    return alt.layer(rule, text)


def divergence(table: str, marks: Sequence[Mark]) -> tuple[alt.Chart, alt.Chart]:
    """A rule and a word at each step at which a run diverged."""
    at = alt.Chart(alt.NamedData(table)).encode(
        alt.X("step:Q"), colour(marks, legend=False), tooltip=[alt.Tooltip("step:Q", title="diverged at step")]
    )
    return (
        at.mark_rule(strokeDash=[3, 3], strokeWidth=1.5),
        at.mark_text(align="left", dx=4, dy=8, fontWeight="bold").encode(y=alt.value(0), text="name:N"),
    )
