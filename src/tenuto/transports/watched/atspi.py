"""The accessibility trees of Linux desktops, by AT-SPI over its own D-Bus.

Read only: windows are found, their nodes are asked for role, name, states and children, and nothing is focused, pressed
or typed. Every question is bounded in time, every walk in nodes. A window is known by its process, that process's start
and its place in it: a title is no identity, and neither is a process of many windows.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tenuto.transports.watched.programs import process
from tenuto.transports.watched.trees import NODES, Node, NotLooked, Sort, Window

if TYPE_CHECKING:
    from jeepney import Message

ACCESSIBLE: Final = "org.a11y.atspi.Accessible"
DOCUMENT: Final = "org.a11y.atspi.Document"
ROOT: Final = "/org/a11y/atspi/accessible/root"
REGISTRY: Final = "org.a11y.atspi.Registry"

#: Roles and states by their numbers in the protocol.
FRAME: Final = frozenset({23, 69})
WEB: Final = 95
PAGE: Final = frozenset({WEB, 82})
BUTTONS: Final = frozenset({43, 62})
#: Parts of a window that no page stands in: what is pressed, read or typed in, and what holds rows, items and tabs.
NO_PAGE: Final = frozenset(
    {7, 8, 11, 26, 27, 29, 31, 32, 33, 34, 35, 37, 38, 40, 41, 42, 43, 44, 45, 48, 50, 51, 52, 55, 56, 57, 58, 59, 61}
    | {62, 63, 64, 65, 66, 79, 88, 90, 91, 98}
)
BUSY, ENABLED, SENSITIVE, SHOWING = 3, 8, 24, 25

#: What browsers call the attribute of a document that holds its address.
ADDRESSES: Final = ("URI", "DocURL")

ANSWER: Final = 2.0
"""Seconds in which a program answers one batch of questions."""

TIME: Final = 5.0
"""Seconds that one look may take in all."""

APPLICATIONS, WINDOWS, CHROME, AROUND, BATCH = 64, 64, 2000, 20_000, 48
"""The most programs, windows of each, nodes around a window's page that are gone into and that are asked what they are,
and nodes that are asked at once."""

FEW: Final = 16
"""How many of one part's own are asked before it is others' turn."""

SIZE: Final = 64 * 1024 * 1024
"""The most bytes that one look takes in."""

Place = tuple[str, str]


@dataclass(frozen=True)
class _Page:
    frame: Place
    page: Place


class AtSpi:
    """Implements `trees.Trees`. `bus` is the session bus's address; None: this process's own."""

    def __init__(self, bus: str | None = None) -> None:
        self._bus = bus

    def windows(self) -> tuple[Sequence[Window], bool]:
        """Every window that shows a page, once for each page that it shows, and whether these are all."""
        with _Asking(self._bus) as asking:
            found: list[Window] = []
            applications = asking.children([(REGISTRY, ROOT)])[0]
            if applications is None:
                raise NotLooked("the accessibility bus does not say which programs there are")
            whole = len(applications) <= APPLICATIONS
            for application in applications[:APPLICATIONS]:
                pid = asking.pid(application[0])
                program, began = process(pid)
                seen, all_of_it = self._of_program(asking, application)
                if not all_of_it and asking.pid(application[0]) is not None:
                    whole = False  # what ended meanwhile shows nothing; this one lives
                for page, url in seen:
                    known = f"{pid} {began} {page.frame[1]}"
                    if pid is None or began is None:
                        known += f" {page.frame[0]}"
                    named = hashlib.sha256(known.encode()).hexdigest()[:12]
                    found.append(Window(f"w-{named}", url, program, pid, page))
            return found, whole

    def nodes(self, window: Window, most: int = NODES) -> tuple[Sequence[Node], bool]:
        """Nodes of a window's page, the last ones first."""
        at = window.place
        if not isinstance(at, _Page):
            raise NotLooked("that window is of another system")
        with _Asking(self._bus) as asking:
            if asking.address(at.page) != window.url:
                raise NotLooked("the window turned to another page while it was looked at")
            found: list[Node] = []
            first = asking.children([at.page])[0]
            whole, waiting = first is not None, list(first or ())
            while waiting and len(found) < most:
                batch = [waiting.pop() for _ in range(min(BATCH, len(waiting), most - len(found)))]
                told = asking.told(batch)
                found += [each[0] for each in told]
                for _, children in reversed(told):
                    whole = whole and children is not None
                    waiting += children or ()
            return found, whole and not waiting

    def _of_program(self, asking: _Asking, application: Place) -> tuple[list[tuple[_Page, str]], bool]:
        """The pages of a program's windows with their addresses, and whether these are all."""
        children = asking.children([application])[0]
        if children is None:
            return [], False
        whole, children = len(children) <= WINDOWS, children[:WINDOWS]
        found = []
        for frame, role in zip(children, asking.roles(children), strict=True):
            whole = whole and role is not None
            if role in FRAME:
                seen, all_of_it = self._of_frame(asking, frame)
                found += seen
                whole = whole and all_of_it
        return found, whole

    @staticmethod
    def _of_frame(asking: _Asking, frame: Place) -> tuple[list[tuple[_Page, str]], bool]:
        """The pages that a window shows, found by going through what stands around them, and whether these are all.

        A few of each part's own come first, the many of a crowded one last, so that a crowd hides no page beside it.
        """
        found: list[tuple[_Page, str]] = []
        whole, asked, entered = True, 0, 0
        first: deque[Sequence[Place]] = deque([[frame]])
        crowds: deque[Sequence[Place]] = deque()
        while (first or crowds) and asked < AROUND and entered < CHROME:
            batch = _some(first, crowds, min(BATCH, AROUND - asked))
            asked += len(batch)
            roles = asking.roles(batch)
            whole = whole and None not in roles
            pages = [(place, role) for place, role in zip(batch, roles, strict=True) if role in PAGE]
            for (page, role), shows in zip(pages, asking.showing([place for place, _ in pages]), strict=True):
                url = asking.address(page) if shows is not False else None
                if url and shows:
                    found.append((_Page(frame, page), url))
                elif shows is None or (shows and role == WEB and url is None):
                    whole = False
            inner = [
                place for place, role in zip(batch, roles, strict=True) if role not in PAGE and role not in NO_PAGE
            ]
            whole = whole and len(inner) <= CHROME - entered
            inner = inner[: CHROME - entered]
            entered += len(inner)
            for children in asking.children(inner):
                whole = whole and children is not None
                if children:
                    first.append(children)
        return found, whole and not first and not crowds


def _some(first: deque[Sequence[Place]], crowds: deque[Sequence[Place]], most: int) -> list[Place]:
    """The next nodes to be asked, taken off their parents: at most FEW of one while others wait for their turn."""
    batch: list[Place] = []
    while (first or crowds) and len(batch) < most:
        of_one = first.popleft() if first else crowds.popleft()
        count = min(FEW, most - len(batch))
        batch += of_one[:count]
        if rest := of_one[count:]:
            crowds.append(rest)
    return batch


class _Line:
    """One connection to a bus, everything of it until one moment. Raises TimeoutError, OSError, and what jeepney does.

    Ours and not jeepney's own, whose first word to the bus waits for ever, and whose waiting begins anew with whatever
    comes in.
    """

    def __init__(self, jeepney: Any, address: str, until: float) -> None:
        from jeepney.bus import get_bus
        from jeepney.io.blocking import prep_socket

        self._jeepney = jeepney
        self._until = until
        self._left(until)
        self._socket: socket.socket = prep_socket(get_bus(address), timeout=min(ANSWER, self._left(until)))
        self._parser = jeepney.Parser()
        self._numbers = itertools.count(1)
        self._taken = 0
        try:
            hello = self.send(jeepney.message_bus.Hello())
            until = time.monotonic() + ANSWER
            while self.reply_to(self.receive(until)) != hello:
                pass
        except BaseException:
            self.close()
            raise

    def _left(self, until: float) -> float:
        left = min(until, self._until) - time.monotonic()
        if left <= 0:
            raise TimeoutError("it does not answer in time")
        return left

    def send(self, message: Message) -> int:
        """Send it; its number."""
        number = next(self._numbers)
        self._socket.settimeout(self._left(self._until))
        self._socket.sendall(message.serialise(serial=number))
        return number

    def receive(self, until: float) -> Message:
        """The next message, if it is here by then; whatever else comes in meanwhile."""
        while True:
            left = self._left(until)
            message: Message | None = self._parser.get_next_message()
            if message is not None:
                return message
            self._socket.settimeout(left)
            data = self._socket.recv(65536)
            self._taken += len(data)
            if not data:
                raise ConnectionResetError("it hung up")
            if self._taken > SIZE:
                raise ConnectionAbortedError("it says more than is listened to")
            self._parser.add_data(data)

    def reply_to(self, message: Message) -> int:
        """The number of what a message answers; -1 for one that is no answer."""
        return int(message.header.fields.get(self._jeepney.HeaderFields.reply_serial, -1))

    def close(self) -> None:
        self._socket.close()


class _Asking:
    """One connection to the accessibility bus, for one look. Raises NotLooked where it cannot be had or is too slow."""

    def __init__(self, bus: str | None) -> None:
        try:
            import jeepney
        except ImportError:
            raise NotLooked("jeepney is not installed", "pip install 'tenuto[accessibility]'") from None
        self._jeepney = jeepney
        self._until = time.monotonic() + TIME
        session = bus or os.environ.get("DBUS_SESSION_BUS_ADDRESS")
        if not session:
            raise NotLooked("this process has no session bus", "start the supervisor in the desktop's own session")
        try:
            self._line = _Line(jeepney, session, self._until)
            try:
                asked = self._message("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress")
                (answer,) = self._ask([asked])
            finally:
                self._line.close()
            if answer is None:
                raise NotLooked("no accessibility bus runs in this session", "start at-spi-bus-launcher")
            self._line = _Line(jeepney, str(answer[0]), self._until)
        except NotLooked:
            raise
        except Exception as fault:  # noqa: BLE001 - an address that is none, an answer that is none
            said = str(fault) or type(fault).__name__
            raise NotLooked(f"the accessibility bus cannot be reached: {said}"[:200]) from None

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
                numbers[self._line.send(message)] = place
            answers: list[Any] = [None] * len(numbers)
            until = time.monotonic() + ANSWER
            while numbers:
                message = self._line.receive(until)
                at = numbers.pop(self._line.reply_to(message), None)
                if at is not None and message.header.message_type is self._jeepney.MessageType.method_return:
                    answers[at] = message.body
        except TimeoutError:
            raise NotLooked("a program does not answer for its window, or the look took too long") from None
        except (OSError, ValueError, EOFError) as fault:
            raise NotLooked(f"the accessibility bus broke off: {fault}"[:200]) from None
        return answers

    def _of_each(self, places: Sequence[Place], method: str) -> list[Any]:
        return self._ask(self._message(to, path, ACCESSIBLE, method) for to, path in places)

    def children(self, places: Sequence[Place]) -> list[list[Place] | None]:
        """The children of each; None of what does not tell them."""
        found = self._of_each(places, "GetChildren")
        return [[(str(to), str(path)) for to, path in each[0]] if each else None for each in found]

    def roles(self, places: Sequence[Place]) -> list[int | None]:
        return [int(each[0]) if each else None for each in self._of_each(places, "GetRole")]

    def showing(self, places: Sequence[Place]) -> list[bool | None]:
        return [_has(each[0], SHOWING) if each else None for each in self._of_each(places, "GetState")]

    def told(self, places: Sequence[Place]) -> list[tuple[Node, list[Place] | None]]:
        """Each as a node, with its children; None for these where it does not tell everything of itself."""
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
            known = role and states and children and (name or number not in BUTTONS)
            told.append((node, [(str(to), str(path)) for to, path in children[0]] if known else None))
        return told

    def address(self, page: Place) -> str | None:
        """The address of a document, as its browser tells it; empty where it has none, None where it tells nothing."""
        to, path = page
        asked = [self._message(to, path, DOCUMENT, "GetAttributeValue", name) for name in ADDRESSES]
        told = [str(each[0]) for each in self._ask(asked) if each]
        return next((each for each in told if each), "" if told else None)

    def pid(self, to: str) -> int | None:
        bus = "org.freedesktop.DBus"
        answer = self._ask([self._message(bus, "/org/freedesktop/DBus", bus, "GetConnectionUnixProcessID", to)])[0]
        return int(answer[0]) if answer else None


def _has(bits: Sequence[int], state: int) -> bool:
    return len(bits) > state // 32 and bool(bits[state // 32] >> (state % 32) & 1)
