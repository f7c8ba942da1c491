"""DevTools that drip, lie, point elsewhere or say too much: over a stub of them on loopback, without a browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tenuto import sites
from tenuto.model.faults import Mistake
from tenuto.model.tools import Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.transports import glimpse
from tenuto.transports.watched import devtools
from tenuto.transports.watched import lines as tab_lines
from tenuto.transports.watched.devtools import DevToolsWitness
from tenuto.transports.watched.lines import Lines
from tenuto.wiring.extension import source
from tenuto.wiring.witnesses import let_go

URL = "https://chatgpt.com/c/1"
OTHER = "https://chatgpt.com/c/2"
SITE = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
PATIENCE = 120.0

pytestmark = pytest.mark.timeout(600)


class Now:
    back = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) - self.back

    def monotonic(self) -> float:
        return 0.0


@dataclass
class Browser:
    """A stub of a browser's DevTools: a list of tabs, and what each of its lines answers."""

    tabs: Any = field(default_factory=lambda: [tab("A", URL), tab("B", OTHER)])
    facts: dict[str, Any] = field(default_factory=dict)
    document: str = "D1"
    before: Callable[[ServerConnection, dict[str, Any]], Any] | None = None
    redirect: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    lines: dict[str, ServerConnection] = field(default_factory=dict)
    ended: dict[str, asyncio.Event] = field(default_factory=dict)
    port: int = 0

    @property
    def where(self) -> str:
        return f"127.0.0.1:{self.port}"

    def request(self, line: ServerConnection, request: Request) -> Response | None:
        self.asked.append(request.path)
        for start, to in self.redirect.items():
            if request.path.startswith(start):
                answer = line.respond(HTTPStatus.FOUND, "")
                answer.headers["Location"] = to
                return answer
        if request.path == "/json/list":
            return line.respond(HTTPStatus.OK, json.dumps(self.tabs))
        return None

    async def speak(self, line: ServerConnection) -> None:
        assert line.request is not None
        name = line.request.path.rpartition("/")[2]
        self.lines[name] = line
        self.ended.setdefault(name, asyncio.Event())
        with contextlib.suppress(ConnectionClosed):
            async for message in line:
                told = json.loads(message)
                if self.before is not None and await self.before(line, told):
                    continue
                await line.send(json.dumps({"id": told["id"], "result": self.answer(told["method"])}))
        self.ended[name].set()

    def answer(self, method: str) -> dict[str, Any]:
        match method:
            case "Page.getFrameTree":
                return {"frameTree": {"frame": {"id": "f", "loaderId": self.document}}}
            case "Page.createIsolatedWorld":
                return {"executionContextId": 1}
            case "Runtime.evaluate":
                return {"result": {"value": json.dumps(self.facts)}}
            case _:
                return {}


def asked(name: str, document: str, frame: str = "f", sort: str = "Fetch") -> tuple[str, dict[str, Any]]:
    return "Network.requestWillBeSent", {"requestId": name, "loaderId": document, "frameId": frame, "type": sort}


def tab(name: Any, url: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "page", "url": url, **more}


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    made = Browser()
    server: Server
    async with serve(made.speak, "127.0.0.1", 0, process_request=made.request) as server:
        made.port = next(iter(server.sockets)).getsockname()[1]
        yield made


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, nothing here is given up for its slowness."""
    monkeypatch.setattr(glimpse, "LISTED", PATIENCE)
    monkeypatch.setattr(devtools, "ANSWER", PATIENCE)


@pytest.fixture
async def stub() -> AsyncIterator[Browser]:
    async with browser() as made:
        yield made


@pytest.fixture
async def trap() -> AsyncIterator[Browser]:
    """Another one, that nobody named to us."""
    async with browser() as made:
        yield made


@contextlib.asynccontextmanager
async def witness(stub: Browser, *, site: Any = None, **more: Any) -> AsyncIterator[DevToolsWitness]:
    more = {"timeout": timedelta(seconds=PATIENCE * 4), **more}
    by = DevToolsWitness("web", stub.where, Now(), lambda _url: site, source() / "page", **more)
    try:
        yield by
    finally:
        await by.close()


async def seen(by: DevToolsWitness, url: str = URL) -> WatchedFacts:
    async with asyncio.timeout(PATIENCE):
        facts = (await by.look(ToolBinding("web", url))).facts
    assert isinstance(facts, WatchedFacts)
    return facts


async def unreadable(by: DevToolsWitness) -> str:
    facts = await seen(by)
    assert facts.generating is None
    assert [defect.flaw for defect in facts.defects] == [Flaw.UNREADABLE]
    return facts.defects[0].why


async def until(good: Callable[[], bool]) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not good():  # noqa: ASYNC110 - a state of others is waited for
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise TimeoutError("it did not come to that") from None


async def test_a_list_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glimpse, "LISTED", 0.3)
    dripping_on: list[asyncio.Task[Any]] = []

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        dripping_on.append(task)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        with contextlib.suppress(OSError):
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        dripping = Browser(port=server.sockets[0].getsockname()[1])
        async with witness(dripping) as by:
            assert "timed out" in await unreadable(by)
            with pytest.raises(Mistake, match="timed out"):
                await by.shown()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*dripping_on)


async def test_only_the_browser_that_was_named_is_spoken_to(
    stub: Browser, trap: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy", "socks_proxy"):
        monkeypatch.setenv(name, f"http://{trap.where}")
        monkeypatch.setenv(name.upper(), f"http://{trap.where}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    stub.tabs = [tab("A", URL, webSocketDebuggerUrl=f"ws://{trap.where}/devtools/page/A")]
    stub.facts = {"state": "ready", "generating": "no"}
    async with witness(stub, site=SITE) as by:
        facts = await seen(by)
    assert (facts.window, facts.generating, facts.defects) == ("A", False, ())
    assert (await asyncio.to_thread(glimpse.shown, URL, SITE, source() / "page", stub.where))["state"] == "ready"
    assert set(stub.asked) == {"/json/list", "/devtools/page/A"}
    assert trap.asked == []


@pytest.mark.parametrize("path", ["/json/list", "/devtools/page/"])
async def test_no_redirect_is_followed(stub: Browser, trap: Browser, path: str) -> None:
    scheme = "http" if path == "/json/list" else "ws"
    stub.redirect = {path: f"{scheme}://{trap.where}/json/list"}
    async with witness(stub) as by:
        await unreadable(by)
    with pytest.raises(Mistake):
        await asyncio.to_thread(glimpse.shown, URL, SITE, source() / "page", stub.where)
    assert trap.asked == []


@pytest.mark.parametrize(
    "told",
    [
        {},
        ["x"],
        [tab("../../x", OTHER)],
        [tab("a b", OTHER)],
        [tab("", OTHER)],
        [tab("a" * 65, OTHER)],
        [tab(7, OTHER)],
        [tab("A", None)],
    ],
)
async def test_a_list_that_is_none_shows_no_absence(stub: Browser, told: Any) -> None:
    stub.tabs = told
    async with witness(stub) as by:
        assert (await seen(by)).shown is None
        with pytest.raises(Mistake):
            await by.shown()
        stub.tabs = [{"type": "worker"}, tab("B", OTHER)]
        assert (await seen(by)).shown is False


def test_a_name_of_this_machine_is_not_looked_up() -> None:
    assert glimpse.line_of("localhost:9222", "AB-1") == "ws://127.0.0.1:9222/devtools/page/AB-1"
    assert glimpse.line_of("[::1]:9222", "A") == "ws://[::1]:9222/devtools/page/A"
    for where in ("192.0.2.1:9222", "localhost.example:1", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:1/x"):
        with pytest.raises(Mistake):
            glimpse.local(where)


@pytest.mark.parametrize(
    ("state", "told", "generating", "ready"),
    [
        ("ready", "no", False, True),
        ("draft", "no", False, False),
        ("generating", "yes", True, False),
        ("loading", "yes", True, False),
        ("unknown", "yes", True, False),
        ("unknown", "no", None, None),
        ("ready", "unknown", None, None),
    ],
)
async def test_that_a_page_generates_is_believed_wherever_it_is_seen(
    stub: Browser, state: str, told: str, generating: bool | None, ready: bool | None
) -> None:
    stub.facts = {"state": state, "generating": told}
    async with witness(stub, site=SITE) as by:
        facts = await seen(by)
    assert (facts.generating, facts.send_ready) == (generating, ready)


# -- what is under way


def counted(*events: tuple[str, dict[str, Any]], shows: str = "D2", before: str = "D1") -> tuple[int | None, ...]:
    """What is known of a tab's lines once all this happened: `before` was shown at first, and `shows` at last."""
    lines = Lines()
    lines.shows(before, "f")
    for event, told in events:
        lines.take(event, told)
    lines.shows(shows, "f")
    return lines.requests, lines.streams


OLD, NEW = asked("9", "D1"), asked("D2", "D2", sort="Document")
SOCKET = ("Network.webSocketCreated", {"requestId": "8"})
FEED = ("Network.responseReceived", {"requestId": "7", "type": "EventSource"})
UNKNOWN = (None, None)


@pytest.mark.parametrize(
    ("events", "shows", "known"),
    [
        ((), "D1", UNKNOWN),
        ((OLD,), "D1", UNKNOWN),
        ((OLD, ("Network.loadingFinished", {"requestId": "9"})), "D1", UNKNOWN),
        ((), "D2", UNKNOWN),
        ((OLD,), "D2", UNKNOWN),
        ((NEW,), "D1", UNKNOWN),
        ((NEW,), "", UNKNOWN),
        ((NEW,), "D2", (1, 0)),
        ((NEW, NEW), "D2", (1, 0)),
        ((OLD, SOCKET, NEW), "D2", (1, 0)),
        ((NEW, OLD, ("Network.loadingFinished", {"requestId": "D2"})), "D2", (0, 0)),
        ((NEW, SOCKET, asked("7", "D2"), asked("7", "D2")), "D2", (3, 1)),
        ((NEW, asked("7", "D2"), FEED), "D2", (2, 1)),
        ((NEW, ("Network.loadingFailed", {"requestId": "D2"})), "D2", (0, 0)),
        ((asked("D2", "D2", frame="inner", sort="Document"),), "D2", UNKNOWN),
        ((NEW, ("Inspector.targetCrashed", {})), "D2", (0, 0)),
        ((asked("D1", "D1", sort="Document"), OLD, NEW), "D1", (2, 0)),
    ],
)  # fmt: skip
def test_what_is_under_way_is_unknown_until_the_document_was_seen_to_be_asked_for(
    events: Any, shows: str, known: tuple[int | None, int | None]
) -> None:
    before = "D0" if events and events[0][1].get("requestId") == "D1" else "D1"
    assert counted(*events, shows=shows, before=before) == known


def test_too_many_lines_are_unknown_and_known_again_with_the_next_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tab_lines, "LINES", 3)
    many = tuple(asked(f"x{number}", "D2") for number in range(4))
    lines = Lines()

    def after(document: str, *events: tuple[str, dict[str, Any]]) -> int | None:
        for event, told in events:
            lines.take(event, told)
        lines.shows(document, "f")
        return lines.requests

    assert after("D2", NEW) == 1
    assert after("D2", *many) is None
    ended = [("Network.loadingFinished", {"requestId": name}) for name in ("x0", "x1")]
    assert after("D2", *ended) is None, "the same document is no new beginning"
    assert after("D3", asked("D3", "D3", sort="Document")) == 1


async def test_right_after_the_line_is_there_nothing_is_known_and_a_page_loaded_anew_is(stub: Browser) -> None:
    async with witness(stub) as by:
        first = await seen(by)
        assert (first.shown, first.requests, first.streams) == (True, None, None)
        for event, told in (asked("8", "D1"), NEW, asked("7", "D2")):
            await stub.lines["A"].send(json.dumps({"method": event, "params": told}))
        assert (await seen(by)).requests is None, "the document that was there is still the one that is shown"
        stub.document = "D2"
        assert (await seen(by)).requests == 2
        await stub.lines["A"].close()
        listening = by._tabs["A"].tab
        assert listening is not None
        await until(lambda: listening.gone)
        assert (await seen(by)).requests is None, "what happened meanwhile nobody saw"


async def test_a_clock_that_went_back_leaves_no_moment_to_come(stub: Browser) -> None:
    stub.facts = {"state": "ready", "generating": "no", "digest": "a"}
    async with witness(stub, site=SITE) as by:
        await seen(by)
        await stub.lines["A"].send(json.dumps({"method": "Network.dataReceived", "params": {}}))
        stub.facts["digest"] = "b"
        moved = await seen(by)
        assert None not in (moved.changed_at, moved.heard_at)
        by._clock.back = timedelta(hours=1)  # type: ignore[attr-defined]
        then = await seen(by)
        assert (then.changed_at, then.heard_at) == (None, None)


async def test_what_is_no_answer_neither_escapes_nor_ends_the_listening(stub: Browser) -> None:
    async def odd(line: ServerConnection, _told: dict[str, Any]) -> bool:
        for each in ("[]", "7", "null", '"x"', '{"id": []}', '{"method": 3, "params": []}'):
            await line.send(each)
        return False

    stub.before = odd
    async with witness(stub, site=SITE) as by:
        stub.facts = {"state": "ready", "generating": "no"}
        assert (await seen(by)).generating is False
        stub.facts = ["x"]  # type: ignore[assignment]
        assert "AttributeError" in await unreadable(by)
        stub.facts = {"state": [], "generating": "no"}
        assert "TypeError" in await unreadable(by)


async def test_whoever_waits_hears_that_the_listening_ended(stub: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devtools, "ANSWER", PATIENCE * 4)

    async def broken(line: ServerConnection, _told: dict[str, Any]) -> bool:
        await line.send("{")
        return True

    stub.before = broken
    async with witness(stub) as by:
        assert "ConnectionResetError" in await unreadable(by)
        stub.before = None
        assert (await seen(by)).defects == ()


async def test_a_tab_that_tells_too_much_at_once_is_unreadable_and_then_begun_anew(
    stub: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devtools, "SIZE", 1000)
    async with witness(stub) as by:
        assert (await seen(by)).defects == ()
        await stub.lines["A"].send(json.dumps({"method": "Network.x", "params": {"x": "y" * 2000}}))
        listening = by._tabs["A"].tab
        assert listening is not None
        await until(lambda: listening.gone)
        assert "more at once" in await unreadable(by)
        assert (await seen(by)).defects == ()


async def test_a_tab_that_nobody_looks_at_is_let_go(stub: Browser) -> None:
    async with witness(stub, kept=timedelta(seconds=0.05)) as by:
        assert (await seen(by)).shown is True
        async with asyncio.timeout(PATIENCE):
            await stub.ended["A"].wait()
        assert by._tabs == {}
    async with witness(stub) as by:
        assert (await seen(by, OTHER)).shown is True
        async with asyncio.timeout(PATIENCE):
            await let_go({"web": by})
            await stub.ended["B"].wait()
        assert by._tabs == {}


async def test_a_tab_that_hangs_keeps_no_other_waiting(stub: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devtools, "ANSWER", PATIENCE * 4)
    free, hangs = asyncio.Event(), asyncio.Event()

    async def slow(line: ServerConnection, _told: dict[str, Any]) -> bool:
        assert line.request is not None
        if line.request.path.endswith("/A"):
            hangs.set()
            await free.wait()
        return False

    stub.before = slow
    async with witness(stub) as by:
        first = asyncio.create_task(seen(by))
        async with asyncio.timeout(PATIENCE):
            await hangs.wait()
        assert (await seen(by, OTHER)).shown is True
        assert not first.done()
        free.set()
        assert (await first).shown is True


async def test_only_so_many_tabs_are_listened_to(stub: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devtools, "TABS", 1)
    async with witness(stub) as by:
        await seen(by)
        await seen(by, OTHER)
        assert list(by._tabs) == ["B"]
        async with asyncio.timeout(PATIENCE):
            await stub.ended["A"].wait()


def test_nothing_listens_and_that_is_said() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(Mistake, match="no browser answers"):
            glimpse.listed(f"127.0.0.1:{free.getsockname()[1]}")
