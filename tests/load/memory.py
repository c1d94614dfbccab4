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
TOGETHER = 8  # runs of a comparison
ASKING = 4  # sessions that ask for runs beside each other: the queue takes 40
AT_MOST = 180.0  # seconds for either


async def measure(server: Server, counts: tuple[int, ...] = (100,)) -> list[Row]:
    await dispersed(await gathered(server, 1, first_charts))
    await unwatched(server, tiny_run())
    return [told for count in counts for told in await of_sessions(server, count)] + await of_runs(server)


async def of_sessions(server: Server, count: int) -> list[Row]:
    with measured(server) as opening:
        sessions = await gathered(server, count, first_charts)
    rows = [grown(f"{count} sessions are there", sessions, opening, count)]
    rounds, begin = RERUNS // count, monotonic()
    for half in (rounds // 2, rounds - rounds // 2):
        done = 0
        with measured(server) as load:
            while done < half and monotonic() - begin < AT_MOST:
                await asyncio.gather(*(session.timed(session.rerun(), first_charts) for session in sessions))
                done += 1
        rows.append(grown(f"they rerun {done * count} times", sessions, load, done * count))
    with measured(server) as closing:
        await dispersed(sessions)
        await asyncio.sleep(5)
    return [*rows, grown("they have left", sessions, closing, count)]


async def of_runs(server: Server) -> list[Row]:
    rows, begin = [], monotonic()
    for _ in range(2):
        done, sessions = 0, []
        with measured(server) as load:
            while done < RUNS // 2 and monotonic() - begin < AT_MOST:
                comparisons = [[tiny_run() for _ in range(TOGETHER)] for _ in range(min(ASKING, -(-(RUNS // 2 - done) // TOGETHER)))]
                sessions += await asyncio.gather(*(asked(server, runs) for runs in comparisons))
                done += sum(map(len, comparisons))
        rows.append(grown(f"{done} tiny runs", sessions, load, done, ASKING))
    return rows


async def asked(server: Server, runs: list[RunConfig]) -> Session:
    """A session that has had these runs computed, and has left."""
    [session] = await gathered(server, 1, drawn, address(*runs))
    await session.timed(session.press("run"), lambda session: {run.key for run in runs} <= set(server.runs) and not session.polls)
    await session.leave()
    return session


def grown(activity: str, sessions: list[Session], load: Load, what: int, count: int = 0) -> Row:
    told = row(f"memory: {activity}", sessions, load, 0) | {
        "server MB": Figure(load.memory),
        "MB more": Figure(load.more_memory),
        "MB each": Figure(load.more_memory / max(what, 1)),
    }
    del told["answers/s"]
    return told | {"sessions": count or len(sessions)}
