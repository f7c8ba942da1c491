"""The accessibility trees of Windows desktops, by UI Automation. Written to its documents, and never run on Windows.

Read only: top-level windows are found, their parts are asked for sort, name and state, and nothing is focused, pressed
or typed. Every call is bounded in time by the interface itself, every look by a moment, every walk in nodes. A window
is its process, that process's start, and its native handle: titles, processes and addresses are shared by windows.

A page's address is what its document says it is. What stands in the address bar is somebody's to type into, and leaves
out whether it is http or https; it is not even read.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from tenuto.transports.watched import com
from tenuto.transports.watched.programs import process
from tenuto.transports.watched.trees import NODES, Node, NotLooked, Sort, Window

BUTTONS: Final = frozenset({com.BUTTON, com.SPLIT_BUTTON})
#: Parts of a window that no page stands in: what is pressed, read or typed in, and what holds rows and items.
NO_PAGE: Final = frozenset(
    {*range(com.BUTTON, com.STATUS_BAR + 1), com.TEXT, com.TOOL_TIP, com.TREE, com.TREE_ITEM, com.THUMB}
    | {com.DATA_GRID, com.DATA_ITEM, com.SPLIT_BUTTON, *range(com.HEADER, com.SEPARATOR + 1)}
)
#: Windows of programs that show pages, by their class; and what calls itself a page's maker.
BROWSERS: Final = frozenset({"Chrome_WidgetWin_1", "MozillaWindowClass"})
WEB: Final = frozenset({"Chrome", "Gecko", "InternetExplorer", "MicrosoftEdge"})

ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://|(?:about|blob|data):")
"""How an address begins that says what it is an address of."""

ANSWER: Final = 2.0
"""Seconds in which a program answers one question."""

TIME: Final = 5.0
"""Seconds that one look may take in all."""

WINDOWS, CHROME = 128, 2000
"""The most top-level windows, and nodes of each around its page."""

AROUND: Final = (
    com.RUNTIME_ID, com.PROCESS_ID, com.CONTROL_TYPE, com.CLASS_NAME, com.WINDOW_HANDLE, com.IS_OFFSCREEN,
    com.FRAMEWORK_ID, com.VISUAL_STATE,
)  # fmt: skip
INSIDE: Final = (com.CONTROL_TYPE, com.NAME, com.IS_ENABLED, com.IS_OFFSCREEN, com.ARIA_PROPERTIES)

_T = TypeVar("_T")


class _Failed(Exception):
    """One question was not answered; `code` is the number that the interface gives for it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{code:#x}")
        self.code = code


@dataclass(frozen=True)
class _Top:
    """A top-level window: its native handle, and whose it is."""

    handle: int
    pid: int
    began: float | None


@dataclass(frozen=True)
class _Place:
    top: _Top
    page: tuple[int, ...]


@dataclass(frozen=True)
class _Page:
    """A document that says an address. `at` is good only within the look that found it."""

    at: com.Element
    id: tuple[int, ...]
    url: str


class Uia:
    """Implements `trees.Trees`. `opened` gives the object that is asked; it is called anew for each look."""

    def __init__(self, opened: Callable[[], com.Automation] = com.created) -> None:
        self._opened = opened

    def windows(self) -> tuple[Sequence[Window], bool]:
        """Every window that shows a page, once for each page that it shows, and whether these are all."""
        with _asking(self._opened) as asking:
            found: list[Window] = []
            tops, whole = asking.tops()
            for top, element in tops:
                pages, all_of_it = asking.pages(element)
                if not all_of_it and asking.closed(top):
                    continue  # what ended meanwhile shows nothing; the others live
                whole = whole and all_of_it
                program, _ = process(top.pid)
                known = f"{top.pid} {top.began} {top.handle}"
                named = f"w-{hashlib.sha256(known.encode()).hexdigest()[:12]}"
                found += [Window(named, page.url, program, top.pid, _Place(top, page.id)) for page in pages]
            return found, whole

    def nodes(self, window: Window, most: int = NODES) -> tuple[Sequence[Node], bool]:
        """Nodes of a window's page, the last ones first."""
        place = window.place
        if not isinstance(place, _Place):
            raise NotLooked("that window is of another system")
        with _asking(self._opened) as asking:
            top = asking.still(place.top)
            if top is None:
                raise NotLooked("the window was closed while it was looked at")
            if asking.minimized(top):
                raise NotLooked("its window is minimized, and a page that nobody sees is not told", "restore it")
            pages, _ = asking.pages(top)
            page = next((page for page in pages if page.id == place.page), None)
            if page is None or page.url != window.url:
                raise NotLooked("the window turned to another page while it was looked at")
            return asking.nodes(page.at, most)


@contextmanager
def _asking(opened: Callable[[], com.Automation]) -> Iterator[_Asking]:
    """One look. What fails of it outside of a walk is said in words."""
    try:
        yield _Asking(opened())
    except _Failed as failed:
        _said(failed)


def _said(failed: _Failed) -> NoReturn:
    if failed.code in com.LATE:
        raise NotLooked("a program does not answer for its window, or the look took too long") from None
    if failed.code == com.ACCESS_DENIED:
        mend = "run the supervisor with the same rights as the browser, in the same desktop"
        raise NotLooked("Windows does not let this program look at the window", mend) from None
    if failed.code in com.GONE:
        raise NotLooked("the window was closed while it was looked at") from None
    raise NotLooked(f"UI Automation failed with {failed}") from None


class _Asking:
    """One look: what is asked, and until when. Nothing of it outlives the look."""

    def __init__(self, automation: com.Automation) -> None:
        self._until = time.monotonic() + TIME
        self._automation = automation
        self._now(self._bounded)
        self._walker = self._now(lambda: automation.RawViewWalker)
        self._around = self._request(AROUND)
        self._inside = self._request(INSIDE)
        self._address = self._request((com.VALUE,))

    def _bounded(self) -> None:
        self._automation.AutoSetFocus = 0
        self._automation.ConnectionTimeout = self._automation.TransactionTimeout = int(ANSWER * 1000)

    def _now(self, ask: Callable[[], _T]) -> _T:
        """Ask one question, if there is time. Raises _Failed."""
        if time.monotonic() > self._until:
            raise NotLooked("a program does not answer for its window, or the look took too long")
        try:
            return ask()
        except Exception as fault:
            code = com.number(fault)
            if code is None:
                raise
        raise _Failed(code)

    def _request(self, properties: Sequence[int]) -> com.Request:
        made = self._now(self._automation.CreateCacheRequest)

        def fill() -> None:
            made.TreeFilter = self._automation.RawViewCondition
            for each in properties:
                made.AddProperty(each)

        self._now(fill)
        return made

    def tops(self) -> tuple[list[tuple[_Top, com.Element]], bool]:
        """The top-level windows, and whether these are all."""
        ask = self._automation
        root = self._now(ask.GetRootElement)
        array = self._now(lambda: root.FindAllBuildCache(com.CHILDREN, ask.CreateTrueCondition(), self._around))
        length = self._now(lambda: array.Length)
        whole, found = length <= WINDOWS, []
        for index in range(min(length, WINDOWS)):
            try:
                element = self._now(lambda at=index: array.GetElement(at))  # type: ignore[misc]
                if not element or self._told(element, com.CONTROL_TYPE, 0) in NO_PAGE:
                    continue
                top = self._top(element)
                whole = whole and top.handle != 0
                found += [(top, element)] if top.handle else []
            except _Failed as failed:
                whole = whole and failed.code in com.GONE
        return found, whole

    def _top(self, element: com.Element) -> _Top:
        pid = self._told(element, com.PROCESS_ID, 0)
        return _Top(self._told(element, com.WINDOW_HANDLE, 0), pid, process(pid or None)[1])

    def still(self, top: _Top) -> com.Element | None:
        """The window anew; None where its handle is of no window now, or of another program's."""
        try:
            element = self._now(lambda: self._automation.ElementFromHandleBuildCache(top.handle, self._around))
            return element if element and self._top(element) == top else None
        except _Failed as failed:
            if failed.code in com.GONE:
                return None
            raise

    def closed(self, top: _Top) -> bool:
        """Whether that window is gone; not where that cannot be told."""
        try:
            return self.still(top) is None
        except _Failed:
            return False

    def minimized(self, top: com.Element) -> bool:
        return self._told(top, com.VISUAL_STATE, 0) == com.MINIMIZED

    def pages(self, top: com.Element) -> tuple[list[_Page], bool]:
        """The pages of a window, found by going through what stands around them, and whether these are all.

        Every part's own are asked one by one in turn with the others', so that a crowd hides no page beside it.
        Of a minimized window these are all that it holds, for nobody says which of them it would show.
        """
        found: list[_Page] = []
        browser, hidden = self._told(top, com.CLASS_NAME, "") in BROWSERS, self.minimized(top)
        whole, seen = True, 0
        first, following = self._walker.GetFirstChildElementBuildCache, self._walker.GetNextSiblingElementBuildCache
        waiting = deque([(first, top)])
        while waiting:
            step, at = waiting.popleft()
            try:
                element = self._now(lambda go=step, of=at: go(of, self._around))  # type: ignore[misc]
                if not element:
                    continue
                if seen >= CHROME:
                    return found, False
                seen += 1
                waiting.append((following, element))
                sort = self._told(element, com.CONTROL_TYPE, 0)
                if sort != com.DOCUMENT:
                    waiting += [(first, element)] if sort not in NO_PAGE else []
                elif hidden or not self._told(element, com.IS_OFFSCREEN, False):
                    page = self._page(element)
                    if page is not None:
                        found.append(page)
                    elif browser or self._told(element, com.FRAMEWORK_ID, "") in WEB:
                        whole = False
            except _Failed as failed:
                if failed.code in com.LATE:
                    return found, False  # the rest of it would be waited for as long
                whole = False
        return found, whole and bool(found or not browser)

    def _page(self, element: com.Element) -> _Page | None:
        updated = self._now(lambda: element.BuildUpdatedCache(self._address))
        url = self._told(updated, com.VALUE, "") if updated else ""
        if ADDRESS.match(url) is None:
            return None
        return _Page(element, tuple(self._told(element, com.RUNTIME_ID, ())), url)

    def nodes(self, page: com.Element, most: int) -> tuple[list[Node], bool]:
        """At most so many nodes of a page, the last ones first, and whether these are all."""
        found: list[Node] = []
        whole = True
        last, before = self._walker.GetLastChildElementBuildCache, self._walker.GetPreviousSiblingElementBuildCache
        waiting = [(last, page)]
        while waiting:
            step, at = waiting.pop()
            try:
                element = self._now(lambda go=step, of=at: go(of, self._inside))  # type: ignore[misc]
                if not element:
                    continue
                if len(found) >= most:
                    return found, False
                waiting += [(before, element), (last, element)]
                found.append(self._node(element))
            except _Failed as failed:
                if failed.code not in com.GONE:
                    raise
                whole = False
        return found, whole

    def _node(self, element: com.Element) -> Node:
        sort, name = self._told(element, com.CONTROL_TYPE, 0), self._told(element, com.NAME, "")
        enabled = self._told(element, com.IS_ENABLED, False)
        busy = "busy=true" in self._told(element, com.ARIA_PROPERTIES, "").lower().split(";")
        return Node(
            sort=Sort.BUTTON if sort in BUTTONS else Sort.OTHER,
            name=name if sort in BUTTONS else "",
            busy=busy,
            enabled=enabled,
            shown=not self._told(element, com.IS_OFFSCREEN, False),
            print=f"{sort} {busy} {enabled} {name}",
        )

    def _told(self, element: com.Element, wanted: int, otherwise: _T) -> _T:
        """A property that came along with an element; `otherwise` where it has none of that sort."""
        value: Any = self._now(lambda: element.GetCachedPropertyValue(wanted))
        if isinstance(otherwise, bool):
            return bool(value)  # type: ignore[return-value]
        return value if isinstance(value, type(otherwise)) else otherwise
