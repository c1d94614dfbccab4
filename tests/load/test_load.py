"""A small load, of which only counts are held: a busy machine is slow, not wrong."""

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from playwright.async_api import async_playwright, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from core.jobs.queue import SLOWEST

from . import downloading, leaving, opening, toggling, watching
from .browsers import CHROMIUM, SWITCHES, WAIT, Tab
from .crowd import drawn, gathered
from .runs import address, article_run, tiny_run
from .server import Server, served
from .session import Session
from .table import Figure, Row

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
some_seconds = partial(tiny_run, 5000)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as server:
        yield server
        assert server.faults == []


def counts(row: Row) -> dict[str, float]:
    return {name: figure.value for name in ("trainings", "errors", "lost") if isinstance(figure := row.get(name), Figure)}


def test_many_who_press_run_in_the_same_moment_get_one_training_and_all_of_its_points(server: Server) -> None:
    _, [ticks, *_], _ = asyncio.run(watching.watch(server, 8, some_seconds()))
    assert counts(ticks) == {"trainings": 1, "errors": 0, "lost": 0}


def test_who_comes_back_to_a_run_loses_nothing(server: Server) -> None:
    [row] = asyncio.run(leaving.measure(server, (6,), some_seconds))
    assert counts(row) == {"errors": 0, "lost": 0}
    assert all(sum(steps == 0 for _, steps in record) == 1 for record in server.record.values())
    assert set(server.runs) == set(server.record)


def test_all_who_open_toggle_and_download_are_answered(server: Server) -> None:
    for measure in (opening.measure, partial(toggling.measure, every=2.0), downloading.measure):
        [row] = asyncio.run(measure(server, (8,)))
        assert counts(row) == {"errors": 0, "lost": 0}


def test_a_server_that_is_told_to_stop_ends_in_order_though_a_run_is_being_watched() -> None:
    done, cut_off = tiny_run(), article_run()

    async def watch_until_the_end(server: Server) -> int:
        [session] = await gathered(server, 1, drawn, address(done, cut_off))
        await session.timed(session.press("run"), lambda session: done.key in server.runs and session.steps > 0)
        server.process.terminate()
        status: int = await asyncio.to_thread(server.process.wait, 30)
        await session.leave()
        return status

    with served() as server:
        assert asyncio.run(watch_until_the_end(server)) == -signal.SIGTERM  # which is raised again once all has ended
        assert server.faults == []
        assert [path.name for path in (server.folder / "runs").iterdir()] == [f"{done.key}.parquet"]


@pytest.mark.skipif(not CHROMIUM.exists() and not os.environ.get("CI"), reason=f"{CHROMIUM} does not exist")
def test_a_session_says_what_a_browser_says(server: Server) -> None:
    """When it opens the page, presses Run, polls, and presses Cancel."""
    browser, session = asyncio.run(said_by_a_browser(server)), asyncio.run(said_by_a_session(server))
    assert session == browser
    assert [message["is_auto_rerun"] for message in session] == [False, False, True, False]


async def said_by_a_session(server: Server) -> list[dict[str, Any]]:
    [session] = await gathered(server, 1, drawn, address(article_run(5000)))
    await session.timed(session.press("run"), watches)
    await session.until(lambda session: tick(list(map(essence, session.said))) is not None)
    await session.timed(session.press("cancel"), lambda session: not watches(session))
    await session.leave()
    assert session.errors == []
    return told(session.said)


async def said_by_a_browser(server: Server) -> list[dict[str, Any]]:
    said: list[bytes] = []
    async with async_playwright() as playwright, await playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES) as browser:
        tab = Tab(server.address, await browser.new_page())
        tab.page.on("websocket", lambda socket: socket.on("framesent", lambda content: said.append(content)))
        await tab.press_run(address(article_run(5000)))
        while tick(list(map(essence, said))) is None:
            await tab.page.wait_for_timeout(100)
        await tab.press("Cancel")
        await expect(tab.page.locator(".st-key-card1")).to_contain_text("Cancelled", timeout=WAIT)
    assert tab.errors == []
    return told(said)


def watches(session: Session) -> bool:
    """Whether it asks more often than a page does that only lacks a run."""
    return any(seconds < SLOWEST for seconds, _ in session.polls.values())


def told(said: list[bytes]) -> list[dict[str, Any]]:
    """What was said, one tick after Run of all."""
    messages = list(map(essence, said))
    return [message for place, message in enumerate(messages) if place == tick(messages) or not message["is_auto_rerun"]]


def tick(messages: list[dict[str, Any]]) -> int | None:
    """Where the first tick after Run stands, which is the second thing that a visitor asks for."""
    by_hand = [place for place, message in enumerate(messages) if not message["is_auto_rerun"]]
    return next(
        (place for place, message in enumerate(messages) if message["is_auto_rerun"] and place > [*by_hand, *[len(messages)] * 2][1]), None
    )


def essence(content: bytes) -> dict[str, Any]:
    """What a message asks for, without the seed, in which the two runs differ, and the hashes in the widgets' names."""
    asked = BackMsg.FromString(content).rerun_script
    states = {widget.id.split("-", 2)[-1]: str(widget).partition("\n")[2] for widget in asked.widget_states.widgets}
    return {
        "states": {key: state for key, state in states.items() if key != "edit_seed"},
        "query": asked.query_string.split("~seed")[0],
        "page": (asked.page_script_hash, asked.page_name),
        "fragment_id": asked.fragment_id,
        "is_auto_rerun": asked.is_auto_rerun,
        "context": [field.name for field, _ in asked.context_info.ListFields()],
    }
