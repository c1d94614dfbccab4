"""Everything of a comparison as files. What is costly to make is made when its button is pressed; nothing reruns the page."""

import json
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from core.cli.command import command
from core.figures import axes, curves, images, layers, maps
from core.figures.axes import Line
from core.figures.figure import Figure
from core.runs.config import RunConfig
from core.runs.frames import layer_frame, step_frame, write_csv
from core.runs.history import History
from core.runs.quantities import CURVES, LAYERS
from core.state.address import write_run
from pages.ui.shared.results import Result
from pages.ui.shared.state import comparison
from pages.ui.shared.swatch import swatch


def downloads(results: list[Result], shown: list[Line]) -> None:
    histories = {line.label: line.history for line in shown}
    data, pictures = st.columns(2, gap="large")
    with data:
        st.markdown("**Data**")
        st.caption("Every step and every layer, nothing thinned. The CSV by step has the columns that the article published.")
        with st.container(horizontal=True):
            button("Per step, CSV", partial(csv, step_frame, histories), "steps.csv", "text/csv")
            button("Per layer, CSV", partial(csv, layer_frame, histories), "layers.csv", "text/csv")
        for entry in results:
            if any(line.slot == entry.slot for line in shown):
                files_of(entry)
    with pictures:
        st.markdown("**Charts**")
        st.caption("The same charts as files, with a legend. The layer charts are at the step chosen under *Layers*.")
        drawable = {name: quantity for name, quantity in (CURVES | LAYERS).items() if axes.with_quantity(shown, name)}
        for name, quantity in drawable.items():
            picture(quantity.title, name, partial(export_chart, shown, name, comparison().step))
        for name in [name for name in LAYERS if name in drawable]:
            picture(f"{LAYERS[name].title}, heat map", f"{name}_map", partial(maps.heat_map, shown, name))


def files_of(entry: Result) -> None:
    """A run's own files, and the command that reproduces it."""
    st.markdown(f"{swatch(entry.slot)} {entry.label}")
    with st.container(horizontal=True):
        if entry.run:
            button("Run, Parquet", entry.run.to_parquet, f"{stem(entry.config)}.parquet", "application/vnd.apache.parquet", entry.slot)
        settings = partial(json.dumps, entry.config.to_dict(), indent=2)
        button("Configuration, JSON", settings, f"{stem(entry.config)}.json", "application/json", entry.slot)
    st.code(command(entry.config), language="bash", wrap_lines=True)


def picture(title: str, name: str, make: Callable[[], Figure]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(title, width=230)
        button("PNG", lambda: images.png(make()), f"{name}.png", "image/png", name)
        button("SVG", lambda: images.svg(make()), f"{name}.svg", "image/svg+xml", name)


def export_chart(shown: list[Line], name: str, step: int | None) -> Figure:
    if name in CURVES:
        return curves.curve_chart(shown, name, legend=True, width=640)
    return layers.layer_chart(shown, name, step or max(len(line.history) for line in shown), legend=True, width=640)


def csv(frame: Callable[..., pd.DataFrame], histories: dict[str, History]) -> str:
    return write_csv(frame(histories))


def button(label: str, make: Callable[[], str | bytes], file_name: str, mime: str, owner: object = "") -> None:
    st.download_button(label, make, file_name, mime, key=f"get_{owner}_{file_name}", on_click="ignore", icon=":material/download:")


def stem(config: RunConfig) -> str:
    """A file's name for a run; its address, unless that is longer than some file systems bear."""
    name = write_run(config)
    return name if len(name) <= 150 else f"{name[:120]}~{config.key}"
