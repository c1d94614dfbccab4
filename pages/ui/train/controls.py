"""The sidebar: every setting of the selected run."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.placement.design import Design, is_design, placement_of
from core.placement.table import PLACEMENTS
from core.runs.config import SETTINGS, RunConfig, host_most, limits
from core.runs.settings import Choice, ConfigError, Group, Number, Setting, Switch
from core.state.comparison import Comparison
from core.values import plain_text
from pages.ui.shared.design import design_parts, remember_omissions, tell_omissions
from pages.ui.shared.state import change, comparison, keep, seen
from pages.ui.shared.swatch import swatch
from pages.ui.shared.verbatim import verbatim

RATES = [float(f"{digit}e{power}") for power in range(-5, -1) for digit in (1, 1.5, 2, 3, 5, 7)] + [0.1]
STEPS_OF_BUTTONS = {"steps": 10}  # by how much + and - change a number


def editor() -> None:
    runs = comparison()
    config = selected_run(runs)
    with st.sidebar:
        st.markdown(f"### Run {runs.selected} {swatch(runs.selected)}")
        st.caption(runs.labels[runs.selected])
        if len(runs.runs) > 1:
            st.toggle(
                "Apply each change to every run",
                key="everywhere",
                on_change=keep,
                help="A change of one setting is made in every run of the comparison.",
            )
        controls("placement", config)
        controls("training", config)
        more = st.expander("More", icon=":material/tune:", key="more", on_change=keep)
        if more.open:  # closed it costs nothing
            with more:
                controls("more", config)


def controls(group: Group, config: RunConfig) -> None:
    """Every setting of a group, the numbers without a control of their own last, two to a line."""
    numbers = []
    for setting in (setting for setting in SETTINGS.values() if setting.group == group):
        if setting.name in OWN_CONTROLS:
            OWN_CONTROLS[setting.name](setting, config)
        elif isinstance(setting.kind, Choice):
            titles = setting.kind.titles
            control(st.segmented_control, setting, config, options=list(titles), format_func=titles.__getitem__, required=True)
        elif isinstance(setting.kind, Switch):
            control(st.toggle, setting, config)
        else:
            numbers.append(setting)
    for place, setting in enumerate(numbers):
        if place % 2 == 0:
            columns = st.columns(2)
        with columns[place % 2]:
            number_control(setting, config)


def number_control(setting: Setting, config: RunConfig) -> None:
    if limits(setting.name).whole:
        control(st.number_input, setting, config, value=None, step=STEPS_OF_BUTTONS.get(setting.name, 1))
    else:
        control(st.number_input, setting, config, value=None, step=0.1, format="%g")


def placement_control(setting: Setting, config: RunConfig) -> None:
    placement = placement_of(config.placement)
    own = config.placement if is_design(config.placement) else Design.like(placement.block(config.layers, config.layers)).text
    control(
        st.selectbox,
        setting,
        config,
        options=[*PLACEMENTS, own],
        format_func=lambda name: "Design your own" if is_design(name) else PLACEMENTS[name].title,
    )
    st.caption(placement.summary)
    if is_design(config.placement):
        tell_omissions(config.placement)
        design_controls()


def qk_norm_control(setting: Setting, config: RunConfig) -> None:
    block = placement_of(config.placement).block(1, config.layers)
    control(st.toggle, setting, config, disabled={"query", "key"} <= block.structure.head_norms)


def depth_control(setting: Setting, config: RunConfig) -> None:
    control(st.slider, setting, config, min_value=1, max_value=max(int(host_most("layers")), config.layers, 2))


def rate_control(setting: Setting, config: RunConfig) -> None:
    control(st.select_slider, setting, config, options=sorted({*RATES, config.learning_rate}), format_func=plain_text)
    control(
        st.text_input,
        setting,
        config,
        label="Learning rate, typed",
        key="typed",
        form=plain_text,
        label_visibility="collapsed",
        icon=":material/edit:",
        placeholder="or type it, as in 3e-4",
    )


def warmup_control(setting: Setting, config: RunConfig) -> None:
    control(st.slider, setting, config, min_value=0.0, max_value=1.0, step=0.01)
    st.caption(f"{config.warmup_steps} of {config.steps} steps" if config.warmup_steps else "Constant rate, no warmup")


def design_controls() -> None:
    design = Design.parse(selected_run(comparison()).placement)

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
    before = selected_run(view).placement
    if is_design(before) and value != getattr(Design.parse(before), field):
        change(Comparison.redesign, field, value, view.selected, bool(st.session_state.get("everywhere")))


def control(
    widget: Callable[..., Any],
    setting: Setting,
    config: RunConfig,
    label: str = "",
    key: str = "edit",
    form: Callable[[Any], Any] = lambda value: value,
    **options: Any,
) -> None:
    """A widget that shows a setting of the selected run, in this form, and changes it; what no run can have is refused below it."""
    name, key = setting.name, f"{key}_{setting.name}"
    st.session_state[key] = form(getattr(config, name))
    widget(label or setting.title, key=key, on_change=take, args=(name, key, form), help=about(setting), **options)
    refusal = st.session_state.refusal
    if refusal and refusal[0] == key:
        st.error(verbatim(refusal[1]))


def take(name: str, key: str, form: Callable[[Any], Any]) -> None:
    """Makes a widget's change in the comparison, or keeps the comparison and the reason.

    What the browser had in view decides which run is meant, and whether there is a change: every widget is sent along as it was there.
    """
    value, view = st.session_state[key], seen()
    if value == form(getattr(selected_run(view), name)):
        return
    before = selected_run(view)
    try:
        change(Comparison.edit, name, value, view.selected, bool(st.session_state.get("everywhere")))
        if name == "placement":
            remember_omissions(value, before.placement, before.layers, before.layers)
    except ConfigError as error:
        keep()
        st.session_state.refusal = (key, str(error))


def selected_run(runs: Comparison) -> RunConfig:
    return runs.runs[runs.selected]


def about(setting: Setting) -> str:
    if isinstance(setting.kind, Number):
        return f"{setting.says} Allowed: {plain_text(setting.kind.least)} to {plain_text(host_most(setting.name))}."
    return setting.says


OWN_CONTROLS: dict[str, Callable[[Setting, RunConfig], None]] = {
    "placement": placement_control,
    "qk_norm": qk_norm_control,
    "layers": depth_control,
    "learning_rate": rate_control,
    "warmup": warmup_control,
}
