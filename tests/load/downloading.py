"""Many visitors download the CSV of the first page's runs."""

import asyncio
import math
import urllib.error
import urllib.request

from core.runs.presets import ARTICLE

from .crowd import dispersed, gathered, row
from .server import Server, measured
from .session import Session
from .table import Row, percentiles

BUTTON = "get__steps.csv"
LINES = 1 + sum(run.steps for run in ARTICLE)


async def measure(server: Server, counts: tuple[int, ...] = (40,)) -> list[Row]:
    return [await downloaded(server, count) for count in counts]


async def downloaded(server: Server, count: int) -> Row:
    sessions = await gathered(server, count, lambda session: session.page.widget(BUTTON) is not None, "view=downloads")
    with measured(server) as load:
        seconds = await asyncio.gather(*map(download, sessions))
    await dispersed(sessions)
    return row("download the CSV", sessions, load, count, sum(map(math.isinf, seconds))) | percentiles(seconds)


async def download(session: Session) -> float:
    """The seconds from the click until the whole file is there; infinite where it does not come whole."""
    begin = asyncio.get_running_loop().time()
    url = await session.download_url(BUTTON)
    if not url:
        return math.inf
    try:
        content = await asyncio.to_thread(lambda: urllib.request.urlopen(session.address + url, timeout=60).read())
    except (urllib.error.URLError, OSError) as error:
        session.errors.append(str(error))
        return math.inf
    return asyncio.get_running_loop().time() - begin if content.count(b"\n") == LINES else math.inf
