"""Many press Run on the same new run and watch it to its end."""

import asyncio
import math
import sys
from collections.abc import Callable
from itertools import pairwise
from time import monotonic

import numpy as np

from core.runs.config import RunConfig

from .crowd import dispersed, drawn, gathered, row
from .runs import address, article_run, tiny_run
from .server import Server, measured
from .session import Session, Wanted
from .table import Figure, Row, percentiles

Record = list[tuple[float, int]]  # when a run had computed how many steps
RUN_SECONDS = 240.0  # after which a run is no longer waited for
QUIET_SECONDS = 3.0  # for which it is seen whether anybody still polls


async def measure(server: Server, counts: tuple[int, ...] = (1, 5, 40, 80), new_run: Callable[[], RunConfig] = article_run) -> list[Row]:
    """Unwatched speed is measured before each count and after the last, with the same kind of run: a machine's speed drifts."""
    await unwatched(server, tiny_run())  # JAX is imported by the first run
    unwatched_speeds, watched = [await unwatched(server, new_run())], []
    for count in counts:
        watched.append(await watch(server, count, new_run()))
        unwatched_speeds.append(await unwatched(server, new_run()))
    print(f"  steps a second, unwatched: {', '.join(f'{speed:.1f}' for speed in unwatched_speeds)}", file=sys.stderr)
    for (count, [ticks, *_], together), (before, after) in zip(watched, pairwise(unwatched_speeds), strict=True):
        ticks["share of unwatched speed"] = Figure(2 * together / (before + after), least=0.95 if count == 1 else 0.75)
    return [row for _, rows, _ in watched for row in rows]


async def unwatched(server: Server, run: RunConfig) -> float:
    """Steps per second of a run whose only viewer leaves at once."""
    [session] = await gathered(server, 1, drawn, address(run))
    await session.timed(session.press("run"), under_way(run))
    await session.leave()
    await computed(server, run)
    return speed(server.record[run.key])


async def computed(server: Server, run: RunConfig) -> None:
    """Waits until the run's file is there, without asking the server."""
    deadline = monotonic() + RUN_SECONDS
    while run.key not in server.runs and monotonic() < deadline:
        await asyncio.sleep(0.5)


def speed(record: Record, begin: float = 0.0) -> float:
    """Steps per second between the first chunk that ended after a moment and the last."""
    chunks = [(moment, steps) for moment, steps in record if steps and moment >= begin]
    if len(chunks) < 2:
        return math.nan
    (first, fewest), (last, most) = chunks[0], chunks[-1]
    return (most - fewest) / (last - first)


async def watch(server: Server, count: int, run: RunConfig) -> tuple[int, list[Row], float]:
    """How many watched, their rows of the table, and the steps per second while all of them did."""
    sessions = await gathered(server, count, drawn, address(run))

    begin = monotonic()
    presses = await asyncio.gather(*(session.timed(session.press("run"), under_way(run)) for session in sessions))
    all_watch = begin + max(presses)
    with measured(server) as load:
        await asyncio.gather(*(session.until(ended(run), RUN_SECONDS) for session in sessions))
    await asyncio.sleep(QUIET_SECONDS)
    for session in sessions:
        session.errors += ["a finished run is polled"] * bool(session.polls)
    await dispersed(sessions)
    await computed(server, run)

    record, few = server.record[run.key], count <= 5
    ticks = [seconds for session in sessions for asked, seconds in session.ticks if asked >= all_watch]
    delays = [wait for session, press in zip(sessions, presses, strict=True) for wait in waits(session, record, begin + press)]
    lost = sum(session.steps < run.steps for session in sessions)
    rows: list[Row] = [
        row("watch: ticks", sessions, load, len(ticks), lost) | percentiles(ticks, 1.0, 2.0),
        {"activity": "watch: new points", "sessions": count, **percentiles(delays, *((1.0, 2.0) if few else (2.0, 4.0)))},
        {"activity": "watch: Run is pressed", "sessions": count, **percentiles(presses)},
    ]
    rows[0]["trainings"] = Figure(sum(steps == 0 for _, steps in record), 1, 1)
    together = speed(record, all_watch)
    return count, rows, speed(record) if math.isnan(together) else together


def under_way(run: RunConfig) -> Wanted:
    return lambda session: bool(session.polls) or session.steps >= run.steps


def ended(run: RunConfig) -> Wanted:
    return lambda session: not session.polls and session.steps >= run.steps


def waits(session: Session, record: Record, begin: float) -> list[float]:
    """Of each step computed since a moment, the seconds until the session had it; infinite for what it never had."""
    moments, steps = np.array([moment for moment, _ in record]), np.array([steps for _, steps in record])
    reached = [step for _, step in session.growth]
    step = np.arange(1, (steps.max() if len(steps) else 0) + 1)
    computed = moments[np.searchsorted(steps, step)]
    had = np.array([*(moment for moment, _ in session.growth), math.inf])[np.searchsorted(reached, step)]
    return [float(wait) for wait in (had - computed)[computed >= begin]]
