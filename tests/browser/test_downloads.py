"""The files of a comparison, downloaded in a real browser."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, expect

from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.frames import LAYER_COLUMNS, STEP_COLUMNS
from core.state.address import write_run

from .conftest import Visitor

pytestmark = pytest.mark.long

# counts how often the page is run from now on
WATCH = """
() => {
    window.reruns = 0
    const app = document.querySelector('[data-testid=stApp]')
    new MutationObserver(() => { window.reruns += app.dataset.testScriptState === 'running' }).observe(app, {attributes: true})
}
"""


def test_every_kind_of_file_comes_whole_and_nothing_is_run_again(visit: Callable[..., Visitor]) -> None:
    page = visit("?view=downloads")
    page.page.evaluate(WATCH)

    def downloaded(button: Locator) -> tuple[str, bytes]:
        with page.page.expect_download() as waiting:
            button.click()
        return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()

    def button(name: str) -> Locator:
        return page.page.get_by_role("button", name=name).filter(visible=True).first

    name, data = downloaded(button("Per step, CSV"))
    steps = pd.read_csv(io.BytesIO(data))
    assert (name, list(steps.columns), len(steps)) == ("steps.csv", STEP_COLUMNS, 3 * 180)
    name, data = downloaded(button("Per layer, CSV"))
    layers = pd.read_csv(io.BytesIO(data))
    assert (name, list(layers.columns), len(layers)) == ("layers.csv", LAYER_COLUMNS, 3 * 180 * 13)
    name, data = downloaded(button("Run, Parquet"))
    assert name == f"{write_run(RunConfig())}.parquet"
    assert pq.read_table(io.BytesIO(data)).num_rows == 180
    assert Run.from_parquet(data).config == RunConfig()
    name, data = downloaded(button("Configuration, JSON"))
    assert name == f"{write_run(RunConfig())}.json"
    assert RunConfig.from_dict(json.loads(data)) == RunConfig()
    name, data = downloaded(button("PNG"))
    assert (name, data[:8]) == ("loss.png", b"\x89PNG\r\n\x1a\n")
    name, data = downloaded(button("SVG"))
    assert (name, ElementTree.fromstring(data).tag) == ("loss.svg", "{http://www.w3.org/2000/svg}svg")

    assert page.page.evaluate("window.reruns") == 0
    page.control("radio", "RMSNorm").click()  # which does run the page: so the watch works
    page.expect_query("?run1=pre~norm-rmsnorm&run2=post&run3=post~warmup-0.6666666666666666&view=downloads")
    page.settle()
    assert page.page.evaluate("window.reruns") > 0
    expect(page.page.get_by_test_id("stException")).to_have_count(0)
