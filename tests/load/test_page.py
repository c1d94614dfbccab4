"""What is read off the elements that a page sends."""

import json

import pandas as pd
import pyarrow as pa
import pytest
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.VegaLiteChart_pb2 import VegaLiteChart

from .page import Page, last_step

ROWS = [{"step": 1, "value": 4.0}, {"step": 7, "value": None}]


def stream(rows: list[dict[str, object]]) -> bytes:
    table, sink = pa.Table.from_pandas(pd.DataFrame(rows)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "chart",
    [
        VegaLiteChart(data={"data": stream(ROWS)}),
        VegaLiteChart(
            datasets=[{"name": "levels", "data": {"data": stream([{"value": 4.2}])}}, {"name": "runs", "data": {"data": stream(ROWS)}}]
        ),
        VegaLiteChart(spec=json.dumps({"data": {"values": ROWS}, "mark": "line"})),
        VegaLiteChart(spec=json.dumps({"layer": [{"data": {"name": "runs"}}], "datasets": {"runs": ROWS}})),
        VegaLiteChart(spec=json.dumps({"hconcat": [{"layer": [{"data": {"values": ROWS}}]}]})),
    ],
    ids=["inline", "by name", "inline JSON", "JSON by name", "JSON within"],
)
def test_the_last_step_is_found_wherever_a_chart_has_its_data(chart: VegaLiteChart) -> None:
    assert last_step(chart) == 7


@pytest.mark.parametrize(
    "chart", [VegaLiteChart(), VegaLiteChart(data={"data": stream([{"layer": 3}])}), VegaLiteChart(spec='{"mark": "line"}')]
)
def test_a_chart_that_is_not_against_the_step_has_none(chart: VegaLiteChart) -> None:
    assert last_step(chart) == 0


def put(page: Page, place: int, step: int, run: str, fragment: str = "") -> None:
    chart = {"data": {"data": stream([{"step": step}])}, "id": f"$$ID-hash-chart{place}"}
    page.put((0, place), Delta(new_element={"vega_lite_chart": chart}, fragment_id=fragment), run)


def test_a_page_has_a_step_once_all_its_charts_do() -> None:
    page = Page()
    assert page.steps == 0
    put(page, 0, 5, "a")
    put(page, 1, 3, "a")
    assert (page.steps, len(page.charts)) == (3, 2)
    put(page, 1, 6, "a")
    assert page.steps == 5


def test_what_a_run_did_not_send_again_is_gone_unless_it_was_not_its_to_send() -> None:
    page = Page()
    put(page, 0, 1, "a")
    put(page, 1, 1, "a", "fragment")
    put(page, 2, 1, "a", "fragment")
    put(page, 1, 2, "b", "fragment")
    page.sweep("b", ["fragment"])
    assert page.nodes.keys() == {(0, 0), (0, 1)}
    page.sweep("c", [])
    assert page.nodes == {}


def test_a_widget_is_found_by_its_key() -> None:
    page = Page()
    put(page, 1, 1, "a", "fragment")
    widget, fragment = page.widget("chart1") or (None, "")
    assert (getattr(widget, "id", ""), fragment) == ("$$ID-hash-chart1", "fragment")
    assert page.widget("chart") is None
