"""Many sessions at once, and the row of the table that tells what they met."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .server import Load, Server
from .session import Session, Wanted
from .table import Figure, Row

HEALTH_SECONDS = 0.5  # within which health is to answer always
AT_ONCE = 8  # sessions that open their page beside each other where opening is not what is measured


def first_charts(session: Session) -> bool:
    """Whether the first page has its three charts, each with data."""
    return len(session.page.charts) >= 3


def drawn(session: Session) -> bool:
    """Whether a page has its widgets."""
    return session.page.widget("run") is not None


async def gathered(server: Server, count: int, wanted: Wanted, query: str = "", page: str = "") -> list[Session]:
    """Sessions that have opened an address, a few at a time."""
    sessions, few = [Session(server.address, query, page) for _ in range(count)], asyncio.Semaphore(AT_ONCE)

    async def enter(session: Session) -> None:
        async with few:
            await session.timed(session.open(), wanted)

    await asyncio.gather(*map(enter, sessions))
    return sessions


async def dispersed(sessions: Sequence[Session]) -> None:
    await asyncio.gather(*(session.leave() for session in sessions))


def row(activity: str, sessions: Sequence[Any], load: Load, answers: int, lost: int = 0) -> Row:
    """What every activity tells. Each error is told on standard error, too, once."""
    errors = [error for session in sessions for error in session.errors] + load.faults
    for error in sorted(set(errors)):
        print(f"  {errors.count(error)} x {error}", file=sys.stderr)
    health = [seconds for seconds, _ in load.health]
    told: Row = {
        "activity": activity,
        "sessions": len(sessions),
        "answers/s": Figure(answers / load.seconds),
        "errors": Figure(len(errors), 0),
        "lost": Figure(lost, 0),
        "harness CPU": f"{load.harness_cpu / load.seconds:.0%}",
    }
    if answers:
        told["CPU ms each"] = Figure(1000 * load.pages_cpu / answers)
    if health:
        told |= {"health 95 % s": Figure(float(np.quantile(health, 0.95))), "health max s": Figure(max(health), HEALTH_SECONDS)}
    return told
