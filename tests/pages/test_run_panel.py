"""Running: what Run starts, what a card says while its run is on its way, and how it ends."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_run import made_run

from core.data_tasks import TASKS
from core.jobs.queue import Jobs, JobsError, QueueFull
from core.runs import store
from core.runs.config import RunConfig
from core.runs.history import History
from core.runs.outcome import RULE
from core.runs.quantities import LAYERS, QUANTITIES
from core.runs.settings import ConfigError
from core.state.address import write_run
from core.state.comparison import VIEWS

PRE, POST, NONE = (RunConfig(placement=name, layers=2, width=16, heads=2, length=8, batch=4, steps=20) for name in ("pre", "post", "none"))
PAIR = {"run1": write_run(PRE), "run2": write_run(POST)}
Visits = Callable[..., Any]
GUESSING = TASKS["progression"].guessing


def part(config: RunConfig, steps: int) -> History:
    """The first steps of a run."""
    return made_run(replace(config, steps=steps)).history


def drawn(chart: Any) -> pa.Table:
    """The data of a chart that has one value per run and step."""
    tables = [pa.ipc.open_stream(dataset.data.data).read_all() for dataset in chart.datasets]
    return next(table for table in tables if {"run", "step", "value"} <= set(table.column_names))


def test_run_starts_what_is_not_known_and_nothing_else(visit: Visits, desk: Any) -> None:
    store.save(made_run(PRE))
    page = visit(**PAIR, run3=write_run(NONE))
    page.click("run")
    assert desk.submitted == [POST, NONE]
    assert page.key("run") is None
    assert page.key("cancel")
    page.look()
    assert desk.submitted == [POST, NONE]


def test_the_estimate_counts_equal_runs_once_and_says_nothing_where_nothing_is_known(
    visit: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.jobs.estimate.seconds", lambda config: {PRE: 50.0, POST: 100.0}[config])
    assert "2 runs are not computed yet: about 2 min here" in visit(**PAIR, run3=write_run(PRE)).text
    monkeypatch.setattr("core.jobs.estimate.seconds", lambda config: math.nan)
    assert "2 runs are not computed yet." in visit(**PAIR).text


def test_a_run_on_its_way_has_a_phase_its_steps_the_time_left_and_curves_that_grow(visit: Visits, desk: Any) -> None:
    page = visit(run1=write_run(PRE))
    page.click("run")
    desk.put(PRE, "waiting", ahead=2, left=100)
    page.look()
    assert "Waiting · 2 ahead · 2 min left" in page.text
    assert page.charts == []
    desk.put(PRE, "compiling", left=40)
    page.look()
    assert "Compiling · 40 s left" in page.text
    for steps in (1, 7, 15):
        desk.put(PRE, "training", part(PRE, steps), left=20 - steps)
        page.look()
        assert f"Training · step {steps} of 20 · {20 - steps} s left" in page.text
        assert page.app.get("progress")[0].value == steps * 5
        assert [drawn(chart)["step"].to_pylist() for chart in page.charts] == [list(range(1, steps + 1))] * 3
    assert "Leaving the page or reloading it loses nothing" in page.text
    desk.finish(made_run(PRE))
    page.look()
    assert "mean of the last" in page.text
    assert "All runs shown are finished" in page.text
    assert len(drawn(page.charts[0])) == 20


def test_a_reloaded_page_shows_the_run_that_goes_on(visit: Visits, desk: Any) -> None:
    visit(**PAIR).click("run")
    desk.put(PRE, "training", part(PRE, 9), left=5)
    page = visit(**PAIR)
    assert "Training · step 9 of 20" in page.text
    assert page.key("cancel")
    assert len(page.charts) == 3


def test_while_one_run_trains_another_one_can_be_started(visit: Visits, desk: Any) -> None:
    desk.put(PRE, "training", part(PRE, 9))
    page = visit(**PAIR)
    assert page.key("cancel")
    page.click("run")
    assert desk.submitted == [POST]


def test_cancel_stops_what_is_on_its_way_and_run_starts_it_again(visit: Visits, desk: Any) -> None:
    page = visit(**PAIR)
    page.click("run")
    desk.put(POST, "training", part(POST, 9))
    page.click("cancel")
    assert desk.cancelled == [PRE, POST]
    assert page.key("cancel") is None
    assert "Cancelled" in page.text
    assert "Stopped after step 9 of 20. **Run** starts it again." in page.text
    assert len(drawn(page.charts[0])) == 9
    page.click("run")
    assert desk.submitted == [PRE, POST, PRE, POST]


def test_cancel_reaches_a_run_that_was_changed_after_it_was_started(visit: Visits, desk: Any) -> None:
    page = visit(run1=write_run(PRE))
    page.click("run")
    page.set("Steps", 30)
    assert desk.submitted == [PRE]
    page.click("cancel")
    assert desk.cancelled == [PRE]
    assert page.key("cancel") is None


def test_a_run_that_others_watch_goes_on_and_the_page_says_so(visit: Visits, desk: Any) -> None:
    desk.watched_by_others = True
    page = visit(run1=write_run(PRE))
    page.click("run")
    page.click("cancel")
    [notice] = page.notices
    assert "Pre-Norm" in notice
    assert "goes on" in notice
    page.look()
    assert page.notices == [notice]


@pytest.mark.parametrize(
    "refusal",
    [
        QueueFull("The queue is full: 40 runs are waiting. Please try again a little later."),
        ConfigError("steps is 20; this machine's host allows at most 10 (NORMLAB_MAX_STEPS)."),
        JobsError("NORMLAB_SCHEDULER is 'tcp://*:1'; no Dask scheduler answers there."),
    ],
)
def test_a_run_that_is_not_taken_in_keeps_its_settings_and_has_one_sentence(visit: Visits, desk: Any, refusal: Exception) -> None:
    desk.refusal = refusal
    page = visit(run1=write_run(PRE))
    page.click("run")
    [notice] = page.notices
    assert notice.endswith(str(refusal))
    assert page.address == {"run1": write_run(PRE)}
    assert not page.key("run").disabled
    page.look()
    assert page.notices == [notice]
    page.set("Steps", 10)
    assert page.notices == []


def test_a_failed_run_says_why_and_can_be_started_again(visit: Visits, desk: Any) -> None:
    desk.put(PRE, "failed", says="The run failed: <class 'float'> has no *room*.")
    page = visit(run1=write_run(PRE))
    assert "Failed" in page.text
    assert "The run failed: <class 'float'> has no *room*." in page.text
    page.click("run")
    assert desk.submitted == [PRE]


def test_a_finished_run_that_could_not_be_written_is_shown_and_says_so(visit: Visits, desk: Any) -> None:
    desk.finish(made_run(PRE), says="The run could not be written to /runs: No space left on device. It is kept until the app stops.")
    page = visit(run1=write_run(PRE))
    assert "mean of the last" in page.text
    assert "No space left on device" in page.text
    assert len(page.charts) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("losses", [[4.1, 5.0, 60.0], []])
def test_a_diverged_run_is_a_result_and_marked_everywhere(visit: Visits, losses: list[float], value: float) -> None:
    store.save(made_run(PRE, loss_s=[*losses, value]))
    last = len(losses) + 1
    for view, charts in {"curves": 3, "layers": len(LAYERS), "maps": 1, "downloads": 0}.items():
        page = visit(run1=write_run(PRE), view=view)
        assert f"Loss {'became NaN' if np.isnan(value) else 'left the range of float32'} at step {last}" in page.text
        assert "Diverged" in page.text
        assert "All runs shown are finished" in page.text
        assert len(page.charts) == charts
        if view == "curves":
            kind = "not a number" if np.isnan(value) else "beyond float32"
            assert f"Not drawn on the log axis: 1 {kind} of Pre-Norm" in page.text
            for chart in page.charts:
                tables = [pa.ipc.open_stream(dataset.data.data).read_all() for dataset in chart.datasets]
                assert ["✕ diverged"] in [table["name"].to_pylist() for table in tables if "name" in table.column_names]
                assert all(value is None or np.isfinite(value) for value in drawn(chart)["value"].to_pylist())


@pytest.mark.parametrize(
    ("losses", "word"),
    [
        ([0.01] * 20, "Learned"),
        (list(np.linspace(GUESSING, 1, 20)), "Still learning"),
        ([1.0] * 20, "Plateau"),
        ([GUESSING] * 20, "Stuck"),
        ([251.0] * 20, "Worse than guessing"),
        ([1.0] * 10 + [2.4] * 10, "Lost it"),
        ([4.0, math.inf], "Diverged"),
    ],
)
def test_a_card_has_the_outcome_in_a_word(visit: Visits, losses: list[float], word: str) -> None:
    store.save(made_run(PRE, loss_s=losses))
    page = visit(run1=write_run(PRE))
    assert f"{word}]" in page.text
    assert RULE in page.helps


def test_a_run_from_click_to_verdict(visit: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs()
    monkeypatch.setattr("pages.ui.shared.results.JOBS", jobs)
    try:
        page = visit(run1=write_run(PRE))
        page.click("run")
        deadline = time.monotonic() + 200
        while page.key("cancel") and time.monotonic() < deadline:
            time.sleep(0.2)
            page.look()
        assert "mean of the last" in page.text
        assert "All runs shown are finished" in page.text
        run = store.load(PRE)
        assert run
        assert drawn(page.charts[1])["value"].to_pylist() == run.history["gradient_norm"].tolist()
    finally:
        jobs.close()


@pytest.mark.parametrize("view", VIEWS)
def test_what_an_older_file_lacks_is_said_and_run_records_it(visit: Visits, desk: Any, view: str) -> None:
    run = made_run(PRE)
    later = {name: quantity for name, quantity in QUANTITIES.items() if quantity.since > 1}
    store.save(replace(run, history=History({name: run.history[name] for name in QUANTITIES if name not in later})))
    desk.runs[PRE] = store.load(PRE)
    page = visit(run1=write_run(PRE), view=view, map=next(iter(later)))
    assert "1 run is not recorded in full" in page.text
    assert f"Computed before the lab recorded: {', '.join(quantity.title.lower() for quantity in later.values())}." in page.text
    if view in ("layers", "maps"):
        assert page.text.count("Not recorded when it was computed: Pre-Norm") == (len(later) if view == "layers" else 1)
    page.click("run")
    assert desk.submitted == [PRE]
    assert "Computed before" not in page.text
    store.save(run)
    desk.finish(run)
    page.look()
    assert "All runs shown are finished" in page.text
