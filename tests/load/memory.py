"""What sessions, reruns and runs leave in the server's memory."""

import asyncio
from time import monotonic

from core.runs.config import RunConfig

from .crowd import dispersed, drawn, first_charts, gathered, row
from .runs import address, tiny_run
from .server import Load, Server, measured
from .session import Session
from .table import Figure, Row
from .watching import unwatched

RERUNS, RUNS = 1000, 200
TOGETHER = 5  # runs of a comparison
ASKING = 5  # sessions that ask for runs beside each other: the queue takes 40
AT_MOST = 120.0  # seconds for one half of the reruns, or of the runs
REST = 5.0  # seconds in which a server puts itself in order


async def measure(server: Server, counts: tuple[int, ...] = (100,)) -> list[Row]:
    """In halves, the first of which may fill caches; runs come last, since the memory that JAX takes to compile comes and goes."""
    await dispersed(await gathered(server, 1, first_charts))
    rows = [told for count in counts for told in await of_sessions(server, count)]
    await unwatched(server, tiny_run())
    return [*rows, await of_runs(server), await of_runs(server)]


async def of_sessions(server: Server, count: int) -> list[Row]:
    await asyncio.sleep(REST)
    with measured(server) as opening:
        sessions = await gathered(server, count, first_charts)
    rows = [grown(f"{count} sessions are there", sessions, opening, count)]
    rows += [await of_reruns(server, sessions), await of_reruns(server, sessions)]
    with measured(server) as closing:
        await dispersed(sessions)
        await asyncio.sleep(REST)
    return [*rows, grown("they have left", sessions, closing, count)]


async def of_reruns(server: Server, sessions: list[Session]) -> Row:
    done, begin = 0, monotonic()
    with measured(server) as load:
        while done < RERUNS / 2 and monotonic() - begin < AT_MOST:
            await asyncio.gather(*(session.timed(session.rerun(), first_charts) for session in sessions))
            done += len(sessions)
    return grown(f"{done} reruns", sessions, load, done)


async def of_runs(server: Server) -> Row:
    await asyncio.sleep(REST)
    sessions: list[Session] = []
    begin = monotonic()
    with measured(server) as load:
        while len(sessions) * TOGETHER < RUNS / 2 and monotonic() - begin < AT_MOST:
            sessions += await asyncio.gather(*(ask(server, [tiny_run() for _ in range(TOGETHER)]) for _ in range(ASKING)))
    return grown(f"{len(sessions) * TOGETHER} tiny runs", sessions, load, len(sessions) * TOGETHER) | {"sessions": ASKING}


async def ask(server: Server, runs: list[RunConfig]) -> Session:
    """A session that has had these runs computed, and has left."""
    [session] = await gathered(server, 1, drawn, address(*runs))
    await session.timed(session.press("run"), lambda session: {run.key for run in runs} <= set(server.runs) and not session.polls)
    await session.leave()
    return session


def grown(activity: str, sessions: list[Session], load: Load, what: int) -> Row:
    """`what` is the number of what may have grown it."""
    told = row(f"memory: {activity}", sessions, load, 0)
    del told["answers/s"]
    return told | {"server MB": Figure(load.memory), "MB more": Figure(load.more_memory), "MB each": Figure(load.more_memory / what)}
