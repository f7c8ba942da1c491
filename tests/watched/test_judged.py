"""What trees and tabs come to, and which of them is looked at: without any browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tenuto import sites
from tenuto.model.evidence import Rank
from tenuto.model.faults import Mistake
from tenuto.model.tools import Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.transports.addresses import bare
from tenuto.transports.watched.accessibility import AccessibilityWitness, chosen
from tenuto.transports.watched.atspi import AtSpi
from tenuto.transports.watched.devtools import DevToolsWitness
from tenuto.transports.watched.trees import Node, NotLooked, Sort, Window, judged

URL = "https://chatgpt.com/c/1"
SITE = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
SECRET = "the launch code is 0000"


@dataclass
class Standing:
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at

    def monotonic(self) -> float:
        return 0.0


def button(name: str, *, enabled: bool = True, shown: bool = True) -> Node:
    return Node(Sort.BUTTON, name, False, enabled, shown, f"43 {name} {enabled}")


def words(text: str, *, busy: bool = False) -> Node:
    return Node(Sort.OTHER, "", busy, True, True, f"61 {text} {busy}")


STOP, SEND = button("Stop streaming"), button("  Send   prompt ")
DECOYS = (button("Stop reading aloud"), button("Stop dictation"), button("Stop recording"))


@pytest.mark.parametrize(
    ("nodes", "whole", "profile", "generating", "ready"),
    [
        ((STOP,), True, SITE, True, None),
        ((STOP, SEND), True, SITE, True, False),
        ((SEND,), True, SITE, False, True),
        ((button("Send prompt", enabled=False),), True, SITE, False, False),
        ((SEND,), False, SITE, None, True),
        ((button("Stop streaming", shown=False), SEND), True, SITE, False, True),
        (DECOYS, True, SITE, None, None),
        ((*DECOYS, SEND), True, SITE, False, True),
        ((words("Stop streaming"),), True, SITE, None, None),
        ((words("so far", busy=True),), True, SITE, True, None),
        ((words("so far", busy=True),), True, None, True, None),
        ((STOP, SEND), True, None, None, None),
        ((), True, SITE, None, None),
    ],
)
def test_what_nodes_come_to(
    nodes: tuple[Node, ...], whole: bool, profile: Mapping[str, Any] | None, generating: bool | None, ready: bool | None
) -> None:
    told = judged(nodes, whole, profile)
    assert (told.generating, told.send_ready) == (generating, ready)


def test_a_change_is_seen_and_no_word_is_kept() -> None:
    one, two = judged([words(SECRET)], True, SITE), judged([words(SECRET + "!")], True, SITE)
    assert one.digest != two.digest
    assert SECRET not in repr(one)
    assert judged([words("a"), words("b")], True, SITE).digest != judged([words("ab")], True, SITE).digest


# -- which window


@pytest.mark.parametrize(
    ("session", "among", "window", "flaw"),
    [
        (URL, [("a", URL)], "a", None),
        (URL, [("a", f"{URL}/#end")], "a", None),
        (URL, [("a", f"{URL}2"), ("b", f"{URL}?x=1")], None, None),
        (URL, [("a", URL), ("b", URL)], None, Flaw.DUPLICATED),
        (f"{URL} in b", [("a", URL), ("b", URL)], "b", None),
        (f"{URL} in b", [("a", URL), ("b", "https://chatgpt.com/")], None, None),
        (f"{URL} in c", [("a", URL), ("b", URL)], None, None),
        (URL, [], None, None),
    ],
)
def test_exactly_one_window_is_looked_at(
    session: str, among: list[tuple[str, str]], window: str | None, flaw: Flaw | None
) -> None:
    binding = ToolBinding("desk", session)
    assert binding.page is not None
    found = chosen(binding, binding.page, among)
    if window is not None:
        assert found == [name for name, _ in among].index(window)
        return
    assert isinstance(found, WatchedFacts)
    assert found.shown is (flaw is not None)
    assert [defect.flaw for defect in found.defects] == ([flaw] if flaw is not None else [])


def test_addresses_are_compared_without_what_means_nothing() -> None:
    assert bare("https://a.example/c/1/#x") == "https://a.example/c/1"
    assert bare("https://a.example/c/1?x") != bare("https://a.example/c/1")


# -- the witness over any system's trees


@dataclass
class Trees:
    """A system's trees that show what they are told; another system's side would be such a one too."""

    open: list[Window] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    whole: bool = True
    all: bool = True
    why: NotLooked | None = None
    held: threading.Event | None = None
    most: int = 0

    def windows(self) -> tuple[Sequence[Window], bool]:
        if self.held is not None:
            self.held.wait(120)
        if self.why is not None:
            raise self.why
        return self.open, self.all

    def nodes(self, window: Window, most: int) -> tuple[Sequence[Node], bool]:
        self.most = most
        return self.parts, self.whole


def window(name: str, url: str = URL) -> Window:
    return Window(name, url, "browser", 7, name)


def witness(trees: Trees, **more: Any) -> AccessibilityWitness:
    return AccessibilityWitness("desk", trees, Standing(), lambda _url: SITE, **more)


async def seen(by: AccessibilityWitness, session: str = URL) -> WatchedFacts:
    look = await by.look(ToolBinding("desk", session))
    assert (look.rank, look.source, look.subject) == (Rank.OUTSIDE, "accessibility", f"desk/{session}")
    assert isinstance(look.facts, WatchedFacts)
    return look.facts


async def test_a_page_is_looked_at_and_its_change_is_dated() -> None:
    trees = Trees([window("w-1"), window("w-2", "https://other.example/")], [SEND, words(SECRET)])
    by = witness(trees)
    first = await seen(by)
    assert (first.shown, first.window, first.generating, first.send_ready) == (True, "w-1", False, True)
    assert first.changed_at is None
    assert (await seen(by)).changed_at is None, "what was only looked at again has not changed"
    trees.parts = [STOP, words(SECRET + " and more")]
    then = await seen(by)
    assert then.generating is True
    assert then.changed_at is not None
    assert SECRET not in repr(then)
    assert trees.most > 0


async def test_a_clock_that_went_back_hides_no_change_and_leaves_no_moment_to_come() -> None:
    clock, trees = Standing(), Trees([window("w-1")], [words("one")])
    by = AccessibilityWitness("desk", trees, clock, lambda _url: SITE)
    await seen(by)
    trees.parts = [words("two")]
    assert (await seen(by)).changed_at is not None
    clock.at -= timedelta(hours=1)
    assert (await seen(by)).changed_at is None
    trees.parts = [words("three")]
    changed = (await seen(by)).changed_at
    assert changed is not None
    assert changed <= clock.at


async def test_a_look_is_dated_by_when_it_began() -> None:
    clock = Standing()
    by = AccessibilityWitness("desk", Trees([window("w-1")], [SEND]), clock, lambda _url: SITE)
    begins = clock.at + timedelta(seconds=1)
    look = await by.look(ToolBinding("desk", URL))
    assert look.seen_at == begins < clock.at


async def test_two_windows_of_one_address_are_refused_until_one_is_named() -> None:
    trees = Trees([window("w-1"), window("w-2")], [SEND])
    both = await seen(witness(trees))
    assert both.generating is None
    assert "w-1, w-2" in both.defects[0].why
    assert (await seen(witness(trees), f"{URL} in w-2")).window == "w-2"
    trees.open = [window("w-1")]
    assert (await seen(witness(trees), f"{URL} in w-2")).shown is False


async def test_nobody_to_ask_is_no_absence() -> None:
    held = threading.Event()
    for trees in (Trees(why=NotLooked("no bus", "start it")), Trees([window("w-1")], held=held)):
        by = witness(trees, timeout=timedelta(seconds=0.1 if trees.held else 120))
        unseen = await seen(by)
        assert unseen.shown is None
        assert [defect.flaw for defect in unseen.defects] == [Flaw.UNREADABLE]
        with pytest.raises(Mistake):
            await by.shown()
    held.set()


async def test_the_pages_that_are_seen_are_listed() -> None:
    (page,) = await witness(Trees([window("w-1")])).shown()
    assert (page.witness, page.window, page.url, page.program, page.pid) == ("desk", "w-1", URL, "browser", 7)


async def test_no_bus_and_no_browser_are_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    for trees, why in ((AtSpi(), "no session bus"), (AtSpi(f"unix:path={tmp_path}/none"), "cannot be reached")):
        by = AccessibilityWitness("desk", trees, Standing(), lambda _url: None)
        assert why in (await seen(by)).defects[0].why
    quiet = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = quiet.sockets[0].getsockname()[1]
    async with quiet:
        tabs = DevToolsWitness("web", f"127.0.0.1:{port}", Standing(), lambda _url: None, tmp_path)
        look = await tabs.look(ToolBinding("web", URL))
        assert isinstance(look.facts, WatchedFacts)
        assert look.facts.shown is None
        assert look.facts.defects[0].flaw is Flaw.UNREADABLE
        with pytest.raises(Mistake):
            await tabs.shown()
