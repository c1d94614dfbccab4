"""Visitors of a finished comparison look at it in other ways, each at a time of their own."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from core.state.comparison import VIEWS

from .crowd import dispersed, first_charts, gathered, row
from .server import Server, measured
from .session import Session, Wanted
from .table import Row, percentiles

EVERY = 10.0  # seconds between two acts of a session
MEDIAN_SECONDS = 1.0


def turn(view: str) -> Callable[[Session], Awaitable[None]]:
    return lambda session: session.turn("tab", VIEWS[view])


def shows(address: str) -> Wanted:
    return lambda session: address in session.query and bool(session.page.charts)


ACTS: list[tuple[Callable[[Session], Awaitable[None]], Wanted]] = [
    (turn("layers"), shows("view=layers")),
    (lambda session: session.pick("act2", "Hide"), shows("hide=2")),
    (turn("maps"), shows("view=maps")),
    (turn("curves"), lambda session: "view=" not in session.query and bool(session.page.charts)),
]


async def measure(server: Server, counts: tuple[int, ...] = (40, 80), every: float = EVERY) -> list[Row]:
    return [await toggled(server, count, every) for count in counts]


async def toggled(server: Server, count: int, every: float) -> Row:
    sessions = await gathered(server, count, first_charts)

    async def visit(place: int, session: Session) -> list[float]:
        begin, seconds = asyncio.get_running_loop().time() + every * place / count, []
        for number, (act, wanted) in enumerate(ACTS):
            await asyncio.sleep(begin + number * every - asyncio.get_running_loop().time())
            seconds.append(await session.timed(act(session), wanted))
        return seconds

    with measured(server) as load:
        waits = [wait for waits in await asyncio.gather(*map(visit, range(count), sessions)) for wait in waits]
    for session in sessions:
        session.errors += ["a finished comparison polls"] * bool(session.polls or session.ticks)
    await dispersed(sessions)
    return row("toggle a view", sessions, load, len(waits), sum(map(math.isinf, waits))) | percentiles(waits, MEDIAN_SECONDS)
