"""The charts of a comparison, in tabs of which only the open one is drawn."""

import streamlit as st

from core import figures
from core.figures import CURVES, LAYERS, Line
from pages.ui.downloads import downloads
from pages.ui.results import Result, lines
from pages.ui.swatch import swatch


def charts(results: list[Result]) -> None:
    shown = lines(results)
    curves, layers, maps, files = st.tabs(["Curves", "Layers", "Heat maps", "Downloads"], key="view", bind="query-params")
    if not shown:
        st.info("Nothing to draw yet. Press **Run**, or show a run that is hidden.", icon=":material/show_chart:")
        return
    if curves.open:
        with curves:
            draw_curves(shown)
    if layers.open:
        with layers:
            draw_layers(shown)
    if maps.open:
        with maps:
            draw_maps(shown)
    if files.open:
        with files:
            downloads(results, shown)


def draw_curves(shown: list[Line]) -> None:
    legend(shown)
    left, right = st.columns(2)
    with left:
        curve(shown, "loss", 320)
    with right:
        curve(shown, "gradient_norm", 320)
    curve(shown, "learning_rate", 160)


def curve(shown: list[Line], name: str, height: int) -> None:
    quantity = CURVES[name]
    alt = f"{quantity.title} against the step, one line per run: {', '.join(line.label for line in shown)}."
    st.altair_chart(figures.curve_chart(shown, name, height), width="stretch", key=f"chart_{name}", alt=alt)
    st.caption(" ".join([quantity.says, figures.unshown(shown, name)]))


def draw_layers(shown: list[Line]) -> None:
    last = max(len(line.history) for line in shown)
    step = last
    if last > 1:
        st.session_state.setdefault("step", last)
        st.session_state.step = min(max(st.session_state.step, 1), last)
        step = st.slider("Step", 1, last, key="step", help="A run that ended earlier is shown where it ended.")
    legend(shown)
    for column, name in zip(st.columns(3), LAYERS, strict=True):
        with column:
            quantity = LAYERS[name]
            alt = f"{quantity.title} by layer at step {step}, one line per run: {', '.join(line.label for line in shown)}."
            st.altair_chart(figures.layer_chart(shown, name, step), width="stretch", key=f"chart_{name}", alt=alt)
            st.caption(" ".join([quantity.says, figures.unshown(shown, name)]))


def draw_maps(shown: list[Line]) -> None:
    name = st.segmented_control(
        "Quantity", list(LAYERS), format_func=lambda name: LAYERS[name].title, default="stream_rms", required=True, key="map"
    )
    quantity = LAYERS[name]
    st.caption(" ".join([quantity.says, "One colour scale for all runs.", figures.unshown(shown, name)]))
    for line, chart in zip(shown, figures.heat_maps(shown, name), strict=True):
        st.altair_chart(chart, width="stretch", key=f"map_{line.slot}", alt=f"{quantity.title} of {line.label} over steps and layers.")


def legend(shown: list[Line]) -> None:
    st.markdown(" &emsp; ".join(f"{swatch(line.slot)} {line.label}" for line in shown))
