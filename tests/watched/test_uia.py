"""The trees of Windows where they fail: parts that go, programs that hang or refuse, and what is minimized.

Over a stub of UI Automation; nothing of this was tried on Windows.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.uia import COMError, Desktop, Part

from tenuto import sites
from tenuto.config import PageWitnessAt, Settings, load
from tenuto.model.tools import Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.transports.watched import com, uia
from tenuto.transports.watched.accessibility import AccessibilityWitness
from tenuto.transports.watched.trees import NODES, NotLooked
from tenuto.transports.watched.uia import Uia
from tenuto.wiring import examining, witnesses

URL, OTHER = "https://chatgpt.com/c/1", "https://chatgpt.com/c/2"
SITE = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
PATIENCE = 120.0
FIRST, LAST = "GetFirstChildElementBuildCache", "GetLastChildElementBuildCache"
NEXT, BEFORE = "GetNextSiblingElementBuildCache", "GetPreviousSiblingElementBuildCache"
UNEXPECTED = 0x8000FFFF

pytestmark = pytest.mark.timeout(600)


def part(sort: int, *parts: Part, fails: Mapping[str, int] | None = None, **told: Any) -> Part:
    names = {"name": com.NAME, "value": com.VALUE, "off": com.IS_OFFSCREEN, "enabled": com.IS_ENABLED}
    return Part(
        {com.CONTROL_TYPE: sort, **{names[key]: each for key, each in told.items()}}, list(parts), dict(fails or {})
    )


SEND, STOP = "Send prompt", "Stop streaming"


def button(name: str) -> Part:
    return part(com.BUTTON, name=name, enabled=True)


def page(url: str, *parts: Part, **more: Any) -> Part:
    made = part(com.DOCUMENT, *parts, value=url, **more)
    made.told |= {com.FRAMEWORK_ID: "Chrome", com.RUNTIME_ID: (42, id(made))}
    return made


def window(handle: int, *parts: Part, shape: str = "Chrome_WidgetWin_1", pid: int = 7, state: int = 0) -> Part:
    bar = part(com.EDIT, value="chatgpt.com/c/1")
    made = part(com.WINDOW, part(50021, bar), part(com.PANE, *parts))
    made.told |= {com.WINDOW_HANDLE: handle, com.PROCESS_ID: pid, com.CLASS_NAME: shape, com.VISUAL_STATE: state}
    return made


@pytest.fixture(autouse=True)
def _processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uia, "process", lambda pid: ("browser", float(pid)) if pid else ("", None))


class Standing:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def trees(desktop: Desktop) -> Uia:
    return Uia(desktop.opened)  # type: ignore[arg-type]  # a stub has no more than is used


async def seen(by: Desktop | Uia, url: str = URL) -> WatchedFacts:
    over = trees(by) if isinstance(by, Desktop) else by
    witness = AccessibilityWitness("desk", over, Standing(), lambda _url: SITE, timedelta(seconds=PATIENCE))
    facts = (await witness.look(ToolBinding("desk", url))).facts
    assert isinstance(facts, WatchedFacts)
    return facts


def flaws(facts: WatchedFacts) -> list[Flaw]:
    return [defect.flaw for defect in facts.defects]


# -- nothing but reading


async def test_nothing_is_focused_and_no_value_but_that_of_a_document_is_read() -> None:
    desktop = Desktop(window(1, page(URL, part(com.EDIT, value="a draft"), button(SEND))))
    assert (await seen(desktop)).send_ready is True
    assert not desktop.AutoSetFocus
    assert desktop.ConnectionTimeout == desktop.TransactionTimeout == uia.ANSWER * 1000
    assert {sort for sort, told in desktop.read if told == com.VALUE} == {com.DOCUMENT}


# -- an address is what a document says


@pytest.mark.parametrize(
    "value", ["", "chatgpt.com/c/1", "chatgpt.com/c/1?from=https://a.example/", "127.0.0.1:80/c/1"]
)
async def test_an_address_without_its_scheme_is_none_and_what_the_bar_says_is_none(value: str) -> None:
    desktop = Desktop(window(1, page(value)))
    assert trees(desktop).windows() == ([], False)
    assert flaws(await seen(desktop)) == [Flaw.UNREADABLE]
    word = window(2, part(com.DOCUMENT, value="Letter to nobody"), shape="OpusApp")
    assert trees(Desktop(word)).windows() == ([], True), "a document of something else is no page"


async def test_a_browser_that_shows_no_document_yet_is_no_absence() -> None:
    assert (await seen(Desktop(window(1)))).shown is None
    assert (await seen(Desktop(window(1, shape="Notepad")))).shown is False
    assert (await seen(Desktop(window(1, page(URL, off=True))))).shown is None, "nor one that hides all it has"


async def test_a_document_that_says_nothing_beside_one_that_does_is_no_absence() -> None:
    silent = part(com.DOCUMENT)
    assert (await seen(Desktop(window(1, page(OTHER), silent)))).shown is None
    assert (await seen(Desktop(window(1, page(OTHER), silent, shape="Anything")))).shown is False


def test_two_documents_of_one_address_in_a_window_are_each_read() -> None:
    over = trees(Desktop(window(1, page(URL, button(STOP)), page(URL, button(SEND)))))
    one, two = over.windows()[0]
    assert one.id == two.id
    assert [over.nodes(each)[0][0].name for each in (one, two)] == [STOP, SEND]


def test_where_no_page_can_stand_nobody_looks() -> None:
    fails = {FIRST: com.ACCESS_DENIED}
    menu = part(com.MENU, fails=fails)
    menu.told[com.WINDOW_HANDLE] = 9
    desktop = Desktop(menu, window(1, part(com.LIST, part(50007), fails=fails), page(URL)))
    (found,), whole = trees(desktop).windows()
    assert (found.url, whole) == (URL, True)
    assert trees(Desktop(window(0, page(URL)))).windows() == ([], False), "what has no handle cannot be named"


# -- failures, each in one window, beside another that is well


@pytest.mark.parametrize("code", [com.ACCESS_DENIED, com.TIMED_OUT, com.ELEMENT_NOT_AVAILABLE, UNEXPECTED])
@pytest.mark.parametrize("call", [FIRST, NEXT])
async def test_a_window_that_cannot_be_gone_through_is_no_absence_and_hides_no_other(call: str, code: int) -> None:
    broken = window(1)
    broken.parts[1].fails[call] = code
    desktop = Desktop(broken, window(2, page(OTHER, button(STOP))))
    assert flaws(await seen(desktop)) == [Flaw.UNREADABLE]
    other = await seen(desktop, OTHER)
    assert (other.shown, other.generating, other.defects) == (True, True, ())


async def test_a_document_whose_address_cannot_be_read_is_no_absence() -> None:
    desktop = Desktop(window(1, page(OTHER), page(URL, fails={"BuildUpdatedCache": com.ACCESS_DENIED})))
    assert (await seen(desktop)).shown is None
    assert (await seen(desktop, OTHER)).shown is True


async def test_a_program_that_hangs_is_waited_for_once() -> None:
    hung = window(1, *(part(com.PANE, fails={FIRST: com.TIMED_OUT}) for _ in range(50)))
    desktop = Desktop(hung)
    waits: list[str] = []
    desktop.before = lambda call, at: waits.append(call) if at.fails.get(call) else None
    assert (await seen(desktop)).shown is None
    assert len(waits) == 1


async def test_a_window_that_closes_while_it_is_looked_at_shows_nothing() -> None:
    closing = window(1, page(URL))
    desktop = Desktop(closing, window(2, page(OTHER)))

    def close(call: str, at: Part) -> None:
        if at is closing.parts[1] and closing.above is not None:
            closing.remove()

    desktop.before = close
    assert (await seen(desktop)).shown is False
    assert closing.above is None
    assert (await seen(desktop, OTHER)).shown is True


async def test_a_handle_that_is_another_programs_now_is_not_the_window() -> None:
    desktop = Desktop(window(1, page(URL)))
    (found,), _ = trees(desktop).windows()
    desktop.root.parts[0].told[com.PROCESS_ID] = 8
    with pytest.raises(NotLooked, match="closed"):
        trees(desktop).nodes(found)
    assert trees(desktop).windows()[0][0].id != found.id


def test_a_part_that_goes_while_a_page_is_read_leaves_it_unfinished() -> None:
    going = part(com.PANE, button(STOP), button("Share"))
    desktop = Desktop(window(1, page(URL, button("Menu"), going, button(SEND))))
    (found,), _ = trees(desktop).windows()
    assert trees(desktop).nodes(found)[1]

    def go(call: str, at: Part) -> None:
        if at is going.parts[-1] and going.above is not None:
            going.remove()

    desktop.before = go
    nodes, whole = trees(desktop).nodes(found)
    assert not whole
    assert [node.name for node in nodes] == [SEND, "", "Share"]


@pytest.mark.parametrize(
    ("code", "says"),
    [(com.TIMED_OUT, "answer"), (com.ACCESS_DENIED, "rights"), (UNEXPECTED, "0x8000ffff")],
)
async def test_a_page_that_cannot_be_read_is_a_flaw_that_says_why(code: int, says: str) -> None:
    facts = await seen(Desktop(window(1, page(URL, button(SEND), fails={LAST: code}))))
    assert facts.shown is None
    assert flaws(facts) == [Flaw.UNREADABLE]
    assert says in facts.defects[0].why
    refused = Desktop(window(1, page(URL)))
    refused.root.fails["FindAllBuildCache"] = code
    assert says in (await seen(refused)).defects[0].why


async def test_what_is_no_failure_of_the_interface_is_a_flaw_too() -> None:
    desktop = Desktop(window(1, page(URL)))

    def wrong(call: str, at: Part) -> None:
        raise ValueError("NULL COM pointer access")

    desktop.before = wrong
    assert "ValueError" in (await seen(desktop)).defects[0].why


# -- bounds


async def test_a_tree_without_an_end_is_read_as_far_as_is_allowed() -> None:
    long = [part(50020, name=f"line {number}") for number in range(5 * NODES)]
    desktop = Desktop(window(1, page(URL, button(STOP), *long, button(SEND))))
    (found,), _ = trees(desktop).windows()
    desktop.calls = 0
    nodes, whole = trees(desktop).nodes(found)
    assert (len(nodes), whole, nodes[0].name) == (NODES, False, SEND)
    assert desktop.calls < 2 * NODES + 50
    facts = await seen(desktop)
    assert (facts.generating, facts.send_ready) == (None, True), "what was not read may hold a Stop"


async def test_a_window_with_too_much_around_its_page_is_no_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uia, "CHROME", 20)
    desktop = Desktop(window(1, *(part(com.PANE) for _ in range(100)), page(URL), shape="Anything"))
    assert (await seen(desktop)).shown is None
    assert desktop.calls < 60
    monkeypatch.setattr(uia, "WINDOWS", 1)
    assert trees(Desktop(window(1, page(OTHER)), window(2, page(URL)))).windows()[1] is False


async def test_a_crowd_beside_a_page_does_not_hide_it() -> None:
    crowd = part(com.PANE, *(part(com.PANE) for _ in range(2 * uia.CHROME)))
    desktop = Desktop(window(1, crowd, part(com.PANE, part(com.PANE, page(URL, button(STOP))))))
    assert (await seen(desktop)).generating is True
    assert (await seen(desktop, OTHER)).shown is None, "any of the crowd may hold it"


@pytest.mark.parametrize("ask", ["windows", "nodes"])
def test_a_look_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, ask: str) -> None:
    desktop = Desktop(window(1, page(URL, *(button(f"{number}") for number in range(100)))))
    (found,), _ = trees(desktop).windows()
    at = [0.0]
    monkeypatch.setattr(uia, "time", SimpleNamespace(monotonic=lambda: at[0]))

    def slow(call: str, of: Part) -> None:
        at[0] += 1.0

    desktop.before = slow
    desktop.calls = 0
    with pytest.raises(NotLooked, match="too long"):
        trees(desktop).windows() if ask == "windows" else trees(desktop).nodes(found)
    assert desktop.calls <= uia.TIME + 1


# -- minimized


async def test_a_page_of_a_minimized_window_is_neither_told_nor_absent() -> None:
    desktop = Desktop(window(1, page(URL, button(STOP), off=True), state=com.MINIMIZED))
    facts = await seen(desktop)
    assert facts.shown is None
    assert "minimized" in facts.defects[0].why
    assert "restore" in facts.defects[0].why
    assert (await seen(desktop, OTHER)).shown is False, "it holds that page and no other"
    desktop.root.parts[0].told[com.VISUAL_STATE] = 0
    desktop.root.parts[0].parts[1].parts[0].told[com.IS_OFFSCREEN] = False
    assert (await seen(desktop)).generating is True
    assert (await seen(Desktop(window(1, state=com.MINIMIZED)))).shown is None, "it may hold anything"


# -- how the object is had


def test_without_comtypes_what_to_install_is_said_by_the_doctor_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "comtypes", None)
    with pytest.raises(NotLooked) as why:
        Uia().windows()
    assert (str(why.value), "tenuto[accessibility]" in why.value.mend) == ("comtypes is not installed", True)
    settings: Settings = load({"TENUTO_HOME": str(tmp_path)})
    monkeypatch.setattr(witnesses, "trees_of", lambda _where: Uia())
    at = {"desk": PageWitnessAt("accessibility", None)}
    (check,) = examining._witnesses(replace(settings, page_witnesses=at))
    assert check.ok is False
    assert "comtypes" in check.found
    assert "pip install" in check.found


def in_a_thread(what: Callable[[], object]) -> list[object]:
    """What it gives, or the error that it raises, in a thread that has done nothing before."""
    told: list[object] = []

    def run() -> None:
        try:
            told.append(what())
        except NotLooked as why:
            told.append(why)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise TimeoutError("it goes on without an end")
    return told


class Comtypes:
    """The few names of comtypes that are used, as its documents have them."""

    COINIT_MULTITHREADED = 0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered: list[int] = []
        self.asked: list[object] = []
        self.apartment: OSError | None = None
        self.fault: Exception | None = None
        self.made = Desktop()
        self.client = self
        monkeypatch.setitem(sys.modules, "comtypes", self)
        monkeypatch.setitem(sys.modules, "comtypes.client", self)

    def CoInitializeEx(self, flags: int) -> None:  # noqa: N802
        self.entered.append(flags)
        if self.apartment is not None:
            raise self.apartment

    def GetModule(self, library: object) -> object:  # noqa: N802
        self.asked.append(library)
        if self.fault is not None:
            raise self.fault
        return SimpleNamespace(CUIAutomation8="the class", IUIAutomation2="the interface")

    def CreateObject(self, made_of: object, interface: object) -> Desktop:  # noqa: N802
        assert (made_of, interface) == ("the class", "the interface")
        return self.made


def test_a_thread_enters_its_apartment_once_and_one_that_is_in_another_is_no_hindrance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = Comtypes(monkeypatch)
    for apartment in (None, OSError(-2147417850, "it is in another")):
        given.apartment = apartment
        given.entered.clear()
        assert in_a_thread(lambda: (com.created(), com.created())) == [(given.made, given.made)]
        assert given.entered == [given.COINIT_MULTITHREADED]
    assert set(given.asked) == {com.LIBRARY}


@pytest.mark.parametrize("fault", [OSError("no such library"), COMError(0x80040154)], ids=["library", "class"])
def test_where_it_is_not_registered_that_is_said(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    given = Comtypes(monkeypatch)
    given.fault = fault
    (why,) = in_a_thread(com.created)
    assert isinstance(why, NotLooked)
    assert ("0x80040154" if isinstance(fault, COMError) else "OSError") in str(why)
    assert why.mend
