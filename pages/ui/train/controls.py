"""The sidebar: every setting of the selected run."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.placement.design import Design, is_design, placement_of
from core.placement.table import PLACEMENTS
from core.runs.config import LIMITS, NORMS, ConfigError, RunConfig, host_most
from core.state.comparison import Comparison
from core.values import plain_text
from pages.ui.shared.design import design_parts, remember_omissions, tell_omissions
from pages.ui.shared.state import change, comparison, keep, seen
from pages.ui.shared.swatch import swatch
from pages.ui.shared.verbatim import verbatim

RATES = [float(f"{digit}e{power}") for power in range(-5, -1) for digit in (1, 1.5, 2, 3, 5, 7)] + [0.1]


def editor() -> None:
    runs = comparison()
    config = edited(runs)
    with st.sidebar:
        st.markdown(f"### Run {runs.selected} {swatch(runs.selected)}")
        st.caption(runs.labels[runs.selected])
        if len(runs.runs) > 1:
            st.toggle(
                "Change all runs alike",
                key="everywhere",
                on_change=keep,
                help="A change of one setting is made in every run of the comparison.",
            )
        placement_controls(config)
        training_controls(config)
        with st.expander("More", icon=":material/tune:"):
            size_controls()


def placement_controls(config: RunConfig) -> None:
    placement = placement_of(config.placement)
    own = config.placement if is_design(config.placement) else Design.like(placement.block(config.layers, config.layers)).text
    control(
        st.selectbox,
        "placement",
        "Norm placement",
        options=[*PLACEMENTS, own],
        format_func=lambda name: "Design your own" if is_design(name) else PLACEMENTS[name].title,
        help="Where the norms sit in each block, and what scales come with them. The last entry is for a design of your own.",
    )
    st.caption(placement.summary)
    if is_design(config.placement):
        tell_omissions(config.placement)
        design_controls()
    control(
        st.segmented_control,
        "norm",
        "Norm kind",
        options=list(NORMS),
        format_func=NORMS.__getitem__,
        required=True,
        help="LayerNorm subtracts the mean and divides by the standard deviation; RMSNorm only divides by the root-mean-square. "
        "DyT is no norm: it takes a norm's place with γ tanh(αx) + β, whose α is learned.",
    )
    control(
        st.toggle,
        "final_norm",
        "Final norm",
        help="A norm between the last block and the output layer. Pre-Norm has one by default; Post-Norm's last block ends in one anyway.",
    )
    control(
        st.toggle,
        "qk_norm",
        "QK-norm",
        help="A norm on each head's queries and keys, which bounds the attention scores. HybridNorm has it anyway.",
        disabled={"query", "key"} <= placement.block(1, config.layers).structure.head_norms,
    )


def design_controls() -> None:
    design = Design.parse(edited(comparison()).placement)

    def part(
        widget: Callable[..., Any], field: str, label: str, form: Callable[[Any], Any], made: Callable[[Any], Any], **options: Any
    ) -> None:
        key = f"design_{field}"
        st.session_state[key] = form(getattr(design, field))
        widget(label, key=key, on_change=take_part, args=(field, key, made), **options)

    design_parts(part)


def take_part(field: str, key: str, made: Callable[[Any], Any]) -> None:
    """As `take`; a design that the browser has left in the meantime is not changed."""
    value, view = made(st.session_state[key]), seen()
    before = edited(view).placement
    if is_design(before) and value != getattr(Design.parse(before), field):
        change(Comparison.redesign, field, value, view.selected, bool(st.session_state.get("everywhere")))


def training_controls(config: RunConfig) -> None:
    control(
        st.slider,
        "layers",
        "Depth, in blocks",
        min_value=1,
        max_value=max(int(host_most("layers")), config.layers, 2),
        help=allowed("layers"),
    )
    control(
        st.select_slider,
        "learning_rate",
        "Learning rate",
        options=sorted({*RATES, config.learning_rate}),
        format_func=plain_text,
        help=f"The peak rate, on a logarithmic scale. {allowed('learning_rate')}",
    )
    control(
        st.text_input,
        "learning_rate",
        "Learning rate, typed",
        key="typed",
        form=plain_text,
        label_visibility="collapsed",
        icon=":material/edit:",
        placeholder="or type it, as in 3e-4",
    )
    control(
        st.slider,
        "warmup",
        "Warmup fraction",
        min_value=0.0,
        max_value=1.0,
        step=0.01,
        help="The part of the steps in which the rate climbs from near zero to its peak. 0 is a constant rate.",
    )
    st.caption(f"{config.warmup_steps} of {config.steps} steps" if config.warmup_steps else "Constant rate, no warmup")
    left, right = st.columns(2)
    with left:
        control(st.number_input, "steps", "Steps", value=None, step=10, help=allowed("steps"))
    with right:
        control(st.number_input, "seed", "Seed", value=None, step=1, help=f"Decides initial parameters and data. {allowed('seed')}")


def size_controls() -> None:
    labels = {"width": "Width", "heads": "Heads", "length": "Sequence length", "batch": "Sequences per batch"}
    for name, label in labels.items():
        control(st.number_input, name, label, value=None, step=1, help=allowed(name))


def control(
    widget: Callable[..., Any],
    name: str,
    label: str,
    key: str = "edit",
    form: Callable[[Any], Any] = lambda value: value,
    **options: Any,
) -> None:
    """A widget that shows a field of the selected run, in this form, and changes it; what no run can have is refused below it."""
    key = f"{key}_{name}"
    st.session_state[key] = form(getattr(edited(comparison()), name))
    widget(label, key=key, on_change=take, args=(name, key, form), **options)
    refusal = st.session_state.refusal
    if refusal and refusal[0] == key:
        st.error(verbatim(refusal[1]))


def take(name: str, key: str, form: Callable[[Any], Any]) -> None:
    """Makes a widget's change in the comparison, or keeps the comparison and the reason.

    What the browser had in view decides which run is meant, and whether there is a change: every widget is sent along as it was there.
    """
    value, view = st.session_state[key], seen()
    if value == form(getattr(edited(view), name)):
        return
    before = edited(view)
    try:
        change(Comparison.edit, name, value, view.selected, bool(st.session_state.get("everywhere")))
        if name == "placement":
            remember_omissions(value, before.placement, before.layers, before.layers)
    except ConfigError as error:
        keep()
        st.session_state.refusal = (key, str(error))


def edited(runs: Comparison) -> RunConfig:
    return runs.runs[runs.selected]


def allowed(name: str) -> str:
    return f"{plain_text(LIMITS[name][0])} to {plain_text(host_most(name))}."
