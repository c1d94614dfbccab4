"""How often a page asks for news."""

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Desk
from hypothesis import given
from hypothesis import strategies as st
from made_run import made_run

from core.jobs.queue import PAUSES
from core.runs import store
from core.runs.config import RunConfig
from core.state.address import write_run
from pages.ui.shared import polling
from pages.ui.shared.results import Result

PRE = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=20)
Visits = Callable[..., Any]


def entries(desk: Desk, phase: str = "training") -> list[Result]:
    desk.put(PRE, phase)
    return [Result(1, "Pre-Norm", PRE, None, desk.status(PRE, None))]


@given(before=st.floats(1, 5), fitting=st.floats(1, 5))
def test_a_page_keeps_its_pace_until_it_no_longer_fits(before: float, fitting: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        desk = Desk(fitting=fitting)
        patch.setattr("pages.ui.shared.results.JOBS", desk)
        patch.setattr("pages.ui.shared.polling.running", lambda entries: [PRE])
        assert polling.seconds(entries(desk), None) == fitting
        chosen = polling.seconds(entries(desk), before)
    assert chosen in (before, fitting)
    assert chosen / 1.6 < fitting < chosen * 1.6
    assert chosen < PAUSES * fitting, "else who waits for the next answer would not count as watching"


def test_a_finished_comparison_asks_for_nothing_and_one_that_lacks_a_run_asks_now_and_then(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pages.ui.shared.polling.running", lambda entries: [])
    assert polling.seconds([Result(1, "Pre-Norm", PRE, made_run(PRE), None)], 1.0) is None
    assert polling.seconds([Result(1, "Pre-Norm", PRE, None, None)], None) == 5


def test_a_page_says_when_its_figures_are_old(visit: Visits, desk: Desk) -> None:
    page = visit(run1=write_run(PRE))
    desk.put(PRE, "training", made_run(PRE).history)
    for desk.fitting, said in ((2.0, False), (4.0, True)):
        page.look()
        assert ("Many are watching, so what is shown may be 4 s old." in page.text) == said


def test_a_run_that_somebody_else_has_finished_appears(visit: Visits) -> None:
    page = visit(run1=write_run(PRE))
    assert "Not computed yet" in page.text
    store.save(made_run(PRE))
    page.look()
    assert "mean of the last" in page.text
