"""Charts of runs, from their histories: the same for the pages, for the command line and for downloads.

A run keeps one colour and one dash everywhere. Data are thinned to what a chart can show, keeping every extreme; files hold all of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from core.comparison import MAPS
from core.history import LN_V, History

# Eight hues of like lightness, legible on white and on near-black, and a dash for each, for eyes and printers that see no hue.
COLOURS = ["#2e7bd6", "#e0642b", "#189a78", "#a45fd0", "#c2920a", "#d9477e", "#1aa3b8", "#7d858f"]
DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [5, 5], [12, 3], [1, 3], [7, 2, 1, 2, 1, 2]]
STEPS_SHOWN = 500  # on a curve
CELLS_SHOWN = 9000  # on a heat map
WHEN = {"before training": 8, "after training": 1}  # to the slot whose colour and dash it has
LINE: dict[str, Any] = {"strokeWidth": 2, "strokeJoin": "round"}  # a mitred joint would stand out above a peak
NIL = 1e-9  # a singular value below is not shown: to where a norm leaves nothing of a direction, rounding leaves less


class Quantity(NamedTuple):
    title: str
    unit: str
    log: bool
    says: str  # what is plotted, in one line


CURVES = {
    "loss": Quantity("Loss", "nats per token", True, "Mean cross-entropy of the step's batch, before the step's update."),
    "gradient_norm": Quantity("Gradient norm", "global L2", True, "L2 norm of the whole gradient. Nothing is clipped."),
    "learning_rate": Quantity("Learning rate", "per step", False, "What the step's update is multiplied by."),
}
LAYERS = {
    "stream_rms": Quantity(
        MAPS["stream_rms"], "per feature", True, "How large the residual stream is after each block; layer 0 is the embedding."
    ),
    "block_gradient_norm": Quantity(MAPS["block_gradient_norm"], "L2", True, "L2 norm of the gradient of one block's parameters."),
    "update_ratio": Quantity(
        MAPS["update_ratio"], "of the stream", True, "How much a block changes the stream, relative to what it reads."
    ),
}


Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


@dataclass(frozen=True, slots=True)
class Line:
    """A run on a chart."""

    slot: int  # 1..8: its colour and its dash
    label: str
    history: History


def curve_chart(lines: Sequence[Line], name: str, height: int = 300, legend: bool = False) -> alt.LayerChart | alt.FacetChart:
    """A quantity of CURVES against the step. Hovering shows every run's exact value at the step."""
    quantity = CURVES[name]
    data = curve_frame(lines, name)
    step = alt.X("step:Q").title("step").scale(nice=False).axis(whole(data.step))
    values = pd.concat([data.value, pd.Series([LN_V])]) if name == "loss" else data.value
    base = alt.Chart(data).encode(step, value_axis(quantity, values), colour(lines, legend), dash(lines, legend))
    curves = base.mark_line(**LINE, invalid="break-paths-filter-domains", clip=True)
    ruler, hover = ruler_at(data, "step", lines, name)
    dots = base.mark_point(filled=True, size=45, opacity=1).transform_filter(hover)
    layers = [curves, ruler, dots, *divergence(lines)]
    if len(alone := without_neighbours(data)):
        layers.append(base.mark_point(filled=True, size=30, opacity=1).properties(data=alone))
    if name == "loss":
        layers.insert(0, guessing())
    return alt.layer(*layers).properties(height=height, title=alt.Title(quantity.title, anchor="start"))


def layer_chart(lines: Sequence[Line], name: str, step: int, height: int = 260, legend: bool = False) -> alt.LayerChart | alt.FacetChart:
    """A quantity of LAYERS against the layer, at one step; a run that ended before it is shown where it ended."""
    data = layer_at(lines, name, step)
    base = alt.Chart(data).encode(
        alt.X("layer:Q").title("layer").scale(nice=False).axis(whole(data.layer)),
        value_axis(LAYERS[name], data.value),
        colour(lines, legend),
        dash(lines, legend),
    )
    curves = base.mark_line(**LINE, invalid="break-paths-filter-domains")
    dots = base.mark_point(filled=True, size=30, opacity=1, invalid="filter")
    ended = [
        replace(line, label=f"{line.label}, at its last step, {len(line.history)}") if len(line.history) < step else line for line in lines
    ]
    ruler, _ = ruler_at(data, "layer", ended, name)
    return alt.layer(curves, ruler, dots).properties(height=height, title=alt.Title(LAYERS[name].title, anchor="start"))


def heat_maps(lines: Sequence[Line], name: str, height: int = 240) -> list[alt.Chart]:
    """A quantity of LAYERS over steps and layers, one map a run, all on one colour scale."""
    quantity = LAYERS[name]
    values = np.concatenate([shown_values(getattr(line.history, f"{name}_sl")).ravel() for line in lines])
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


def spectrum_chart(before_d: np.ndarray, after_d: np.ndarray, domain: tuple[float, float], title: str, height: int = 280) -> Chart:
    """A Jacobian's singular values against their rank, at the times of WHEN, on a log axis from the least to the greatest of `domain`."""
    values = zip(WHEN, (before_d, after_d), strict=True)
    frames = [
        pd.DataFrame({"when": when, "rank": np.arange(1, len(value_d) + 1), "value": value_d.astype(float)}) for when, value_d in values
    ]
    data = pd.concat(frames)[lambda frame: (frame.value >= NIL) & np.isfinite(frame.value)]
    slots = [slot - 1 for slot in WHEN.values()]
    base = alt.Chart(data).encode(
        alt.X("rank:Q").title("rank").scale(domain=[1, len(before_d)], nice=False).axis(whole(data["rank"])),
        value_axis(Quantity("", "singular value", True, ""), pd.Series(domain)),
        alt.Color("when:N", scale=alt.Scale(domain=[*WHEN], range=[COLOURS[slot] for slot in slots]), legend=None),
        alt.StrokeDash("when:N", scale=alt.Scale(domain=[*WHEN], range=[DASHES[slot] for slot in slots]), legend=None),
        tooltip=["when:N", "rank:Q", alt.Tooltip("value:Q", title="singular value", format=".4~g")],
    )
    unchanged = alt.Chart(pd.DataFrame({"value": [1.0]})).mark_rule(color=COLOURS[7], strokeDash=DASHES[2]).encode(alt.Y("value:Q"))
    layers = unchanged, base.mark_line(**LINE), base.mark_point(filled=True, size=16, opacity=1)
    return alt.layer(*layers).properties(height=height, title=alt.Title(title, anchor="start"))


def unshown_of_spectrum(before_d: np.ndarray, after_d: np.ndarray) -> str:
    """A sentence on the singular values that `spectrum_chart` leaves out; empty where it shows all."""
    values = dict(zip(WHEN, (before_d, after_d), strict=True))
    small = ", ".join(f"{count} {when}" for when, value_d in values.items() if (count := int((value_d < NIL).sum())))
    notes = [f"{small}, below 10⁻⁹, where rounding is all there is"] * bool(small)
    notes += [f"those {when}, which are no numbers" for when, value_d in values.items() if np.isnan(value_d).all()]
    notes += [f"those {when} that are too large" for when, value_d in values.items() if np.isinf(value_d).any()]
    return f"Not shown: {'; '.join(notes)}." if notes else ""


def spectrum_domain(spectra: Sequence[np.ndarray]) -> tuple[float, float]:
    """The least and the greatest singular value that is shown of any of these arrays; one is among them."""
    values = np.concatenate([np.ones(1), *(spectrum.ravel() for spectrum in spectra)])
    shown = values[(values >= NIL) & np.isfinite(values)]
    return float(shown.min()), float(shown.max())


def article_figure(histories: Mapping[str, History]) -> alt.HConcatChart:
    """Loss and gradient norm side by side on log axes, for a file."""
    lines = [Line(slot, label, history) for slot, (label, history) in enumerate(histories.items(), 1)]
    panels = [curve_chart(lines, name, legend=True).properties(width=430, height=320) for name in ("loss", "gradient_norm")]
    return alt.hconcat(*panels).resolve_scale(color="shared", strokeDash="shared")


def ruler_at(data: pd.DataFrame, field: str, lines: Sequence[Line], name: str) -> tuple[alt.Chart, alt.Parameter]:
    """A rule that follows the pointer, with every run's exact value where it stands, and what selects its place."""
    hover = alt.selection_point(name=f"hover_{name}", nearest=True, on="pointerover", clear="pointerout", fields=[field], empty=False)
    tooltips = [alt.Tooltip(f"{field}:Q")] + [alt.Tooltip(f"{line.slot}:Q", title=line.label, format=".6~g") for line in lines]
    ruler = (
        alt.Chart(data)
        .transform_pivot("run", value="value", groupby=[field])
        .mark_rule(color="#7d858f", strokeWidth=1)
        .encode(x=f"{field}:Q", opacity=alt.when(hover).then(alt.value(0.8)).otherwise(alt.value(0)), tooltip=tooltips)
        .add_params(hover)
    )
    return ruler, hover


def unshown(lines: Sequence[Line], name: str) -> str:
    """A note on the values that a log axis cannot show; empty where it shows all of them."""
    if name in CURVES:
        values = {line.label: getattr(line.history, f"{name}_s") for line in lines} if CURVES[name].log else {}
    else:
        values = {line.label: getattr(line.history, f"{name}_sl").ravel() for line in lines}
    missing = {label: int((~(np.isfinite(value) & (value > 0))).sum()) for label, value in values.items()}
    parts = [f"{count} of {label}" for label, count in missing.items() if count]
    return f"Not finite or not above zero, so not on this log axis: {', '.join(parts)}. The files have every value." if parts else ""


def curve_frame(lines: Sequence[Line], name: str) -> pd.DataFrame:
    """Columns run, step, value: all runs at the same steps, so that hovering compares them."""
    log = CURVES[name].log
    columns = {str(line.slot): getattr(line.history, f"{name}_s").astype(np.float64) for line in lines}
    kept = kept_steps(list(columns.values()))
    frames = []
    for run, value_s in columns.items():
        steps = kept[kept < len(value_s)]
        value = value_s[steps]
        frames.append(pd.DataFrame({"run": run, "step": steps + 1, "value": shown_values(value) if log else value}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"run": [], "step": [], "value": []})


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


def layer_at(lines: Sequence[Line], name: str, step: int) -> pd.DataFrame:
    """Columns run, layer, value."""
    frames = []
    for line in lines:
        value_sl = getattr(line.history, f"{name}_sl")
        row = min(step, len(value_sl)) - 1
        if row >= 0:
            value_l = shown_values(value_sl[row].astype(np.float64))
            layers = np.arange(len(value_l)) + first_layer(name)
            frames.append(pd.DataFrame({"run": str(line.slot), "layer": layers, "value": value_l}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["run", "layer", "value"])


def cell_frame(line: Line, name: str, cells: int) -> pd.DataFrame:
    """Columns step, step_end, layer, layer_end, value; a stretch of steps is shown by the greatest value of each layer in it."""
    value_sl = shown_values(getattr(line.history, f"{name}_sl").astype(np.float64))
    steps, layers = value_sl.shape
    stretches = min(steps, max(cells // layers, 1))
    start = np.arange(stretches) * steps // stretches
    layer = np.tile(np.arange(layers) + first_layer(name), stretches)
    return pd.DataFrame(
        {
            "step": np.repeat(start + 1, layers),
            "step_end": np.repeat(np.append(start[1:], steps) + 1, layers),
            "layer": layer,
            "layer_end": layer + 1,
            "value": np.fmax.reduceat(value_sl, start).ravel(),
        }
    )


def first_layer(name: str) -> int:
    """Layer 0, the embedding, has a stream but is no block."""
    return 0 if name == "stream_rms" else 1


def shown_values(values: np.ndarray) -> np.ndarray:
    """The values with nan for those that a log axis cannot show."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def whole(values: pd.Series) -> alt.Axis:
    """An axis of whole numbers without a grid."""
    span = int(values.max() - values.min()) if len(values) else 0
    return alt.Axis(tickCount=min(max(span, 1), 9), grid=False)


def value_axis(quantity: Quantity, values: pd.Series) -> alt.Y:
    """The value's axis; a logarithmic one has its grid at powers of ten, and between them where it spans few."""
    title = quantity.unit + (" (log)" if quantity.log else "")
    finite = values[np.isfinite(values)]
    if not quantity.log:
        most = finite.max() * 1.1 if len(finite) else 1.0  # so that a line at the top is not cut in half
        return alt.Y("value:Q").title(title).scale(domain=[0, most], nice=False).axis(format="~g", tickCount=3)
    low, high = (np.log10(finite.min()), np.log10(finite.max())) if len(finite) else (0.0, 1.0)
    digits = [1] if high - low > 2.5 else [1, 2, 5] if high - low > 0.8 else range(1, 10)
    ticks = [digit * 10.0**power for power in range(int(np.floor(low)), int(np.ceil(high)) + 1) for digit in digits]
    text = "~g" if low > -5 and high < 5 else "~e"
    axis = alt.Axis(format=text, values=ticks) if high - low > 0.5 else alt.Axis(format=f".4{text}", tickCount=5)  # few of them lie in it
    margin = max(0.04 * (high - low), 0.01)
    domain = [10 ** (low - margin), 10 ** (high + margin)]
    return alt.Y("value:Q").title(title).scale(type="log", nice=False, domain=domain).axis(axis)


def legend_of(lines: Sequence[Line], legend: bool) -> alt.Legend | None:
    if not legend:
        return None
    names = {str(line.slot): line.label for line in lines}
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


def colour(lines: Sequence[Line], legend: bool) -> alt.Color:
    slots = [line.slot for line in lines]
    scale = alt.Scale(domain=[str(slot) for slot in slots], range=[COLOURS[slot - 1] for slot in slots])
    return alt.Color("run:N", scale=scale, legend=legend_of(lines, legend))


def dash(lines: Sequence[Line], legend: bool) -> alt.StrokeDash:
    slots = [line.slot for line in lines]
    scale = alt.Scale(domain=[str(slot) for slot in slots], range=[DASHES[slot - 1] for slot in slots])
    return alt.StrokeDash("run:N", scale=scale, legend=legend_of(lines, legend))


def guessing() -> alt.LayerChart | alt.FacetChart:
    """The loss of a model that has learned nothing, as a line with its name."""
    at = alt.Chart(pd.DataFrame({"value": [LN_V], "name": ["guessing: ln 64"]}))
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
