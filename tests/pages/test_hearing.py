"""What browsers say is heard one message after the other."""

import asyncio
from typing import Any

from pages.ui.shared.hearing import OneAtATime

BROWSERS = 20


async def turns(scope: dict[str, str]) -> list[int]:
    """How often something else of the server has had its turn when each browser's message is heard, all of them sent at once."""
    heard: list[int] = []
    others = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert await receive() == {"type": "websocket.receive"}
        heard.append(others)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.receive"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    async def go_on() -> None:
        nonlocal others
        while len(heard) < BROWSERS:
            await asyncio.sleep(0)
            others += 1

    entrance = OneAtATime(app)
    await asyncio.gather(go_on(), *(entrance(scope, receive, send) for _ in range(BROWSERS)))
    return heard


def test_between_two_messages_the_server_does_what_else_is_waiting() -> None:
    heard = asyncio.run(turns({"type": "websocket"}))
    assert len(set(heard)) == BROWSERS


def test_requests_without_a_websocket_wait_for_nothing() -> None:
    assert len(set(asyncio.run(turns({"type": "http"})))) == 1
