"""Many visitors open the first page in the same moment."""

import asyncio
import math

from .crowd import dispersed, first_charts, gathered, row
from .server import Server, measured
from .session import Session
from .table import Row, percentiles

MOST_SECONDS = {40: 3.0, 100: 8.0}  # by the number of sessions, for 95 of 100


async def measure(server: Server, counts: tuple[int, ...] = (40, 100, 200)) -> list[Row]:
    await dispersed(await gathered(server, 1, first_charts))  # the very first visit waits for imports
    return [await opened(server, count) for count in counts]


async def opened(server: Server, count: int) -> Row:
    sessions = [Session(server.address) for _ in range(count)]
    with measured(server) as load:
        seconds = await asyncio.gather(*(session.timed(session.open(), first_charts) for session in sessions))
    await dispersed(sessions)
    most = next((most for number, most in MOST_SECONDS.items() if count <= number), MOST_SECONDS[100])
    return row("open the first page", sessions, load, count, sum(map(math.isinf, seconds))) | percentiles(seconds, most=most)
