"""What one rerun of a page costs a server that has nothing else to do."""

import asyncio

from .crowd import dispersed, first_charts, gathered, row
from .server import Server, measured
from .session import Session, Wanted
from .table import Figure, Row, percentiles

RERUNS = 30


async def measure(server: Server, counts: tuple[int, ...] = (1,)) -> list[Row]:
    rows = []
    for count in counts:
        rows.append(await rerun(server, count, "the first page", "", first_charts, 30.0))
        rows.append(await rerun(server, count, "Identity path", "identity_path", second_page, 50.0))
    return rows


def second_page(session: Session) -> bool:
    return session.path == "identity_path"


async def rerun(server: Server, count: int, name: str, page: str, wanted: Wanted, most: float) -> Row:
    """Sessions ask in turn, one at a time; `most` is what a rerun may cost, in milliseconds of CPU."""
    sessions = await gathered(server, count, wanted, page=page)
    for session in sessions:
        await session.timed(session.rerun(), wanted)
    await asyncio.sleep(1.0)
    with measured(server) as load:
        turns = [sessions[turn % count] for turn in range(RERUNS)]
        seconds = [await session.timed(session.rerun(), wanted) for session in turns]
    await dispersed(sessions)
    told = row(f"rerun {name}", sessions, load, RERUNS) | percentiles(seconds)
    return told | {"CPU ms each": Figure(1000 * load.pages_cpu / RERUNS, most)}
