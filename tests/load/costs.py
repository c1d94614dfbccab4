"""What one rerun of a page costs a server that has nothing else to do."""

import asyncio

from .crowd import first_charts, row
from .server import Server, measured
from .session import Session, Wanted
from .table import Figure, Row, percentiles

RERUNS = 30


async def measure(server: Server, counts: tuple[int, ...] = (1,)) -> list[Row]:
    """A session at a time, however many are asked for."""
    first, other = [], []
    for _ in range(max(counts)):
        first.append(await rerun(server, "rerun the first page", "", first_charts, 30.0))
        other.append(await rerun(server, "rerun Identity path", "identity_path", lambda session: session.path == "identity_path", 50.0))
    return first + other


async def rerun(server: Server, activity: str, page: str, wanted: Wanted, most: float) -> Row:
    """`most` is what a rerun may cost, in milliseconds of CPU."""
    session = Session(server.address, "", page)
    await session.timed(session.open(), wanted)
    await session.timed(session.rerun(), wanted)
    await asyncio.sleep(1.0)
    with measured(server) as load:
        seconds = [await session.timed(session.rerun(), wanted) for _ in range(RERUNS)]
    await session.leave()
    told = row(activity, [session], load, RERUNS) | percentiles(seconds)
    return told | {"CPU ms each": Figure(1000 * load.pages_cpu / RERUNS, most)}
