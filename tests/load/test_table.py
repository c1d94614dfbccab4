"""The table and its verdicts."""

import math

from .table import Figure, broken, markdown, percentiles


def test_percentiles_are_values_that_occurred_so_that_what_never_came_shows() -> None:
    assert percentiles([*range(1, 95), *[math.inf] * 6]) == {"median s": Figure(50), "95 % s": Figure(math.inf)}
    assert percentiles([3.0], 1.0, 2.0) == {"median s": Figure(3.0, 1.0), "95 % s": Figure(3.0, 2.0)}


def test_a_figure_shows_its_demand_and_stands_out_where_it_does_not_meet_it() -> None:
    assert str(Figure(0.5, most=1.0)) == "0.5 (≤ 1)"
    assert str(Figure(0.5, least=0.75)) == "**0.5 (≥ 0.75)**"
    assert str(Figure(math.inf, most=2.0)) == "**inf (≤ 2)**"
    assert str(Figure(1234.6)) == "1235"
    assert not Figure(math.nan, most=1.0).met


def test_the_table_has_the_columns_that_have_something_and_says_where_each_activity_breaks() -> None:
    rows = [
        {"activity": "open", "sessions": 40, "95 % s": Figure(2.0, 3.0)},
        {"activity": "open", "sessions": 200, "95 % s": Figure(20.0, 8.0)},
        {"activity": "open", "sessions": 100, "95 % s": Figure(9.0, 8.0), "errors": Figure(0, 0)},
    ]
    assert markdown(rows).splitlines()[:3] == [
        "| activity | sessions | 95 % s | errors |",
        "| --- | ---: | ---: | ---: |",
        "| open | 40 | 2 (≤ 3) |  |",
    ]
    assert broken(rows) == ["open at 100 sessions: 95 % s 9 (≤ 8)"]
