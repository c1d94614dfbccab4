"""What Streamlit's front end says of a widget before anybody has touched it: a server is told the state of every widget at each rerun."""

from typing import Any

from streamlit.proto.Element_pb2 import Element
from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.WidgetStates_pb2 import WidgetState


def first_state(element: Element) -> WidgetState | None:
    """The state that a widget has from its element; None where the front end says nothing of it until it is used."""
    kind = element.WhichOneof("type")
    return FIRST_STATES[kind](getattr(element, kind)) if kind in FIRST_STATES else None


def text(widget: Any) -> WidgetState:
    value = widget.value if widget.set_value else widget.default
    return WidgetState(id=widget.id, string_value=value)


def choice(widget: Any) -> WidgetState | None:
    if widget.set_value:
        return WidgetState(id=widget.id, string_value=widget.raw_value)
    return WidgetState(id=widget.id, string_value=widget.options[widget.default]) if widget.HasField("default") else None


def choices(widget: Any) -> WidgetState:
    values = widget.raw_values if widget.set_value else [widget.options[place].content for place in widget.default]
    return WidgetState(id=widget.id, string_array_value={"data": values})


def switch(widget: Any) -> WidgetState:
    return WidgetState(id=widget.id, bool_value=widget.value if widget.set_value else widget.default)


def slider(widget: Any) -> WidgetState:
    if widget.type == Slider.SELECT_SLIDER:
        values = widget.raw_value if widget.set_value else [widget.options[int(place)] for place in widget.default]
        return WidgetState(id=widget.id, string_array_value={"data": values})
    return WidgetState(id=widget.id, double_array_value={"data": widget.value if widget.set_value else widget.default})


def number(widget: Any) -> WidgetState | None:
    field = "value" if widget.set_value else "default"
    if not widget.HasField(field):
        return None
    value = getattr(widget, field)
    if widget.data_type == NumberInput.INT:
        return WidgetState(id=widget.id, int_value=int(value))
    return WidgetState(id=widget.id, double_value=value)


FIRST_STATES = {
    "button_group": choices,
    "checkbox": switch,
    "number_input": number,
    "selectbox": choice,
    "slider": slider,
    "text_input": text,
}
