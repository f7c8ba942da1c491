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
from tenuto.transports.watched.devtools import DevToolsWitness
from tenuto.wiring.extension import source
from tenuto.wiring.witnesses import let_go

URL = "https://chatgpt.com/c/1"
OTHER = "https://chatgpt.com/c/2"
SITE = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
PATIENCE = 120.0

pytestmark = pytest.mark.timeout(600)


class Now:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return 0.0


@dataclass
class Browser:
    """A stub of a browser's DevTools: a list of tabs, and what each of its lines answers."""

    tabs: Any = field(default_factory=lambda: [tab("A", URL), tab("B", OTHER)])
    facts: dict[str, Any] = field(default_factory=dict)
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
                return {"frameTree": {"frame": {"id": "f"}}}
            case "Page.createIsolatedWorld":
                return {"executionContextId": 1}
            case "Runtime.evaluate":
                return {"result": {"value": json.dumps(self.facts)}}
            case _:
                return {}


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
