"""A few real browsers, each with everything that it draws: they open the first page, and watch a run together."""

import asyncio
import re
from pathlib import Path
from time import monotonic

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from core.runs.config import RunConfig

from .crowd import dispersed, first_charts, gathered, row
from .runs import address, article_run
from .server import Server, measured
from .session import PATIENCE
from .table import Row, percentiles

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]
WAIT = 1000 * PATIENCE  # Playwright counts in milliseconds
VERDICT = "mean of the last"  # in the sentence of a finished run


async def measure(server: Server, counts: tuple[int, ...] = (3,)) -> list[Row]:
    await dispersed(await gathered(server, 1, first_charts))
    async with async_playwright() as playwright, await playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES) as browser:
        return [told for count in counts for told in await seen(server, browser, count, article_run(200))]


async def seen(server: Server, browser: Browser, count: int, run: RunConfig) -> list[Row]:
    tabs = [Tab(server.address, await browser.new_page(viewport={"width": 1400, "height": 1000})) for _ in range(count)]
    with measured(server) as opening:
        opened = await asyncio.gather(*(tab.first_charts() for tab in tabs))
    with measured(server) as watching:
        watched = await asyncio.gather(*(tab.verdict(address(run)) for tab in tabs))
    for tab in tabs:
        await tab.page.close()
    return [
        row("browsers: open the first page", tabs, opening, count) | percentiles(opened),
        row("browsers: from Run to the verdict", tabs, watching, count) | percentiles(watched),
    ]


class Tab:
    """A page of a browser, and the errors that it met."""

    def __init__(self, server: str, page: Page) -> None:
        self.server, self.page, self.errors = server, page, list[str]()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self.note)

    def note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    async def first_charts(self) -> float:
        """The seconds until the first page's three charts are drawn."""
        begin = monotonic()
        await self.page.goto(self.server)
        await expect(self.page.get_by_test_id("stVegaLiteChart").locator("svg.marks, canvas.marks")).to_have_count(3, timeout=WAIT)
        return monotonic() - begin

    async def verdict(self, query: str) -> float:
        """The seconds from pressing Run until what the run has come to is there."""
        begin = await self.press_run(query)
        await expect(self.page.locator(".st-key-card1")).to_contain_text(VERDICT, timeout=WAIT)
        return monotonic() - begin

    async def press_run(self, query: str) -> float:
        """Opens an address and presses Run; the moment of pressing."""
        await self.page.goto(f"{self.server}/?{query}")
        return await self.press("Run Shortcut")

    async def press(self, name: str) -> float:
        button = self.page.get_by_role("button", name=re.compile(f"^{name}")).filter(visible=True)
        await expect(button).to_be_enabled(timeout=WAIT)
        begin = monotonic()
        await button.click(timeout=WAIT)
        return begin
