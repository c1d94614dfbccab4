"""The page's two placements: their choice, or their design, and what is known of each."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import streamlit as st

from core.drawing.diagram.block import block_svg
from core.drawing.diagram.shapes import Theme, png, resolve_colours
from core.drawing.diagram.stack import stack_svg
from core.drawing.words import describe
from core.placement.design import Design, is_design, placement_of, with_part
from core.placement.record import Placement
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig, limits
from core.state.address import read_run, write_run
from core.state.pair import Pair
from pages.ui.shared.design import design_parts, remember_omissions, tell_omissions
from pages.ui.shared.verbatim import verbatim

NAMES = [field.name for field in fields(Pair)]
NARROW = 130  # pixels, so that a phone has two beside each other
FINAL_NORMS = {"Default": None, "On": True, "Off": False}


def current_pair() -> Pair:
    """The pair that the address names, unless a widget has just changed it; then the address is set to the pair."""
    state = st.session_state
    by_widget = state.pop("pair_changed", False)
    found = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    if "pair" not in state or (found != state.pair_address and not by_widget):
        state.pair, sentences = Pair.from_query(found)
        for sentence in sentences:
            st.warning(verbatim(sentence))
    state.pair_address = state.pair.to_query()
    if state.pair_address != found:
        st.query_params.from_dict(state.pair_address)
    current: Pair = state.pair
    return current


def change(**parts: Any) -> None:
    """For callbacks: changes fields of the pair."""
    st.session_state.pair_changed = True
    st.session_state.pair = replace(st.session_state.pair, **parts)


def take(name: str, make: Callable[[Any, Any], Any], key: str) -> None:
    """For callbacks: sets a field of the pair to what `make` makes of the widget's value and of the field's value before."""
    change(**{name: make(st.session_state[key], getattr(st.session_state.pair, name))})


def show(said: dict[str, Any]) -> None:
    """For callbacks: takes over fields that the browser already shows, None for the default. Nobody has checked them before."""
    others = {name: text for name, text in st.session_state.pair.to_query().items() if name not in said}
    told, _ = Pair.from_query(others | {name: str(value) for name, value in said.items() if value is not None})
    change(**{name: getattr(told, name) for name in said})


def widget(kind: Callable[..., Any], name: str, label: str, key: str, value: Any, make: Callable[[Any, Any], Any], **options: Any) -> None:
    """A widget that shows `value`; a change of it sets the pair's field `name`, as `take` has it."""
    key = f"pair_{key}"
    st.session_state[key] = value
    kind(label, key=key, on_change=take, args=(name, make, key), **options)


def keep(value: Any, _: Any) -> Any:
    """For `take`, where the field has the widget's own value."""
    return value


def depth(current: Pair) -> None:
    about = "Some placements have scales that depend on it."
    widget(
        st.number_input,
        "layers",
        "Blocks",
        "layers",
        current.layers,
        keep,
        min_value=int(limits("layers").least),
        max_value=int(limits("layers").most),
        help=about,
        width=NARROW,
    )


def drawn_block(current: Pair) -> None:
    about = "The number of the block that is drawn. Some placements have different blocks, or scales that go with the number."
    widget(
        st.number_input,
        "block",
        "Drawn block",
        "block",
        current.drawn,
        keep,
        min_value=1,
        max_value=current.layers,
        help=about,
        width=NARROW,
    )


def final_norm(current: Pair) -> None:
    def make(text: str, _: bool | None) -> bool | None:
        return FINAL_NORMS[text]

    [value] = [text for text, choice in FINAL_NORMS.items() if choice is current.final_norm]
    about = "Whether a norm follows the last block, in both placements."
    widget(
        st.segmented_control,
        "final_norm",
        "Final norm",
        "final_norm",
        value,
        make,
        options=[*FINAL_NORMS],
        required=True,
        help=about,
        width="content",
    )


def run_list(name: str, label: str, config: RunConfig, names: dict[RunConfig, str]) -> None:
    """The list of runs, with their names, that one side can show; the pair's field is `name`."""
    texts = {write_run(run): text for run, text in names.items()}
    widget(st.selectbox, name, label, name, write_run(config), known_run, options=list(texts), format_func=texts.__getitem__)


# Where the options have changed meanwhile, Streamlit hands on the label that a browser has chosen instead of the option: both functions
# then return what was chosen before.


def known_run(text: str, before: RunConfig | None) -> RunConfig | None:
    run, faults = read_run(text)
    return before if faults else run


def known_placement(text: str, before: str) -> str:
    return text if text in PLACEMENTS or is_design(text) else before


def placement_choice(current: Pair, name: str, label: str) -> None:
    """The list of placements, with the user's own design last, and below it the design's parts; the pair's field is `name`."""
    chosen = getattr(current, name)
    placement = placement_of(chosen)
    own = chosen if is_design(chosen) else Design.like(placement.block(current.drawn, current.layers)).text
    texts = {own: "Design your own"} | {name: placement.title for name, placement in PLACEMENTS.items()}

    def make(value: str, before: str) -> str:
        placement = known_placement(value, before)
        remember_omissions(placement, before, current.drawn, current.layers)
        return placement

    widget(st.selectbox, name, label, name, chosen, make, options=[*PLACEMENTS, own], format_func=texts.__getitem__)
    if is_design(chosen):
        tell_omissions(chosen)
        design = Design.parse(chosen)

        def part(
            kind: Callable[..., Any],
            field: str,
            label: str,
            to_widget: Callable[[Any], Any],
            from_widget: Callable[[Any], Any],
            **options: Any,
        ) -> None:
            def make_design(value: Any, before: str) -> str:
                return with_part(before, field, from_widget(value))

            widget(kind, name, label, f"{name}_{field}", to_widget(getattr(design, field)), make_design, **options)

        design_parts(part)


def facts(placement: Placement, layers: int) -> None:
    """What is known of a placement, and its description in words at a depth."""
    st.markdown(f"##### {placement.title}")
    st.markdown(placement.summary)
    untouched = placement.identity_path(layers)
    st.markdown(f"**Identity path:** {'yes, through the whole stack' if untouched else 'none through the whole stack'}")
    if placement.source:
        paper = f" [arXiv {placement.arxiv}](https://arxiv.org/abs/{placement.arxiv})" if placement.arxiv else ""
        st.markdown(f"**Source:** {placement.source}.{paper}")
        st.markdown(f"**Used by:** {placement.used_by}")
        st.markdown(f"**Beware:** {placement.trap}")
    with st.expander("In words", icon=":material/notes:"):
        st.code(describe(placement, layers), language=None, wrap_lines=True)


def downloads(placement: Placement, current: Pair, step: int, bands: dict[str, tuple[float, str]] | None, key: str) -> None:
    """Buttons that download the drawings shown, in the page's theme; `bands` as `block_svg` takes them, `step` the one they are of."""
    theme: Theme = "dark" if st.context.theme.type == "dark" else "light"
    block = block_svg(placement.block(current.drawn, current.layers), current.direction, placement.dual_stream, bands)
    drawings = {"block": block, "stack": stack_svg(placement, current.layers, current.direction)}
    with st.container(horizontal=True):
        for part, drawing in drawings.items():
            words = ["own" if is_design(placement.name) else placement.name, part]
            if current.block and part == "block":
                words.append(str(current.block))
            view = current.view if part == "block" else current.direction
            if view != "forward":
                words.append(view)
            if view == "measured":
                words.append(f"step-{step}")
            name = "-".join(words)
            download(f"{part.title()} SVG", partial(resolve_colours, drawing, theme), f"{name}.svg", "image/svg+xml", f"{key}_{part}_svg")
            download(f"{part.title()} PNG", partial(png, drawing, theme), f"{name}.png", "image/png", f"{key}_{part}_png")


def download(label: str, make: Callable[[], str | bytes], name: str, mime: str, key: str) -> None:
    st.download_button(label, make, name, mime, key=key, on_click="ignore", icon=":material/download:")
