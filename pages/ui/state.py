"""A session's comparison, kept equal to the address: either may change, and the other follows."""

import uuid
from collections.abc import Callable

import streamlit as st

from core.comparison import SLOTS, Comparison

ADDRESS = {*(f"run{slot}" for slot in SLOTS), "edit", "hide", "view", "step", "map"}


def comparison() -> Comparison:
    current: Comparison = st.session_state.comparison
    return current


def change(edit: Callable[..., Comparison], *arguments: object) -> None:
    """For callbacks: replaces the comparison by what `edit` makes of it, and drops what was said about the last change."""
    st.session_state.comparison = edit(comparison(), *arguments)
    st.session_state.notices = st.session_state.faults = []
    st.session_state.refusal = None


def follow_address() -> None:
    """At the top of a page: takes over an address that was opened or gone back to, else writes the comparison into it."""
    found = {name: value for name, value in st.query_params.items() if name in ADDRESS or name.startswith("run")}
    if "comparison" not in st.session_state or found != st.session_state.address:
        st.session_state.comparison, st.session_state.notices = Comparison.from_query(found)
        st.session_state.refusal = None
    address = comparison().to_query()
    for name in found.keys() - address.keys():
        del st.query_params[name]
    for name, value in address.items():
        if found.get(name) != value:
            st.query_params[name] = value
    st.session_state.address = address


def viewer() -> str:
    """Who this session is to the queue."""
    name: str = st.session_state.setdefault("viewer", uuid.uuid4().hex)
    return name
