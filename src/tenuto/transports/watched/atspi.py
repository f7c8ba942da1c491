"""The accessibility trees of Linux desktops, by AT-SPI over its own D-Bus.

Read only: windows are found, their nodes are asked for role, name, states and children, and nothing is focused, pressed
or typed. Every question is bounded in time, every walk in nodes. A window is known by its process, that process's start
and its place in it: a title is no identity, and neither is a process of many windows.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psutil

from tenuto.transports.watched.trees import NODES, Node, NotLooked, Sort, Window

if TYPE_CHECKING:
    from jeepney import Message
    from jeepney.io.blocking import DBusConnection

ACCESSIBLE: Final = "org.a11y.atspi.Accessible"
DOCUMENT: Final = "org.a11y.atspi.Document"
ROOT: Final = "/org/a11y/atspi/accessible/root"
REGISTRY: Final = "org.a11y.atspi.Registry"

#: Roles and states by their numbers in the protocol.
FRAME: Final = frozenset({23, 69})
PAGE: Final = frozenset({95, 82})
BUTTONS: Final = frozenset({43, 62})
#: Parts of a window that no page stands in.
NO_PAGE: Final = frozenset({34, 37, 38, 43, 63, 79, 40})
BUSY, ENABLED, SENSITIVE, SHOWING = 3, 8, 24, 25

#: What browsers call the attribute of a document that holds its address.
ADDRESSES: Final = ("URI", "DocURL")

ANSWER: Final = 2.0
"""Seconds in which a program answers one batch of questions."""

TIME: Final = 5.0
"""Seconds that one look may take in all."""

APPLICATIONS, WINDOWS, CHROME, BATCH = 64, 64, 2000, 48
"""The most programs, windows of each, nodes of a window around its page, and nodes that are asked at once."""

KEPT: Final = 256
"""Of how many windows it is remembered where their page stands."""

Place = tuple[str, str]


@dataclass(frozen=True)
class _Page:
    frame: Place
    page: Place


class AtSpi:
    """Implements `trees.Trees`. `bus` is the session bus's address; None: this process's own."""

    def __init__(self, bus: str | None = None) -> None:
        self._bus = bus
        self._pages: dict[Place, Place] = {}

    def windows(self) -> Sequence[Window]:
        """Every window that shows a page."""
        with _Asking(self._bus) as asking:
            found: list[Window] = []
            for application in asking.children([(REGISTRY, ROOT)])[0][:APPLICATIONS]:
                pid = asking.pid(application[0])
                program, began = _process(pid)
                for frame in self._frames(asking, application):
                    page = self._page(asking, frame)
                    url = asking.address(page) if page is not None else None
                    if page is None or not url:
                        continue
                    named = hashlib.sha256(f"{pid} {began} {frame[1]}".encode()).hexdigest()[:12]
                    found.append(Window(f"w-{named}", url, program, pid, _Page(frame, page)))
            return found

    def nodes(self, window: Window, most: int = NODES) -> tuple[Sequence[Node], bool]:
        """Nodes of a window's page, the last ones first."""
        at = window.place
        if not isinstance(at, _Page):
            raise NotLooked("that window is of another system")
        with _Asking(self._bus) as asking:
            if asking.address(at.page) != window.url:
                raise NotLooked("the window turned to another page while it was looked at")
            found: list[Node] = []
            waiting: list[Place] = list(asking.children([at.page])[0])
            while waiting and len(found) < most:
                batch = [waiting.pop() for _ in range(min(BATCH, len(waiting), most - len(found)))]
                told = asking.told(batch)
                found += [each[0] for each in told]
                for _, children in reversed(told):
                    waiting += children
            return found, not waiting

    @staticmethod
    def _frames(asking: _Asking, application: Place) -> list[Place]:
        children = asking.children([application])[0][:WINDOWS]
        roles = asking.roles(children)
        return [child for child, role in zip(children, roles, strict=True) if role in FRAME]

    def _page(self, asking: _Asking, frame: Place) -> Place | None:
        """Where the page stands that a window shows: where it stood last, or found by going through the window."""
        known = self._pages.get(frame)
        if known is not None and asking.showing([known])[0] and asking.address(known):
            return known
        self._pages.pop(frame, None)
        seen, waiting = 0, [frame]
        while waiting and seen < CHROME:
            batch, waiting = waiting[:BATCH], waiting[BATCH:]
            seen += len(batch)
            roles = asking.roles(batch)
            pages = [place for place, role in zip(batch, roles, strict=True) if role in PAGE]
            for page, shows in zip(pages, asking.showing(pages), strict=True):
                if shows and asking.address(page):
                    self._pages[frame] = page
                    while len(self._pages) > KEPT:
                        del self._pages[next(iter(self._pages))]
                    return page
            inner = [
                place for place, role in zip(batch, roles, strict=True) if role not in PAGE and role not in NO_PAGE
            ]
            for children in asking.children(inner):
                waiting += children
        return None


class _Asking:
    """One connection to the accessibility bus, for one look. Raises NotLooked where it cannot be had or is too slow."""

    def __init__(self, bus: str | None) -> None:
        try:
            import jeepney
            from jeepney.io import blocking
        except ImportError:
            raise NotLooked("jeepney is not installed", "pip install 'tenuto[accessibility]'") from None
        self._jeepney = jeepney
        self._until = time.monotonic() + TIME
        session = bus or os.environ.get("DBUS_SESSION_BUS_ADDRESS")
        if not session:
            raise NotLooked("this process has no session bus", "start the supervisor in the desktop's own session")
        try:
            with blocking.open_dbus_connection(session) as first:
                asked = self._message("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress")
                answer = first.send_and_get_reply(asked, timeout=ANSWER)
            if answer.header.message_type is not jeepney.MessageType.method_return:
                raise NotLooked("no accessibility bus runs in this session", "start at-spi-bus-launcher")
            self._line: DBusConnection = blocking.open_dbus_connection(str(answer.body[0]))
        except (OSError, TimeoutError, ValueError, EOFError) as fault:
            raise NotLooked(f"the accessibility bus cannot be reached: {fault}"[:200]) from None

    def __enter__(self) -> _Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def _message(self, to: str, path: str, face: str, method: str, *given: str) -> Message:
        address = self._jeepney.DBusAddress(path, to, face)
        return self._jeepney.new_method_call(address, method, "s" * len(given) or None, given)

    def _ask(self, messages: Iterable[Message]) -> list[Any]:
        """The answers, in the order of the questions; None for whoever refused. All are asked before any is awaited."""
        numbers: dict[int, int] = {}
        try:
            for place, message in enumerate(messages):
                number = next(self._line.outgoing_serial)
                numbers[number] = place
                self._line.send(message, serial=number)
            answers: list[Any] = [None] * len(numbers)
            until = min(time.monotonic() + ANSWER, self._until)
            while numbers:
                message = self._line.receive(timeout=max(until - time.monotonic(), 0))
                at = numbers.pop(message.header.fields.get(self._jeepney.HeaderFields.reply_serial, -1), None)
                if at is not None and message.header.message_type is self._jeepney.MessageType.method_return:
                    answers[at] = message.body
        except TimeoutError:
            raise NotLooked("a program does not answer for its window, or the look took too long") from None
        except (OSError, ValueError, EOFError) as fault:
            raise NotLooked(f"the accessibility bus broke off: {fault}"[:200]) from None
        return answers

    def _of_each(self, places: Sequence[Place], method: str) -> list[Any]:
        return self._ask(self._message(to, path, ACCESSIBLE, method) for to, path in places)

    def children(self, places: Sequence[Place]) -> list[list[Place]]:
        """The children of each; none of what is gone."""
        found = self._of_each(places, "GetChildren")
        return [[(str(to), str(path)) for to, path in each[0]] if each else [] for each in found]

    def roles(self, places: Sequence[Place]) -> list[int]:
        return [int(each[0]) if each else -1 for each in self._of_each(places, "GetRole")]

    def showing(self, places: Sequence[Place]) -> list[bool]:
        return [_has(each[0] if each else (), SHOWING) for each in self._of_each(places, "GetState")]

    def told(self, places: Sequence[Place]) -> list[tuple[Node, list[Place]]]:
        """Each as a node, with its children."""
        questions = []
        for to, path in places:
            questions += [self._message(to, path, ACCESSIBLE, each) for each in ("GetRole", "GetState", "GetChildren")]
            questions.append(self._message(to, path, "org.freedesktop.DBus.Properties", "Get", ACCESSIBLE, "Name"))
        answers = iter(self._ask(questions))
        told = []
        for role, states, children, name in zip(answers, answers, answers, answers, strict=True):
            bits, number = (states[0] if states else ()), int(role[0]) if role else -1
            called = str(name[0][1]) if name else ""
            node = Node(
                sort=Sort.BUTTON if number in BUTTONS else Sort.OTHER,
                name=called if number in BUTTONS else "",
                busy=_has(bits, BUSY),
                enabled=_has(bits, ENABLED) and _has(bits, SENSITIVE),
                shown=_has(bits, SHOWING),
                print=f"{number} {_has(bits, BUSY)} {_has(bits, ENABLED)} {called}",
            )
            told.append((node, [(str(to), str(path)) for to, path in children[0]] if children else []))
        return told

    def address(self, page: Place) -> str | None:
        """The address of a document, as its browser tells it; None where it tells none."""
        to, path = page
        asked = [self._message(to, path, DOCUMENT, "GetAttributeValue", name) for name in ADDRESSES]
        return next((str(each[0]) for each in self._ask(asked) if each and each[0]), None)

    def pid(self, to: str) -> int | None:
        bus = "org.freedesktop.DBus"
        answer = self._ask([self._message(bus, "/org/freedesktop/DBus", bus, "GetConnectionUnixProcessID", to)])[0]
        return int(answer[0]) if answer else None


def _has(bits: Sequence[int], state: int) -> bool:
    return len(bits) > state // 32 and bool(bits[state // 32] >> (state % 32) & 1)


def _process(pid: int | None) -> tuple[str, float | None]:
    """What a process is called, and when it began; nothing for one that is gone."""
    if pid is None:
        return "", None
    try:
        process = psutil.Process(pid)
        return process.name(), process.create_time()
    except psutil.Error:
        return "", None
