"""What browsers say is heard one message after the other."""

import asyncio
from typing import Any


class OneAtATime:
    """ASGI middleware: between two messages of browsers the server does what else is waiting, its answers above all.

    A hundred browsers that connect in the same moment would otherwise be served in one go, and nobody else meanwhile.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.hearing = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def heard() -> Any:
            message = await receive()
            async with self.hearing:
                await asyncio.sleep(0)
            return message

        await self.app(scope, heard if scope["type"] == "websocket" else receive, send)
