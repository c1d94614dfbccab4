"""A visitor without a browser: says over a WebSocket what Streamlit's front end says, and keeps what it keeps."""

import asyncio
import contextlib
import math
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from .page import Page
from .widgets import first_state

PATIENCE = 120.0  # seconds after which an answer is no longer waited for
NO_TOKEN = "PLACEHOLDER_AUTH_TOKEN"  # what the front end says where it has none
FINISHED = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
CONTEXT = {"timezone": "UTC", "timezone_offset": 0, "locale": "en-US", "is_embedded": False, "color_scheme": "light"}

Wanted = Callable[["Session"], bool]


class Session:
    """One tab of a browser. Moments are time.monotonic(), which all processes of a machine share."""

    def __init__(self, address: str, query: str = "", page: str = "") -> None:
        self.address, self.query, self.page_name = address, query, page
        self.id = ""  # that the server gave; who comes back says it again
        self.page_hash = ""
        self.path = ""  # of the page that is shown; empty for the first one
        self.page = Page()
        self.widgets: dict[str, WidgetState] = {}
        self.errors: list[str] = []
        self.growth: list[tuple[float, int]] = []  # when the charts had reached which step
        self.ticks: list[tuple[float, float]] = []  # when a timer asked, and the seconds until it was answered
        self.polls: dict[str, tuple[float, asyncio.Task[None]]] = {}  # by fragment: seconds between two ticks, and the timer
        self.said: list[bytes] = []  # every message, to be held against a browser's
        self._run, self._fragments = "", [""]  # of the page's run that is under way
        self._unanswered: list[float] = []  # ticks that no run has answered yet,
        self._answering: list[float] = []  # and those that the run under way answers
        self._waiting: list[tuple[Wanted, asyncio.Future[float]]] = []  # what the page is to be like, and when it was
        self._requests: dict[str, asyncio.Future[Any]] = {}
        self._cache: dict[str, tuple[ForwardMsg, list[int]]] = {}  # large messages, which the server then only refers to, with their age
        self._cache_age = self._runs = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._socket: ClientConnection | None = None

    # What a visitor does.

    async def open(self) -> None:
        """Connects, or connects again, and asks for the page."""
        self._socket = await connect(
            f"{self.address.replace('http', 'ws', 1)}/_stcore/stream",
            origin=self.address,
            subprotocols=["streamlit", NO_TOKEN, *([self.id] if self.id else [])],
            max_size=None,
            open_timeout=PATIENCE,
            ping_interval=None,  # the server's part
            proxy=None,
        )
        self._start(self._listen(self._socket))
        await self.rerun()

    async def leave(self, abruptly: bool = False) -> None:
        """Closes the tab; abruptly, as a lost network does, without a word to the server."""
        self._stop_polling()
        socket, self._socket = self._socket, None
        if socket and abruptly:
            socket.transport.abort()
        elif socket:
            await socket.close()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def rerun(self) -> None:
        """Asks for the whole page."""
        await self._ask()

    async def press(self, key: str) -> None:
        """Clicks a button."""
        await self._use(key, trigger_value=True)

    async def pick(self, key: str, word: str) -> None:
        """Picks the entry of a menu whose label has this word."""
        menu, _ = self._widget(key)
        found = [label for label in menu.options if word in label]
        if not found:
            raise LookupError(f"The menu {key!r} has no entry {word!r}.")
        await self._use(key, string_trigger_value={"data": found[0]})

    async def turn(self, key: str, label: str) -> None:
        """Opens a tab."""
        widget, fragment = self._widget(key)
        self.widgets[widget.id] = WidgetState(id=widget.id, string_value=label)
        await self._ask(fragment)

    async def download_url(self, key: str) -> str:
        """Where a file lies that a download button offers, made now if it is made on demand. Empty where the server could not make it."""
        button, _ = self._widget(key)
        if not button.deferred_file_id:
            return str(button.url)
        request = uuid.uuid4().hex
        answer = self._requests[request] = asyncio.get_running_loop().create_future()
        wanted = {"request_id": request, "session_id": self.id, "deferred_file": {"file_id": button.deferred_file_id}}
        await self._send(BackMsg(backend_operation_request=wanted))
        try:
            response = await asyncio.wait_for(answer, PATIENCE)
        except TimeoutError:
            self.errors.append(f"no file for {key} in {PATIENCE:g} s")
            return ""
        if response.error_msg:
            self.errors.append(response.error_msg)
        return str(response.deferred_file.url)

    async def timed(self, act: Awaitable[Any], wanted: Wanted, seconds: float = PATIENCE) -> float:
        """The seconds from an act until a run of the page has ended and left it as wanted; infinite where that was not so in time."""
        begin, done = monotonic(), asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, done))
        try:
            async with asyncio.timeout(seconds):
                await act
                moment: float = await done
                return moment - begin
        except TimeoutError:
            self.errors.append(f"not answered in {seconds:g} s")
        except (OSError, WebSocketException, LookupError) as error:
            self.errors.append(str(error) or repr(error))
        finally:
            self._waiting = [entry for entry in self._waiting if entry[1] is not done]
        return math.inf

    async def until(self, wanted: Wanted, seconds: float = PATIENCE) -> float:
        """The seconds until the page is as wanted."""
        return 0.0 if wanted(self) else await self.timed(asyncio.sleep(0), wanted, seconds)

    @property
    def steps(self) -> int:
        """The last step that all charts have reached, ever."""
        return self.growth[-1][1] if self.growth else 0

    # What the front end does by itself.

    async def _use(self, key: str, **state: Any) -> None:
        widget, fragment = self._widget(key)
        await self._ask(fragment, WidgetState(id=widget.id, **state))

    def _widget(self, key: str) -> tuple[Any, str]:
        found = self.page.widget(key)
        if found is None:
            raise LookupError(f"The page has no widget {key!r}.")
        return found

    async def _ask(self, fragment: str = "", *used: WidgetState, timer: bool = False) -> None:
        known = bool(self.page_hash)
        state = {
            "query_string": self.query,
            "widget_states": {"widgets": [*self.widgets.values(), *used]},
            "page_script_hash": self.page_hash,
            "page_name": "" if known else self.page_name,
            "fragment_id": fragment or None,
            "is_auto_rerun": timer or None,
            "cached_message_hashes": list(self._cache),
            "context_info": CONTEXT | {"url": f"{self.address}/{self.page_name}"},
        }
        await self._send(BackMsg(rerun_script={name: value for name, value in state.items() if value is not None}))

    async def _send(self, message: BackMsg) -> None:
        content = message.SerializeToString()
        self.said.append(content)
        if self._socket:
            with contextlib.suppress(ConnectionClosed):  # of which the listener tells
                await self._socket.send(content)

    async def _poll(self, fragment: str, interval: float) -> None:
        beat = monotonic()
        while True:
            beat += interval
            await asyncio.sleep(beat - monotonic())
            self._unanswered.append(monotonic())
            await self._ask(fragment, timer=True)

    def _stop_polling(self, *fragments: str) -> None:
        for fragment in fragments or list(self.polls):
            if fragment in self.polls:
                self.polls.pop(fragment)[1].cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.errors.append(repr(error))

    async def _listen(self, socket: ClientConnection) -> None:
        try:
            async for content in socket:
                self._hear(ForwardMsg.FromString(content))
        except ConnectionClosed:
            pass  # told below
        finally:
            if self._socket is socket:  # it was not this session that closed it
                self._socket = None
                self._stop_polling()
                self.errors.append(f"the connection ended: {socket.close_code} {socket.close_reason}".rstrip())
                for _, done in self._waiting:
                    if not done.done():
                        done.set_result(math.inf)

    def _hear(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            message = self._recall(message)
            kind = message.WhichOneof("type")
        if kind == "delta":
            self._draw(message)
        elif kind in HEARD:
            HEARD[kind](self, message)

    def _recall(self, reference: ForwardMsg) -> ForwardMsg:
        cached, age = self._cache[reference.ref_hash]
        age[0] = self._runs
        message = ForwardMsg()
        message.CopyFrom(cached)
        message.metadata.CopyFrom(reference.metadata)
        return message

    def _draw(self, message: ForwardMsg) -> None:
        metadata = message.metadata
        if metadata.cacheable and message.hash not in self._cache:
            self._cache[message.hash] = message, [self._runs]
        node = self.page.put(tuple(metadata.delta_path), message.delta, self._run)
        if node is None:
            return
        if node.kind == "vega_lite_chart":
            if (steps := self.page.steps) > self.steps:
                self.growth.append((monotonic(), steps))
        elif node.kind == "exception":
            self.errors.append(f"{node.content.type}: {node.content.message}")
        elif message.delta.WhichOneof("type") == "new_element":
            state = first_state(message.delta.new_element)
            if state and (state.id not in self.widgets or getattr(node.content, "set_value", False)):
                self.widgets[state.id] = state

    def _begin(self, message: ForwardMsg) -> None:
        session, run = message.new_session, message.metadata.run
        self.id = session.initialize.session_id or self.id
        self._cache_age = session.config.max_cached_message_age
        self._run, self._fragments = run.script_run_id, list(run.fragment_ids)
        if not self._fragments:
            self._stop_polling()
            self.page_hash = session.page_script_hash
        self._answering += self._unanswered
        self._unanswered = []

    def _finish(self, message: ForwardMsg) -> None:
        run, fragments = message.metadata.run.script_run_id, list(message.metadata.run.fragment_ids)
        if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
            self.errors.append("the page's script could not be compiled")
        if message.script_finished not in FINISHED or run != self._run:
            return
        now = monotonic()
        self.page.sweep(run, fragments)
        kept = self.page.ids()
        self.widgets = {name: state for name, state in self.widgets.items() if name in kept}
        self._forget(fragments)
        self.ticks += [(asked, now - asked) for asked in self._answering]
        self._answering = []
        for wanted, done in self._waiting:
            if not done.done() and wanted(self):
                done.set_result(now)

    def _forget(self, fragments: list[str]) -> None:
        """Drops large messages that have not been referred to for some runs."""
        self._runs += 1
        for name, (message, age) in list(self._cache.items()):
            concerned = not fragments or message.delta.fragment_id in fragments
            if concerned and self._runs - age[0] > self._cache_age:
                del self._cache[name]

    def _time(self, message: ForwardMsg) -> None:
        fragment, interval = message.auto_rerun.fragment_id, message.auto_rerun.interval
        if fragment in self.polls and self.polls[fragment][0] == interval:
            return
        if fragment in self.polls:
            self._stop_polling(fragment)
        self.polls[fragment] = interval, self._start(self._poll(fragment, interval))

    def _stop_timers(self, message: ForwardMsg) -> None:
        for fragment in message.stop_auto_rerun.fragment_ids:
            self._stop_polling(fragment)

    def _move(self, message: ForwardMsg) -> None:
        self.query = message.page_info_changed.query_string

    def _navigate(self, message: ForwardMsg) -> None:
        self.page_hash = message.navigation.page_script_hash
        [page] = [page for page in message.navigation.app_pages if page.page_script_hash == self.page_hash]
        self.path = "" if page.is_default else page.url_pathname

    def _miss(self, message: ForwardMsg) -> None:
        self.errors.append(f"page not found: {message.page_not_found.page_name}")

    def _tell(self, message: ForwardMsg) -> None:
        if message.session_event.WhichOneof("type") == "script_compilation_exception":
            self.errors.append(message.session_event.script_compilation_exception.message)

    def _respond(self, message: ForwardMsg) -> None:
        response = message.backend_operation_response
        if (answer := self._requests.pop(response.request_id, None)) and not answer.done():
            answer.set_result(response)


HEARD: dict[str | None, Callable[[Session, ForwardMsg], None]] = {
    "new_session": Session._begin,
    "navigation": Session._navigate,
    "script_finished": Session._finish,
    "auto_rerun": Session._time,
    "stop_auto_rerun": Session._stop_timers,
    "page_info_changed": Session._move,
    "page_not_found": Session._miss,
    "session_event": Session._tell,
    "backend_operation_response": Session._respond,
}
