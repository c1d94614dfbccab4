"""Quantities of a step against the step."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from core.data_tasks import TASKS
from core.figures.axes import LINE, Line, colour, dash, ruler_at, said, shown_values, value_axis, whole, with_quantity
from core.runs.history import History
from core.runs.quantities import CURVES

STEPS_SHOWN = 500  # on a curve


def curve_chart(lines: Sequence[Line], name: str, height: int = 300, legend: bool = False) -> alt.LayerChart | alt.FacetChart:
    """A quantity of CURVES against the step. Hovering shows every run's exact value at the step."""
    quantity = CURVES[name]
    lines = with_quantity(lines, name)
    data = curve_frame(lines, name)
    step = alt.X("step:Q").title("step").scale(nice=False).axis(whole(data.step))
    levels = sorted({line.task.guessing for line in lines}) if name == "loss" else []
    base = alt.Chart(data).encode(
        step,
        value_axis(quantity.unit, quantity.log, pd.concat([data.value, pd.Series(levels, dtype=float)])),
        colour(lines, legend),
        dash(lines, legend),
    )
    curves = base.mark_line(**LINE, invalid="break-paths-filter-domains", clip=True)
    ruler, hover = ruler_at(data, "step", lines, name)
    dots = base.mark_point(filled=True, size=45, opacity=1).transform_filter(hover)
    layers = [curves, ruler, dots, *divergence(lines)]
    if len(alone := without_neighbours(data)):
        layers.append(base.mark_point(filled=True, size=30, opacity=1).properties(data=alone))
    return alt.layer(*map(guessing, levels), *layers).properties(height=height, title=alt.Title(quantity.title, anchor="start"))


def article_figure(histories: Mapping[str, History]) -> alt.HConcatChart:
    """Loss and gradient norm of the article's runs side by side on log axes, for a file."""
    task = TASKS["progression"]
    lines = [Line(slot, label, history, task) for slot, (label, history) in enumerate(histories.items(), 1)]
    panels = [curve_chart(lines, name, legend=True).properties(width=430, height=320) for name in ("loss", "gradient_norm")]
    return alt.hconcat(*panels).resolve_scale(color="shared", strokeDash="shared")


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
    at = alt.Chart(pd.DataFrame({"value": [loss], "name": [f"random guessing: {loss:.3f}"]}))
    rule = at.mark_rule(color="#7d858f", strokeDash=[2, 3]).encode(alt.Y("value:Q"))
    text = at.mark_text(color="#7d858f", align="right", dy=-8).encode(alt.Y("value:Q"), x=alt.value("width"), text="name:N")
    return alt.layer(rule, text)


def divergence(lines: Sequence[Line]) -> list[alt.LayerChart | alt.FacetChart]:
    """A mark at the step at which a run diverged."""
    ends = [{"run": str(line.slot), "step": line.history.diverged_at, "name": "✕ diverged"} for line in lines if line.history.diverged_at]
    if not ends:
        return []
    at = alt.Chart(pd.DataFrame(ends)).encode(
        alt.X("step:Q"), colour(lines, legend=False), tooltip=[alt.Tooltip("step:Q", title="diverged at step")]
    )
    return [
        alt.layer(
            at.mark_rule(strokeDash=[3, 3], strokeWidth=1.5),
            at.mark_text(align="left", dx=4, dy=8, fontWeight="bold").encode(y=alt.value(0), text="name:N"),
        )
    ]
