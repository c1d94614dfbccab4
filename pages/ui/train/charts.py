"""The charts of a comparison, in tabs of which only the open one is drawn."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from core.figures import axes, curves, layers, maps
from core.figures.axes import Line
from core.figures.figure import Figure
from core.runs.quantities import CURVES, LAYERS, Quantity
from core.state.comparison import VIEWS
from pages.ui.shared.figure import figure
from pages.ui.shared.results import Result, lines
from pages.ui.shared.state import change, comparison
from pages.ui.shared.swatch import legend
from pages.ui.train.downloads import downloads


def charts(results: list[Result]) -> None:
    shown = lines(results)
    st.session_state.tab = VIEWS[comparison().view]
    tabs = dict(zip(VIEWS, st.tabs(list(VIEWS.values()), key="tab", on_change=take, args=("view", "tab", VIEWS)), strict=True))
    view = comparison().view
    with tabs[view]:
        if not shown:
            st.info("Nothing to draw yet. Press **Run**, or show a run that is hidden.", icon=":material/show_chart:")
        elif view == "curves":
            draw_curves(shown)
        elif view == "layers":
            draw_layers(shown)
        elif view == "maps":
            draw_maps(shown)
        else:
            downloads(results, shown)


def take(name: str, key: str, labels: dict[str, str]) -> None:
    """Makes a choice among labels part of the page's state."""
    chosen = {label: identifier for identifier, label in labels.items()}[st.session_state[key]]
    change(lambda current: replace(current, **{name: chosen}))


def draw_curves(shown: list[Line]) -> None:
    """Quantities on a log axis beside each other, the others as strips below."""
    legend({line.label: line.slot for line in shown})
    in_columns([partial(curve, shown, quantity, 320) for quantity in CURVES.values() if quantity.log])
    for quantity in CURVES.values():
        if not quantity.log:
            curve(shown, quantity, 160)


def in_columns(charts: list[Callable[[], None]]) -> None:
    """Two to a line."""
    for place, draw in enumerate(charts):
        if place % 2 == 0:
            columns = st.columns(2)
        with columns[place % 2]:
            draw()


def curve(shown: list[Line], quantity: Quantity, height: int) -> None:
    chart(shown, quantity, "against the step", lambda: curves.curve_chart(shown, quantity.name, height))


def chart(shown: list[Line], quantity: Quantity, against: str, make: Callable[[], Figure]) -> None:
    """A quantity's chart, what it shows, and what it cannot show."""
    if names := [line.label for line in axes.with_quantity(shown, quantity.name)]:
        alt = f"{quantity.title} {against}, one line per run: {', '.join(names)}."
        figure(make(), f"chart_{quantity.name}", alt)
    else:
        st.markdown(f"**{quantity.title}**")
    st.caption(" ".join([quantity.says, axes.unshown(shown, quantity.name)]))


def draw_layers(shown: list[Line]) -> None:
    last = max(len(line.history) for line in shown)
    step = min(comparison().step or last, last)
    if last > 1:
        st.session_state.step = step
        st.slider("Step", 1, last, key="step", on_change=take_step, args=(last,), help="A run that ended earlier is shown where it ended.")
    legend({line.label: line.slot for line in shown})
    in_columns([partial(layer_chart, shown, quantity, step) for quantity in LAYERS.values()])


def layer_chart(shown: list[Line], quantity: Quantity, step: int) -> None:
    chart(
        shown,
        quantity,
        f"by layer at step {step}" if comparison().step else "by layer at the last step",
        lambda: layers.layer_chart(shown, quantity.name, step),
    )


def take_step(last: int) -> None:
    step = st.session_state.step
    change(lambda current: replace(current, step=None if step == last else step))


def draw_maps(shown: list[Line]) -> None:
    name = comparison().map
    titles = {name: quantity.title for name, quantity in LAYERS.items()}
    st.session_state.quantity = titles[name]
    st.segmented_control("Quantity", list(titles.values()), required=True, key="quantity", on_change=take, args=("map", "quantity", titles))
    quantity = LAYERS[name]
    st.caption(" ".join([quantity.says, "One colour scale for all runs.", axes.unshown(shown, name)]))
    for line, heat_map in zip(axes.with_quantity(shown, name), maps.heat_maps(shown, name), strict=True):
        figure(heat_map, f"map_{line.slot}", f"{quantity.title} of {line.label} over steps and layers.")
