"""The app without a browser, and a stand-in for what computes runs that does as a test says."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.jobs.queue import Status
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.history import History
from pages.ui.shared.results import stored_run

ROUTER = Path(__file__).parents[2] / "pages" / "router.py"


class Visit:
    """A session of the app. Everything that a visitor does is followed by a look for tracebacks."""

    def __init__(self, query: dict[str, str]) -> None:
        self.app = AppTest.from_file(ROUTER, default_timeout=60)
        self.app.query_params.update(query)
        self.app.session_state["more"] = True  # so that every control is there
        self.look()

    def look(self) -> None:
        """The page runs again, as when it polls."""
        self.app.run()
        assert [error.value for error in self.app.exception] == []
        assert len(self.app.header) == 1  # a page has been drawn at all

    @property
    def address(self) -> dict[str, str]:
        return dict(self.app.query_params)

    def go(self, **query: str) -> None:
        """The browser goes to another address of the same session, as Back does."""
        self.app.query_params.clear()
        self.app.query_params.update(query)
        self.look()

    def control(self, label: str) -> Any:
        """The widget of the sidebar with this label."""
        kinds = ("selectbox", "button_group", "toggle", "slider", "select_slider", "text_input", "number_input")
        [found] = [widget for kind in kinds for widget in self.app.sidebar.get(kind) if widget.label == label]
        return found

    def set(self, label: str, value: Any) -> None:
        self.control(label).set_value(value)
        self.look()

    def key(self, key: str) -> Any:
        """The button or menu with this key, or None."""
        return next((widget for kind in ("button", "menu_button") for widget in self.app.get(kind) if widget.key == key), None)

    def click(self, key: str, *choice: str) -> None:
        self.key(key).click(*choice)
        self.look()

    @property
    def text(self) -> str:
        """All that the page says outside of the sidebar, as it is read."""
        main = self.app.main
        said = [element.value for kind in ("header", "markdown", "caption", "info", "warning", "error") for element in main.get(kind)]
        return unescaped("\n".join([*said, *(bar.text for bar in main.get("progress"))]))

    @property
    def helps(self) -> list[str]:
        """What the texts outside of the sidebar say when they are pointed at."""
        return [element.help for element in self.app.main.get("markdown") if element.help]

    @property
    def refusals(self) -> list[str]:
        return [unescaped(error.value) for error in self.app.sidebar.error]

    @property
    def notices(self) -> list[str]:
        return [line.strip() for warning in self.app.warning for line in unescaped(warning.value).splitlines()]

    @property
    def charts(self) -> list[Any]:
        """Every chart's message to the browser: its specification, its data, and the text for those who do not see it."""
        return [chart.proto for chart in self.app.get("vega_lite_chart")]


def unescaped(markdown: str) -> str:
    return re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", markdown)


@dataclass
class Desk:
    """Takes runs in as Jobs does, and computes none of them."""

    submitted: list[RunConfig] = field(default_factory=list)
    cancelled: list[RunConfig] = field(default_factory=list)
    refusal: Exception | None = None
    watched_by_others: bool = False
    fitting: float = 1.0
    statuses: dict[RunConfig, Status] = field(default_factory=dict)
    runs: dict[RunConfig, Run] = field(default_factory=dict)

    def submit(self, config: RunConfig, viewer: str) -> None:
        if self.refusal:
            raise self.refusal
        self.submitted.append(config)
        self.put(config, "waiting")

    def status(self, config: RunConfig, viewer: str | None) -> Status | None:
        return self.statuses.get(config)

    def cancel(self, config: RunConfig, viewer: str) -> bool:
        self.cancelled.append(config)
        if not self.watched_by_others:
            self.put(config, "cancelled", self.statuses[config].history)
        return not self.watched_by_others

    def result(self, config: RunConfig) -> Run | None:
        return self.runs.get(config)

    def pace(self) -> float:
        return self.fitting

    def put(
        self, config: RunConfig, phase: Any, history: History | None = None, ahead: int = 0, left: float | None = None, says: str = ""
    ) -> None:
        """Decides where a run stands."""
        self.statuses[config] = Status(phase, history or History.empty(config.layers), ahead, left, says)

    def finish(self, run: Run, says: str = "") -> None:
        self.runs[run.config] = run
        self.put(run.config, "finished", run.history, says=says)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A server that has just been started, with nothing computed."""
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "runs"))
    stored_run.cache_clear()
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    stand_in = Desk()
    monkeypatch.setattr("pages.ui.shared.results.JOBS", stand_in)
    return stand_in


@pytest.fixture
def visit(desk: Desk) -> Callable[..., Visit]:
    """Opens an address in a new session: visit(run1="pre", view="layers")."""
    return lambda **query: Visit(query)
