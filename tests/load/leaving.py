"""Many who watch a run lose the connection in its midst and come back: one half in the same tab, the other half in a new one."""

import asyncio
import math
from collections.abc import Callable

from core.runs.config import RunConfig

from .crowd import dispersed, drawn, gathered, row
from .runs import address, article_run
from .server import Server, measured
from .session import Session
from .table import Row, percentiles
from .watching import RUN_SECONDS, ended, under_way

AWAY_SECONDS = 2.0


async def measure(server: Server, counts: tuple[int, ...] = (40,), new_run: Callable[[], RunConfig] = article_run) -> list[Row]:
    return [await returned(server, count, new_run()) for count in counts]


async def returned(server: Server, count: int, run: RunConfig) -> Row:
    before = await gathered(server, count, drawn, address(run))
    await asyncio.gather(*(session.timed(session.press("run"), under_way(run)) for session in before))
    await asyncio.gather(*(session.until(lambda session: session.steps > 0) for session in before))
    names, steps = [session.id for session in before], [session.steps for session in before]
    await asyncio.gather(*(session.leave(abruptly=True) for session in before))
    await asyncio.sleep(AWAY_SECONDS)

    after = [session if place % 2 else Session(server.address, session.query) for place, session in enumerate(before)]
    with measured(server) as load:
        seconds = await asyncio.gather(*(session.timed(session.open(), has(most)) for session, most in zip(after, steps, strict=True)))
    await asyncio.gather(*(session.until(ended(run), RUN_SECONDS) for session in after))
    for place, session in enumerate(after):
        if place % 2 and session.id != names[place]:
            session.errors.append("who came back in the same tab was taken for somebody else")
    await dispersed(after)
    lost = sum(session.steps < run.steps or math.isinf(wait) for session, wait in zip(after, seconds, strict=True))
    return row("come back to a run", after, load, count, lost) | percentiles(seconds)


def has(steps: int) -> Callable[[Session], bool]:
    """Whether the page, as it is now, has at least these steps."""
    return lambda session: session.page.steps >= steps
