"""The accessibility bus that does not answer, refuses or drowns what asks it: over a stub bus, without a desktop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.atspi import Asking, asked

from tenuto.model.evidence import Observation
from tenuto.model.faults import Mistake
from tenuto.model.tools import Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.transports.addresses import bare
from tenuto.transports.watched import atspi
from tenuto.transports.watched.accessibility import AccessibilityWitness
from tenuto.transports.watched.atspi import AtSpi
from tenuto.transports.watched.trees import Node, NotLooked, Window

jeepney = pytest.importorskip("jeepney")

URL = "https://chatgpt.com/c/1"
PATIENCE = 120.0

pytestmark = pytest.mark.timeout(600)


class Now:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return 0.0


# -- a bus that authenticates and then does what it is told


@contextlib.contextmanager
def bus(at: Path, after: Callable[[socket.socket, bytes], None]) -> Iterator[str]:
    """A bus whose every connection is handed on once it is authenticated, with what came in already."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(at))
        listening.listen(8)

        def serve() -> None:
            while True:
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(line,), daemon=True).start()

        def one(line: socket.socket) -> None:
            with line, contextlib.suppress(OSError):
                said = b""
                while b"BEGIN\r\n" not in said:
                    more = line.recv(4096)
                    if not more:
                        return
                    said += more
                    if b"AUTH" in more:
                        line.sendall(b"OK 1234deadbeef\r\n")
                after(line, said.partition(b"BEGIN\r\n")[2])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"unix:path={at}"
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def silent(line: socket.socket, _said: bytes) -> None:
    while line.recv(4096):
        pass


def chatter(line: socket.socket, _said: bytes) -> None:
    """Signals without an end, and never an answer."""
    number = 1
    while True:
        signal = jeepney.new_signal(jeepney.DBusAddress("/x", interface="x.y"), "Moved")
        line.sendall(signal.serialise(serial=number))
        number += 1


def endless(line: socket.socket, _said: bytes) -> None:
    """One message that goes on and on."""
    signal = jeepney.new_signal(jeepney.DBusAddress("/x", interface="x.y"), "Moved", "s", ("x" * 100_000_000,))
    line.sendall(signal.serialise(serial=1))
    silent(line, b"")


@pytest.mark.parametrize("after", [silent, chatter, endless], ids=["silent", "chatter", "endless"])
def test_a_bus_that_never_says_hello_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: Callable[[socket.socket, bytes], None]
) -> None:
    monkeypatch.setattr(atspi, "ANSWER", 0.3)
    monkeypatch.setattr(atspi, "SIZE", 1_000_000)
    with bus(tmp_path / "bus", after) as address:
        ended = threading.Event()
        said: list[str] = []

        def look() -> None:
            with pytest.raises(NotLooked) as why:
                AtSpi(address).windows()
            said.append(str(why.value))
            ended.set()

        threading.Thread(target=look, daemon=True).start()
        if not ended.wait(PATIENCE):
            raise TimeoutError("the look goes on without an end")
        assert "cannot be reached" in said[0]


# -- a tree that refuses, and one that is too large


PAGES: dict[str, tuple[int | None, Sequence[str] | None, str | None]] = {
    atspi.ROOT: (75, ["/app"], None),
    "/app": (75, ["/frame"], None),
    "/frame": (23, ["/tabs", "/page"], None),
    "/tabs": (39, [], None),
    "/page": (95, ["/send", "/main"], URL),
    "/send": (43, [], None),
    "/main": (85, [], None),
}


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Asking:
    made = Asking(dict(PAGES))
    asked(made, monkeypatch)
    return made


async def seen(url: str = URL, profile: Mapping[str, Any] | None = None) -> WatchedFacts:
    by = AccessibilityWitness("desk", AtSpi(), Now(), lambda _url: profile, timedelta(seconds=PATIENCE))
    look: Observation = await by.look(ToolBinding("desk", url))
    assert isinstance(look.facts, WatchedFacts)
    return look.facts


def test_a_part_that_refuses_to_tell_its_own_is_no_leaf(tree: Asking) -> None:
    trees = AtSpi()
    (window,), whole = trees.windows()
    assert whole
    assert trees.nodes(window)[1]
    for part in ("/main", "/page"):
        tree.places = {**PAGES, part: (85, None, PAGES[part][2])}
        nodes, whole = trees.nodes(window)
        assert not whole
        assert len(nodes) == (2 if part == "/main" else 0)
    tree.places = {**PAGES, "/main": (None, [], None)}
    assert not trees.nodes(window)[1], "what does not say what it is might be Stop"


@pytest.mark.parametrize(
    ("limit", "to", "places"),
    [
        (None, 0, {"/app": (75, None, None)}),
        (None, 0, {"/frame": (None, [], None)}),
        (None, 0, {"/frame": (23, None, None)}),
        (None, 0, {"/tabs": (39, None, None)}),
        (None, 0, {"/page": (95, [], None)}),
        ("APPLICATIONS", 0, {}),
        ("WINDOWS", 0, {}),
        ("CHROME", 1, {}),
        ("AROUND", 2, {}),
    ],
)
async def test_what_was_not_asked_or_does_not_tell_is_no_absence(
    tree: Asking, monkeypatch: pytest.MonkeyPatch, limit: str | None, to: int, places: Mapping[str, Any]
) -> None:
    elsewhere = "https://chatgpt.com/c/2"
    assert (await seen(elsewhere)).shown is False
    if limit is not None:
        monkeypatch.setattr(atspi, limit, to)
        monkeypatch.setattr(atspi, "BATCH", 1)
    tree.places = {**PAGES, **places}
    facts = await seen(elsewhere)
    assert facts.shown is None
    assert [defect.flaw for defect in facts.defects] == [Flaw.UNREADABLE]
    if limit is None and "/app" in places:
        tree.gone.add(":1")
        assert (await seen(elsewhere)).shown is False, "a program that ended shows nothing"


def crowded(role: int, children: int, inner: int = 29) -> dict[str, Any]:
    """A window whose page stands behind a part with many of its own, each of a role."""
    crowd = [f"/crowd/{number}" for number in range(children)]
    deep: dict[str, Any] = {"/deep": (39, ["/deeper"], None), "/deeper": (49, ["/page"], None)}
    return {
        **PAGES,
        "/frame": (23, ["/crowd", "/deep"], None),
        "/crowd": (role, crowd, None),
        **deep,
        **{name: (inner, [], None) for name in crowd},
    }


PANEL, LABEL, TREE, ITEM = 39, 29, 65, 91


@pytest.mark.parametrize(
    ("places", "elsewhere"),
    [
        (crowded(PANEL, 3000, LABEL), False),  # each is asked what it is, and none is gone into
        (crowded(TREE, 30_000, ITEM), False),  # no page stands in a tree of items, however many there are
        (crowded(PANEL, 3000, PANEL), None),  # any of those may hold one
        (crowded(PANEL, 30_000, LABEL), None),
    ],
    ids=["labels", "items", "panels", "too many"],
)
async def test_what_stands_around_a_page_hides_it_not_and_makes_absence_unknown_only_where_it_could_hold_one(
    tree: Asking, places: Mapping[str, Any], elsewhere: bool | None
) -> None:
    tree.places = places
    facts = await seen()
    assert (facts.shown, facts.defects) == (True, ())
    assert (await seen("https://chatgpt.com/c/2")).shown is elsewhere


async def test_a_window_of_two_pages_shows_both(tree: Asking) -> None:
    other = "https://chatgpt.com/c/2"
    tree.places = {**PAGES, "/frame": (23, ["/page", "/beside"], None), "/beside": (95, [], other)}
    one, two = await seen(), await seen(other)
    assert one.shown is two.shown is True
    assert one.window == two.window
    tree.places = {**tree.places, "/beside": (95, [], URL)}
    assert [defect.flaw for defect in (await seen()).defects] == [Flaw.DUPLICATED]


def test_windows_of_processes_nobody_knows_are_told_apart_by_their_names_on_the_bus(
    tree: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ([(":1", "/app"), (":2", "/app")],)
    plain = tree.answer

    def answer(to: str, path: str, method: str, given: Sequence[str]) -> Any:
        if path == atspi.ROOT and method == "GetChildren":
            return both
        return None if method == "GetConnectionUnixProcessID" else plain(to, path, method, given)

    monkeypatch.setattr(tree, "answer", answer)
    windows, _ = AtSpi().windows()
    assert len({window.id for window in windows}) == len(windows) == 2


# -- whatever goes wrong


@pytest.mark.parametrize("wrong", [ValueError("x"), AttributeError("x"), RecursionError(), Mistake("no such profile")])
async def test_nothing_escapes_a_look(wrong: Exception) -> None:
    class Broken:
        def windows(self) -> tuple[Sequence[Window], bool]:
            raise wrong

        def nodes(self, window: Window, most: int) -> tuple[Sequence[Node], bool]:
            raise wrong

    by = AccessibilityWitness("desk", Broken(), Now(), lambda _url: None)
    facts = (await by.look(ToolBinding("desk", URL))).facts
    assert isinstance(facts, WatchedFacts)
    assert facts.shown is None
    said = "no such profile" if isinstance(wrong, Mistake) else type(wrong).__name__
    assert said in facts.defects[0].why
    with pytest.raises(Mistake):
        await by.shown()


async def test_many_looks_that_wait_keep_no_other_work_waiting() -> None:
    held, entered = threading.Event(), threading.Event()

    class Held:
        def windows(self) -> tuple[Sequence[Window], bool]:
            entered.set()
            if not held.wait(PATIENCE):
                raise TimeoutError("nobody let go")
            return [], True

        def nodes(self, window: Window, most: int) -> tuple[Sequence[Node], bool]:
            return [], True

    by = AccessibilityWitness("desk", Held(), Now(), lambda _url: None)
    by._timeout *= 100
    looks = [asyncio.create_task(by.look(ToolBinding("desk", f"{URL}{n}"))) for n in range(40)]
    try:
        async with asyncio.timeout(PATIENCE):
            assert await asyncio.to_thread(entered.wait, PATIENCE)
            assert await asyncio.to_thread(lambda: True)
            assert not any(look.done() for look in looks)
    finally:
        held.set()
    for look in looks:
        facts = (await look).facts
        assert isinstance(facts, WatchedFacts)
        assert facts.shown is False


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("https://a.example/c/1/", "https://a.example/c/1#end", True),
        ("https://a.example/#/c/1", "https://a.example/#/c/2", False),
        ("https://a.example/#!c/1", "https://a.example/", False),
        ("https://a.example/c/1/?x=1", "https://a.example/c/1?x=1", True),
        ("https://a.example/c?x=/", "https://a.example/c?x=", False),
    ],
)
def test_which_addresses_are_the_same(one: str, two: str, same: bool) -> None:
    assert (bare(one) == bare(two)) is same
