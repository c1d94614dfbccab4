"""Charts of runs, from their histories: the same for the pages, for the command line and for downloads.

A run keeps one colour and one dash everywhere. Data are thinned to what a chart can show, keeping every extreme; files hold all of it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from core.data_tasks import Task
from core.runs.history import History
from core.runs.quantities import QUANTITIES
from core.values import digits

# Eight hues of like lightness, legible on white and on near-black, and a dash for each, for eyes and printers that see no hue.
COLOURS = ["#2e7bd6", "#e0642b", "#189a78", "#a45fd0", "#c2920a", "#d9477e", "#1aa3b8", "#7d858f"]
DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [5, 5], [12, 3], [1, 3], [7, 2, 1, 2, 1, 2]]
LINE: dict[str, Any] = {"strokeWidth": 2, "strokeJoin": "round"}  # a mitred joint would stand out above a peak


@dataclass(frozen=True, slots=True)
class Line:
    """A run on a chart."""

    slot: int  # 1..8: its colour and its dash
    label: str
    history: History
    task: Task
    steps: int = 0  # that it will have, while it is trained

    @property
    def last(self) -> int:
        """The step that its axis reaches to."""
        return max(self.steps, len(self.history))


class Mark(NamedTuple):
    """What tells a run on a chart."""

    slot: int
    label: str


def marks(lines: Sequence[Line]) -> tuple[Mark, ...]:
    return tuple(Mark(line.slot, line.label) for line in lines)


def ruler_at(table: str, field: str, marks: Sequence[Mark], name: str) -> tuple[alt.Chart, alt.Parameter]:
    """A rule that follows the pointer, with every run's exact value where it stands, and what selects its place."""
    hover = alt.selection_point(name=f"hover_{name}", nearest=True, on="pointerover", clear="pointerout", fields=[field], empty=False)
    tooltips = [alt.Tooltip(f"{field}:Q")] + [alt.Tooltip(f"{mark.slot}:N", title=mark.label) for mark in marks]
    ruler = (
        alt.Chart(alt.NamedData(table))
        .transform_pivot("run", value="said", groupby=[field], op="max")  # which of the one text that there is takes that one
        .transform_calculate(**{f"{mark.slot}": f"datum['{mark.slot}'] || '–'" for mark in marks})  # a run that has ended before
        .mark_rule(color="#7d858f", strokeWidth=1)
        .encode(x=f"{field}:Q", opacity=alt.when(hover).then(alt.value(0.8)).otherwise(alt.value(0)), tooltip=tooltips)
        .add_params(hover)
    )
    return ruler, hover


def unshown(lines: Sequence[Line], name: str) -> str:
    """A note on what a chart of this quantity cannot show; empty where it shows all."""
    missing = {line.label: undrawn(line.history[name]) for line in with_quantity(lines, name)} if QUANTITIES[name].log else {}
    counts = [f"{counted(kinds)} of {label}" for label, kinds in missing.items() if kinds]
    absent = ", ".join(line.label for line in lines if name not in line.history)
    notes = []
    if counts:
        notes.append(f"Not drawn on the log axis: {'; '.join(counts)}. The files have every value.")
    if absent:
        notes.append(f"Not recorded when it was computed: {absent}. **Run** records it.")
    return " ".join(notes)


def undrawn(values: np.ndarray) -> Counter[str]:
    """How many values of each kind a log axis cannot show."""
    return Counter(said(value) for value in values[np.isnan(shown_values(values))].tolist())


def counted(kinds: Counter[str]) -> str:
    return " and ".join(f"{count} {kind}" for kind, count in kinds.items())


def said(value: float) -> str:
    """What hovering says of a value, and the kind of one that a log axis cannot show."""
    return "zero" if value == 0 else digits(value, 6)


def with_quantity(lines: Sequence[Line], name: str) -> list[Line]:
    """The runs that have recorded the quantity: a file of an older format lacks those that came later."""
    return [line for line in lines if name in line.history]


def shown_values(values: np.ndarray) -> np.ndarray:
    """The values with nan for those that a log axis cannot show."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def whole(first: int, last: int) -> alt.Axis:
    """An axis of whole numbers without a grid."""
    return alt.Axis(tickCount=min(max(last - first, 1), 9), grid=False)


def value_axis(unit: str, log: bool, table: str) -> alt.Y:
    """The value's axis. Its format and its ticks are in a table that `axis_frame` makes, so that they may change with the values."""
    axis = alt.Axis(
        values=alt.ExprRef(f"pluck(slice(data('{table}'), 2), 'value')"), labelExpr=f"format(datum.value, data('{table}')[0].format)"
    )
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(nice=False)
    return alt.Y("value:Q").title(f"{unit} (log)" if log else unit).scale(scale).axis(axis)


def ends(table: str, channel: str = "y") -> alt.Chart:
    """A layer that shows nothing, and makes the scale of this channel reach over all values of a table."""
    return alt.Chart(alt.NamedData(table)).mark_point(size=0, opacity=0, aria=False).encode(**{channel: "value:Q"})


def axis_frame(values: np.ndarray, log: bool) -> pd.DataFrame:
    """Columns value and format; the first two rows are the ends of the axis, the others its ticks.

    A logarithmic axis has them at powers of ten, and between them where it spans few.
    """
    finite = values[np.isfinite(values)]
    if not log:
        most = finite.max() * 1.1 if len(finite) else 1.0  # so that a line at the top is not cut in half
        return with_ticks(0.0, most, even_ticks(0.0, most, 3), "~g")
    if not len(finite):
        return with_ticks(1.0, 10.0, np.zeros(0), "~g")
    low, high = np.log10(finite.min()), np.log10(finite.max())
    margin = max(0.04 * (high - low), 0.01)
    least, most = 10 ** (low - margin), 10 ** (high + margin)
    text = "~g" if low > -5 and high < 5 else "~e"
    if high - low <= 0.5:  # a power of ten may not lie in it
        return with_ticks(least, most, even_ticks(least, most, 5), f".4{text}")
    digits = [1] if high - low > 2.5 else [1, 2, 5] if high - low > 0.8 else range(1, 10)
    ticks = [digit * 10.0**power for power in range(int(np.floor(low)) - 1, int(np.ceil(high)) + 1) for digit in digits]
    return with_ticks(least, most, np.array(ticks), text)


def with_ticks(least: float, most: float, ticks: np.ndarray, text: str) -> pd.DataFrame:
    values = [least, most, *ticks[(ticks >= least) & (ticks <= most)]]
    return pd.DataFrame({"value": values, "format": text})


def even_ticks(least: float, most: float, about: int) -> np.ndarray:
    """Multiples of 1, 2 or 5 times a power of ten, about as many as asked for."""
    rough = (most - least) / about
    power = 10 ** np.floor(np.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda digit: abs(np.log(digit * power / rough)))
    return np.arange(np.ceil(least / step), np.floor(most / step) + 1) * step


def legend_of(marks: Sequence[Mark], legend: bool) -> alt.Legend | None:
    if not legend:
        return None
    names = {str(mark.slot): mark.label for mark in marks}
    expression = " : ".join(f"datum.label == '{slot}' ? {label!r}" for slot, label in names.items()) + " : datum.label"
    return alt.Legend(
        orient="bottom",
        direction="vertical",
        title=None,
        symbolType="stroke",
        symbolSize=600,
        symbolStrokeWidth=2,
        labelLimit=400,
        labelExpr=expression,
    )


def colour(marks: Sequence[Mark], legend: bool) -> alt.Color:
    slots = [mark.slot for mark in marks]
    scale = alt.Scale(domain=[str(slot) for slot in slots], range=[COLOURS[slot - 1] for slot in slots])
    return alt.Color("run:N", scale=scale, legend=legend_of(marks, legend))


def dash(marks: Sequence[Mark], legend: bool) -> alt.StrokeDash:
    slots = [mark.slot for mark in marks]
    scale = alt.Scale(domain=[str(slot) for slot in slots], range=[DASHES[slot - 1] for slot in slots])
    return alt.StrokeDash("run:N", scale=scale, legend=legend_of(marks, legend))
