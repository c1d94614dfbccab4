"""What the server does when it starts and when it ends."""

import asyncio
import contextlib
import gc
import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from streamlit.runtime.app_session import AppSession

from pages.ui.shared.results import jobs

PAGES = Path(__file__).parents[2]
CLOSE_SECONDS = 15  # for which the end of the server waits for what computes runs
COLLECT_SECONDS = 30


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Imports what all pages need before the first visitor comes, keeps memory in order, and stops the runs at the end."""
    watch_no_files()
    import_pages()
    gc.collect()
    gc.freeze()  # what is imported stays, so no collection has to look at it
    collecting = asyncio.create_task(collect())
    yield
    collecting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await collecting
    await asyncio.to_thread(jobs().close, CLOSE_SECONDS)


def watch_no_files() -> None:
    """As `fileWatcherType` says. For a session that comes back, Streamlit 1.67 forgets it and looks at every imported file for 0.2 s."""

    def register_file_watchers(self: AppSession) -> None:
        pass

    AppSession.register_file_watchers = register_file_watchers  # type: ignore[method-assign]


def import_pages() -> None:
    """All that the pages import, except what they load in functions."""
    for name in modules():
        importlib.import_module(name)


def modules() -> Iterator[str]:
    for path in sorted((PAGES / "ui").rglob("*.py")):
        yield ".".join(path.relative_to(PAGES.parent).with_suffix("").parts).removesuffix(".__init__")


async def collect() -> None:
    """Streamlit would collect after every rerun of every session (`runner.postScriptGC`), 80 ms each (docs/hosting.md)."""
    imported = len(sys.modules)
    while True:
        await asyncio.sleep(COLLECT_SECONDS)
        gc.collect()
        if len(sys.modules) > imported:  # JAX, with the first run, doubles what a collection has to look at
            gc.freeze()
            imported = len(sys.modules)
