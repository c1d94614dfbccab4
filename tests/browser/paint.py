"""How long a visitor waits: `python -m tests.browser.paint [REPEATS]`, with nothing else running.

Seconds from opening the address until the first chart is drawn, in a browser that has never been there: as the first visitor of a server
that has just been started, and as a later one. Then, on the server's side alone, the seconds for another run that is known already, and how
much all charts of each view weigh.
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from playwright.sync_api import Browser, sync_playwright
from streamlit.testing.v1 import AppTest

from core.runs.presets import ARTICLE
from core.state.comparison import VIEWS, Comparison
from tests.browser.conftest import CHROMIUM, ROOT, SWITCHES, wait_until_healthy

ADDRESS, PORT = "http://127.0.0.1", 8577


@contextmanager
def served(cache: str) -> Iterator[None]:
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.address=127.0.0.1", f"--server.port={PORT}"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"NORMLAB_CACHE": cache}, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_healthy(f"{ADDRESS}:{PORT}", process)
            yield
        finally:
            process.terminate()


def first_chart_seconds(browser: Browser) -> float:
    page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    started = time.perf_counter()
    page.goto(f"{ADDRESS}:{PORT}", wait_until="commit")
    page.get_by_test_id("stVegaLiteChart").locator("svg.marks, canvas.marks").first.wait_for()
    seconds = time.perf_counter() - started
    page.context.close()
    return seconds


def first_charts(repeats: int, cache: str) -> tuple[list[float], list[float]]:
    cold, warm = [], []
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES) as browser:
        browser.new_context().new_page().goto("about:blank")
        for _ in range(repeats):
            with served(cache):
                cold.append(first_chart_seconds(browser))
                warm += [first_chart_seconds(browser) for _ in range(3)]
    return cold, warm


def switches(repeats: int) -> tuple[list[float], dict[str, int]]:
    """Seconds of the page's script after each change of the run that is looked at, and bytes of all charts by view."""
    app = AppTest.from_file(ROOT / "pages" / "router.py", default_timeout=60)
    seconds, weights = [], {}
    for view in VIEWS:
        for config in ARTICLE * repeats:
            app.query_params.clear()
            app.query_params.update(Comparison.of([config], view).to_query())
            started = time.perf_counter()
            app.run()
            seconds.append(time.perf_counter() - started)
        app.query_params.clear()
        app.query_params.update(Comparison.of(ARTICLE, view).to_query())
        app.run()
        weights[view] = sum(chart.proto.ByteSize() for chart in app.get("vega_lite_chart"))
    return seconds[len(ARTICLE) :], weights  # the first have loaded what is loaded once


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NORMLAB_CACHE"] = cache
        cold, warm = first_charts(repeats, cache)
        with warnings.catch_warnings(action="ignore"):
            changed, weights = switches(repeats)
    for name, seconds in {"first chart, first visitor": cold, "first chart, a later visitor": warm, "another known run": changed}.items():
        print(f"{name}: {median(seconds):.2f} s by the median of {len(seconds)}, {min(seconds):.2f} to {max(seconds):.2f}")
    for view, weight in weights.items():
        print(f"charts of {VIEWS[view]}, the article's three runs: {weight / 1000:.0f} kB")


if __name__ == "__main__":
    main()
