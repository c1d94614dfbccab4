"""A session's comparison, kept equal to the address: either may change, and the other follows."""

import uuid
from collections.abc import Callable

import streamlit as st

from core.state.comparison import SLOTS, Comparison

ADDRESS = {*(f"run{slot}" for slot in SLOTS), "edit", "hide", "view", "step", "map"}


def comparison() -> Comparison:
    current: Comparison = st.session_state.comparison
    return current


def change(edit: Callable[..., Comparison], *arguments: object) -> None:
    """For callbacks: replaces the comparison by what `edit` makes of it, and drops what was said about the last change."""
    keep()
    st.session_state.comparison = edit(comparison(), *arguments)
    st.session_state.notices = st.session_state.faults = []
    st.session_state.refusal = None


def keep() -> None:
    """The page's next run keeps the comparison: a browser that acts quickly sends an address older than the comparison with its act."""
    st.session_state.kept = True


def leave() -> None:
    """At the top of another page: the comparison is kept for when its visitor comes back."""
    st.session_state.elsewhere = True


def in_address() -> dict[str, str]:
    """Our part of the address that the browser had when it asked for this run of the page."""
    return {name: value for name, value in st.query_params.items() if name in ADDRESS or name.startswith("run")}


def seen() -> Comparison:
    """For callbacks: the comparison that the browser had in view, which may be older than the session's."""
    return Comparison.from_query(in_address())[0]


def read_address() -> None:
    """At the top of a page: takes over an address that was opened or gone back to."""
    found = in_address()
    returned = st.session_state.pop("elsewhere", False) and not found  # by the navigation, which opens a page without an address
    kept = st.session_state.pop("kept", False) or returned
    if "comparison" not in st.session_state or (found != st.session_state.address and not kept):
        st.session_state.comparison, st.session_state.notices = Comparison.from_query(found)
        st.session_state.address, st.session_state.refusal = found, None


def write_address() -> None:
    """At the end of a page: a browser that has the address has the page to it, too."""
    found, before, address = in_address(), st.session_state.address, comparison().to_query()
    st.session_state.address = address
    if not found == before == address:
        others = {name: value for name, value in st.query_params.items() if name not in found}
        st.query_params.from_dict(others | address)  # at once: each writing is an entry of the browser's history


def viewer() -> str:
    """Who this session is to the queue."""
    name: str = st.session_state.setdefault("viewer", uuid.uuid4().hex)
    return name
