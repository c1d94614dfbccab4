"""Runs in a real browser: from the click to the verdict, through a reload, a cancellation, and a line that is slow to answer."""

import re
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from .conftest import Server, Visitor

Visit = Callable[..., Visitor]
SHORT = "?run1=pre~layers-2~width-32~heads-2~length-16~batch-8~steps-5000"  # some seconds
LONG = "?run1=pre~layers-12~steps-5000"  # longer than any test waits
# A run is compiled and trained at the lowest priority, after everything else that the machine does.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
STEP = re.compile(r"Training · step ([1-9]\d*) of 5000")


def step_of(page: Visitor) -> int:
    """The step at which the run is, once it trains."""
    expect(page.card()).to_contain_text(STEP)
    found = STEP.search(page.card().inner_text())
    return int(found[1]) if found else 5000


def cancel(page: Visitor) -> None:
    page.button("Cancel").click()
    expect(page.card()).to_contain_text("Cancelled")


def test_a_run_from_click_through_growing_curves_to_the_verdict(visit: Visit) -> None:
    page = visit(SHORT)
    expect(page.charts()).to_have_count(0)
    page.button("Run Shortcut").click()
    expect(page.card()).to_contain_text(STEP)
    expect(page.lines()).to_have_count(1)
    expect(page.page.locator("svg.marks")).to_have_count(3)
    page.page.evaluate("document.querySelectorAll('svg.marks').forEach(chart => { chart.seen = true })")
    early = page.lines().get_attribute("d")
    expect(page.lines()).not_to_have_attribute("d", early or "")
    kept = page.page.evaluate("[...document.querySelectorAll('svg.marks')].map(chart => chart.seen === true)")
    assert kept == [True] * 3, "a chart that is drawn anew flickers"
    expect(page.card()).to_contain_text("mean of the last")
    expect(page.button("Cancel")).to_have_count(0)
    expect(page.button("Run Shortcut")).to_be_disabled()
    page.open(SHORT)
    expect(page.card()).to_contain_text("mean of the last")
    expect(page.lines()).to_have_count(1)


def test_ctrl_enter_runs(visit: Visit) -> None:
    page = visit(SHORT.replace("steps-5000", "steps-3"))
    expect(page.button("Run Shortcut")).to_be_enabled()
    page.page.keyboard.press("Control+Enter")
    expect(page.card()).to_contain_text("mean of the last")


def test_a_reload_in_mid_run_and_a_second_viewer_lose_nothing_and_cancel_frees_the_cpu(visit: Visit, server: Server) -> None:
    page = visit(LONG)
    page.button("Run Shortcut").click()
    before = step_of(page)
    page.page.reload()
    assert step_of(page) >= before
    second = visit(LONG)
    assert step_of(second) >= before
    second.page.context.close()
    page.page.wait_for_timeout(6000)  # until the server no longer takes the closed browser and the page before the reload for viewers
    process = psutil.Process(server.process.pid)
    page.button("Cancel").click()
    page.page.wait_for_timeout(2000)
    started = process.cpu_times()
    page.page.wait_for_timeout(1000)
    ended = process.cpu_times()
    assert ended.user + ended.system - started.user - started.system < 0.4
    expect(page.card()).to_contain_text(re.compile(r"Cancelled\s*Stopped after step \d+ of 5000"))
    expect(page.lines()).to_have_count(1)


def test_a_run_that_was_removed_while_it_trained_is_told_of_until_it_ends(visit: Visit) -> None:
    page = visit(f"{SHORT}~seed-3&{LONG[1:].replace('run1', 'run2')}")
    page.button("Run Shortcut").click()
    expect(page.card()).to_contain_text(STEP)
    page.page.locator(".st-key-act1 button:visible").click()
    page.page.get_by_text("Remove", exact=True).click()
    expect(page.page.get_by_text("A run that you started and then changed or removed is still being computed.")).to_be_visible()
    expect(page.page.get_by_text("Leaving the page or reloading it loses nothing.")).to_be_visible()
    expect(page.card(2)).to_contain_text(re.compile("Starting|Compiling|Training"))
    page.button("Cancel").click()
    expect(page.card(2)).to_contain_text("Cancelled")


class SlowLine:
    """What the server says, held back at will."""

    def __init__(self, page: Page) -> None:
        self.held: list[Any] | None = None
        page.route_web_socket(re.compile("_stcore/stream"), self.connect)

    def connect(self, browser: WebSocketRoute) -> None:
        self.browser = browser
        server = browser.connect_to_server()
        server.on_message(lambda message: browser.send(message) if self.held is None else self.held.append(message))

    def release(self) -> None:
        held, self.held = self.held or [], None
        for message in held:
            self.browser.send(message)


def rmsnorm(page: Visitor) -> None:
    page.control("radio", "RMSNorm").click()


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (lambda page: page.control("slider", "Depth").press("ArrowRight"), "?run1=pre~norm-rmsnorm~layers-3&run2=none"),
        (lambda page: page.control("slider", "Learning rate").press("ArrowRight"), "?run1=pre~norm-rmsnorm~layers-2~lr-0.003&run2=none"),
        (lambda page: page.page.locator(".st-key-edit2 button:visible").click(), "?run1=pre~norm-rmsnorm~layers-2&run2=none&edit=2"),
    ],
)
def test_a_second_change_while_the_page_has_not_answered_the_first_keeps_both(
    visit: Visit, first: Callable[[Visitor], None], expected: str
) -> None:
    page = visit()
    line = SlowLine(page.page)
    page.open("?run1=pre~layers-2&run2=none")
    line.held = []
    first(page)
    page.page.wait_for_timeout(1500)
    rmsnorm(page)
    page.page.wait_for_timeout(1500)
    line.release()
    page.expect_query(expected)
