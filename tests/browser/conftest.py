"""A server with a cache of its own, started once, from a folder that is not the app's, and visitors whose browsers report every error and
every request elsewhere.
"""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 180_000  # ms: a machine that is busy with other things is slow, not wrong

expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True, slots=True)
class Server:
    address: str
    process: "subprocess.Popen[bytes]"
    runs: Path  # what it has computed


class Visitor:
    """A page in a browser of its own."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.server = page, address
        self.errors: list[str] = []
        self.strangers: list[str] = []  # requests that leave the server
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self.hear)
        page.on("request", lambda request: self.note(request.url))

    def hear(self, message: ConsoleMessage) -> None:
        probe = re.search(r"/\w+/_stcore/", message.location["url"])  # Streamlit looks for its server below a page's address first
        if message.type == "error" and not probe:
            self.errors.append(message.text)

    def note(self, url: str) -> None:
        if not url.startswith((self.server, "data:", "blob:")):
            self.strangers.append(url)

    def open(self, query: str = "") -> "Visitor":
        self.page.goto(f"{self.server}/{query}")
        self.settle()
        return self

    def settle(self) -> None:
        """Waits until the page has been drawn to its end and the server has nothing more to say."""
        expect(self.page.get_by_role("tab")).to_have_count(4)
        expect(self.page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_visible()
        expect(self.page.locator("[data-stale=true]")).to_have_count(0)

    def query(self) -> str:
        return self.page.url.removeprefix(self.server + "/")

    def expect_query(self, query: str) -> None:
        expect(self.page).to_have_url(f"{self.server}/{query}")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=re.compile(f"^{name}")).filter(visible=True)

    def control(self, role: Any, name: str, where: str = "stSidebar") -> Locator:
        """A visible widget; one that has just been replaced stays around unseen until the page is complete."""
        return self.page.get_by_test_id(where).get_by_role(role, name=re.compile(f"^{name}")).filter(visible=True)

    def step(self) -> Locator:
        """The slider of the layer charts."""
        return self.control("slider", "Step", "stMain")

    def card(self, slot: int = 1) -> Locator:
        return self.page.locator(f".st-key-card{slot}")

    def charts(self) -> Locator:
        """The charts that are drawn, as pictures of lines or of dots."""
        return self.page.get_by_test_id("stVegaLiteChart").locator("svg.marks, canvas.marks")

    def lines(self, chart: int = 0) -> Locator:
        """The curves of a chart."""
        return self.charts().nth(chart).locator("path[aria-roledescription='line mark']")


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not CHROMIUM.exists() and not os.environ.get("CI"):
        pytest.skip(f"{CHROMIUM} does not exist")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, runs, elsewhere = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.address=127.0.0.1", f"--server.port={port}"]
    with subprocess.Popen(command, cwd=elsewhere, env=os.environ | {"NORMLAB_CACHE": str(runs)}, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_healthy(address, process)
            yield Server(address, process, runs)
        finally:
            process.terminate()


def wait_until_healthy(address: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended by itself"
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"no server at {address} after {PATIENCE / 1000:g} s")


@pytest.fixture(scope="package")  # not longer: while Playwright is there, other tests in this process would find an event loop running
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES) as chromium:
        yield chromium


@pytest.fixture
def visit(server: Server, browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Opens an address in a browser that has never been here. When the test ends, none may have met an error or asked anybody else."""
    visitors: list[Visitor] = []

    def opened(query: str = "", **options: Any) -> Visitor:
        context = browser.new_context(**({"viewport": {"width": 1400, "height": 1000}} | options))
        visitors.append(Visitor(context.new_page(), server.address))
        return visitors[-1].open(query)

    yield opened
    for visitor in visitors:
        visitor.page.context.close()
        assert visitor.errors == []
        assert visitor.strangers == []
