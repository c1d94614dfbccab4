"""What charts share: a specification for all that look alike, and tables for all that show the same."""

from functools import partial

import altair as alt
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_run import made_history

from core.data_tasks import TASKS
from core.figures.axes import Line, axis_frame
from core.figures.curves import curve_chart, curve_spec
from core.figures.figure import Figure, stream
from core.figures.layers import layer_chart
from core.figures.maps import heat_maps
from core.runs.history import History
from core.runs.quantities import CURVES, LAYERS

STEPS = 40
WHOLE = made_history(partial(np.random.default_rng(0).lognormal, 0, 2), STEPS, 3)
OTHER = made_history(partial(np.random.default_rng(1).lognormal, 0, 2), STEPS, 3)


def growing(steps: int) -> list[Line]:
    """A run of STEPS that has come this far, beside one that is finished."""
    so_far = History({name: column[:steps] for name, column in WHOLE.columns.items()})
    return [
        Line(1, "growing", so_far, TASKS["progression"], STEPS),
        Line(2, "finished", OTHER, TASKS["progression"]),
    ]


def charts(lines: list[Line]) -> list[Figure]:
    curves = [curve_chart(lines, name) for name in CURVES]
    layers = [layer_chart(lines, name, max(len(line.history) for line in lines)) for name in LAYERS]
    return [*curves, *layers, *heat_maps(lines, "stream_rms")]


def test_while_a_run_grows_tables_change_and_nothing_else() -> None:
    first, *later = [charts(growing(steps)) for steps in (1, 2, 17, STEPS)]
    for then in later:
        for before, now in zip(first, then, strict=True):
            assert now.spec is before.spec
            assert now.tables.keys() == before.tables.keys()
    assert later[0][0].tables != later[1][0].tables


def test_the_same_runs_have_the_same_tables_without_making_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = growing(7)
    before = charts(lines)
    monkeypatch.setattr("core.figures.curves.curve_frame", lambda *_: pytest.fail("made again"))
    for chart, again in zip(before, charts([*lines]), strict=True):
        assert all(again.tables[name] is table for name, table in chart.tables.items())


def test_a_run_computed_anew_has_its_own_tables() -> None:
    first, second = (Line(1, "run", made_history(partial(np.full, fill_value=value), 4, 2), TASKS["progression"]) for value in (1.0, 2.0))
    assert curve_chart([first], "loss").tables != curve_chart([second], "loss").tables


def test_nothing_that_altair_is_set_to_by_others_matters() -> None:
    curve_spec.cache.clear()
    expected = curve_chart(growing(5), "loss").whole()
    curve_spec.cache.clear()
    alt.data_transformers.register("elsewhere", lambda data: {"name": "kept elsewhere"})
    with alt.data_transformers.enable("elsewhere"):
        assert curve_chart(growing(5), "loss").whole() == expected


def test_a_table_says_that_a_value_is_missing() -> None:
    assert Figure({}, {"a": stream(pd.DataFrame({"value": [1.0, np.nan]}))}).whole() == {
        "datasets": {"a": [{"value": 1.0}, {"value": None}]}
    }


@given(st.lists(st.floats(1e-37, 1e38), min_size=1), st.booleans())
def test_an_axis_reaches_over_all_values_and_has_a_few_ticks_within(values: list[float], log: bool) -> None:
    frame = axis_frame(np.array([*values, np.nan, np.inf]), log)
    least, most, *ticks = frame.value
    assert least <= min(values)
    assert max(values) <= most
    assert all(least <= tick <= most for tick in ticks)
    assert list(np.diff(ticks) > 0) == [True] * (len(ticks) - 1)
    assume(max(values) / min(values) < 1e9)  # powers of ten alone may be more
    assert 1 <= len(ticks) <= 12
