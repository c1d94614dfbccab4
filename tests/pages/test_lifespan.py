"""What the server does when it starts and when it ends."""

import asyncio
import gc
import inspect
import sys
from unittest.mock import Mock

import pytest
from streamlit.runtime import websocket_session_manager
from streamlit.runtime.app_session import AppSession

import app
from pages.ui.shared import lifespan
from pages.ui.shared.results import JOBS


def test_the_server_has_imported_its_pages_and_frozen_them_before_anybody_comes_and_ends_its_runs_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[float] = []
    monkeypatch.setattr(JOBS, "close", ended.append)

    async def live() -> int:
        async with lifespan.lifespan(app.app):
            assert {"pages.ui.train.charts", "pages.ui.identity_path.drawing", "altair"} <= sys.modules.keys()
            assert ended == []
            return gc.get_freeze_count()

    try:
        assert asyncio.run(live()) > 100_000
    finally:
        gc.unfreeze()
    assert ended == [lifespan.CLOSE_SECONDS]


def test_a_session_that_comes_back_does_not_look_for_files_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "existing_session.register_file_watchers()" in inspect.getsource(websocket_session_manager)  # else nothing need be replaced
    monkeypatch.setattr(AppSession, "register_file_watchers", AppSession.register_file_watchers)
    lifespan.watch_no_files()
    session = Mock()
    AppSession.register_file_watchers(session)
    assert session.mock_calls == []


def test_memory_is_collected_on_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr(lifespan, "COLLECT_SECONDS", 0.01)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))

    async def wait() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lifespan.collect(), 0.2)

    asyncio.run(wait())
    assert len(collected) > 3


def test_what_is_imported_later_is_frozen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(lifespan, "COLLECT_SECONDS", 0.01)
    monkeypatch.setattr(gc, "collect", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(1))

    async def wait() -> None:
        collecting = asyncio.create_task(lifespan.collect())
        await asyncio.sleep(0.1)
        assert frozen == []
        monkeypatch.setitem(sys.modules, "imported_with_the_first_run", sys)
        await asyncio.sleep(0.1)
        collecting.cancel()

    asyncio.run(wait())
    assert frozen == [1]
