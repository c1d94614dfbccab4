"""The runs of the comparison as cards, and the buttons that start, stop and arrange them."""

import math
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.data_tasks import TASKS
from core.jobs import estimate
from core.jobs.queue import JobsError, QueueFull
from core.runs.config import RunConfig
from core.runs.labels import labels
from core.runs.outcome import RULE, Outcome, outcome, verdict
from core.runs.presets import PRESETS
from core.runs.settings import ConfigError
from core.state.comparison import Comparison
from core.state.pair import Pair
from pages.ui.shared import polling
from pages.ui.shared.results import Result, jobs, own_runs
from pages.ui.shared.state import change, comparison, viewer
from pages.ui.shared.swatch import swatch
from pages.ui.shared.verbatim import verbatim

OUTCOMES: dict[Outcome, tuple[Any, str]] = {  # badge colour and icon
    "learned": ("green", ":material/check:"),
    "still learning": ("blue", ":material/trending_down:"),
    "plateau": ("yellow", ":material/trending_flat:"),
    "stuck": ("orange", ":material/block:"),
    "worse than guessing": ("orange", ":material/trending_up:"),
    "lost it": ("orange", ":material/undo:"),
    "diverged": ("red", ":material/close:"),
}


def actions(results: list[Result], on_the_way: list[RunConfig], every: float | None) -> None:
    """Run or Cancel, what it will take, and how to bring in other runs."""
    missing = [entry for entry in results if entry.missing]
    with st.container(horizontal=True, vertical_alignment="center"):
        if on_the_way:
            st.button("Cancel", icon=":material/stop:", on_click=cancel, args=(on_the_way,), key="cancel")
        if missing or not on_the_way:
            st.button(
                "Run",
                type="primary",
                icon=":material/play_arrow:",
                shortcut="Ctrl+Enter",
                disabled=not missing,
                on_click=start,
                args=(missing,),
                key="run",
                help="Trains the runs that have no result yet (Ctrl+Enter).",
            )
        st.button("Add run", icon=":material/add:", disabled=comparison().full, on_click=change, args=(Comparison.add,), key="add")
        st.menu_button(
            "Start from",
            list(PRESETS),
            format_func=lambda name: PRESETS[name][0],
            icon=":material/bookmark:",
            key="preset",
            on_click=preset,
        )
        st.markdown(outlook(missing, on_the_way, every), width="content")
    going_on = [config for config in st.session_state.get("left", []) if config in on_the_way]
    notices = [f"{label} goes on until nobody else watches it." for label in labels(going_on)]
    if sentences := [*st.session_state.notices, *st.session_state.get("faults", []), *notices]:
        st.warning("  \n".join(map(verbatim, sentences)), icon=":material/info:")


def outlook(missing: list[Result], on_the_way: list[RunConfig], every: float | None) -> str:
    """What pressing Run will take here, or that there is nothing to run."""
    if missing:
        configs = {entry.config: entry.run for entry in missing}
        amount = "1 run is" if len(configs) == 1 else f"{len(configs)} runs are"
        state = "not computed yet" if None in configs.values() else "not recorded in full"
        seconds = sum(estimate.seconds(config) for config in configs)
        return f":gray[{amount} {state}{'' if math.isnan(seconds) else f': about {duration(seconds)} here'}.]"
    if set(on_the_way) - set(comparison().runs.values()):
        return ":gray[A run that you started and then changed or removed is still being computed.]"
    if on_the_way and every and every > polling.OLD:
        return f":gray[Many are watching, so what is shown may be {every:.0f} s old.]"
    if on_the_way:
        return ":gray[Leaving the page or reloading it loses nothing.]"
    return ":gray[All runs shown are finished. Change a setting to train a new one.]"


def cards(results: list[Result]) -> list[DeltaGenerator]:
    """What of the cards stays while runs go on; in each is a place for the run's state."""
    with st.grid(min(len(results), 4), min_column_width=200, vertical_alignment="top", row_height="content"):
        return [card(entry) for entry in results]


def states(results: list[Result], places: list[DeltaGenerator]) -> None:
    for entry, place in zip(results, places, strict=True):
        with place.container(gap="xsmall"):
            state(entry)


def card(entry: Result) -> DeltaGenerator:
    runs = comparison()
    hidden, selected = entry.slot in runs.hidden, entry.slot == runs.selected
    offered = {"edit": ":material/edit: Edit in the sidebar"}
    if not runs.full:
        offered["duplicate"] = ":material/content_copy: Duplicate, to change one thing"
    offered["toggle"] = ":material/visibility: Show" if hidden else ":material/visibility_off: Hide"
    if len(runs.runs) > 1:
        offered["remove"] = ":material/delete: Remove"
    with st.container(border=True, key=f"card{entry.slot}", height="stretch", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", wrap=False, gap="xxsmall"):
            st.markdown(f"{swatch(entry.slot)} **{entry.label}**", width="stretch")
            st.button(
                "",
                icon=":material/edit:",
                type="primary" if selected else "tertiary",
                help="This run is edited in the sidebar." if selected else "Edit this run in the sidebar.",
                key=f"edit{entry.slot}",
                on_click=change,
                args=(select, entry.slot),
            )
            st.menu_button(
                "",
                list(offered),
                format_func=offered.__getitem__,
                type="tertiary",
                key=f"act{entry.slot}",
                on_click=act,
                args=(entry.slot,),
            )
        return st.empty()


def state(entry: Result) -> None:
    """One sentence on where the run stands."""
    status = entry.status
    if entry.running and status:
        steps = len(status.history)
        left = f" · {duration(status.seconds_left)} left" if status.seconds_left else ""
        texts = {
            "waiting": f"Waiting · {status.position} ahead{left}" if status.position else f"Starting{left}",
            "compiling": f"Compiling{left}",
            "training": f"Training · step {steps} of {entry.config.steps}{left}",
        }
        st.progress(steps / entry.config.steps, texts[status.phase])
        if status.sentence:
            st.caption(verbatim(status.sentence))
    elif entry.run:
        task = TASKS[entry.config.task]
        ended = outcome(entry.run.history, task)
        colour, icon = OUTCOMES[ended]
        st.badge(ended.capitalize(), icon=icon, color=colour, help=RULE)
        st.markdown(verdict(entry.run.history, task))
        if entry.run.history.absent:
            titles = ", ".join(quantity.title.lower() for quantity in entry.run.history.absent)
            st.caption(f"Computed before the lab recorded: {titles}. **Run** records it.")
        query = Pair.of(entry.config).to_query()
        st.page_link("theory/identity_path.py", label="Its backward signal", icon=":material/timeline:", query_params=query)
    elif status is None:
        st.markdown(":gray-badge[:material/hourglass_empty: Not computed yet] Press **Run** to train it.")
    else:
        stopped = f"Stopped after step {len(status.history)} of {entry.config.steps}. **Run** starts it again."
        sentence = verbatim(status.sentence) or stopped
        st.markdown(f":gray-badge[:material/stop_circle: {status.phase.capitalize()}] {sentence}")
    if entry.run and not entry.running and status and status.sentence:
        st.caption(verbatim(status.sentence))


def start(missing: list[Result]) -> None:
    faults = []
    for entry in missing:
        try:
            jobs().submit(entry.config, viewer())
            own_runs().add(entry.config)
        except (ConfigError, QueueFull, JobsError) as error:
            faults.append(f"{entry.label}: {error}")
    st.session_state.faults = faults


def cancel(configs: list[RunConfig]) -> None:
    st.session_state.left = [config for config in configs if not jobs().cancel(config, viewer())]


def act(slot: int) -> None:
    runs = {
        "edit": lambda runs: select(runs, slot),
        "duplicate": lambda runs: select(runs, slot).add() if slot in runs.runs else runs,
        "toggle": lambda runs: runs.toggle(slot),
        "remove": lambda runs: runs.remove(slot),
    }
    change(runs[st.session_state[f"act{slot}"]])


def preset() -> None:
    runs = PRESETS[st.session_state.preset][1]
    change(lambda current: Comparison.of(runs, current.view))


def select(runs: Comparison, slot: int) -> Comparison:
    return replace(runs, selected=slot) if slot in runs.runs else runs


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
