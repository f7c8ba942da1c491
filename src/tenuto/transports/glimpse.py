"""One look at a page by the same sensor that the extension uses, without an extension: by DevTools, reading only.

A saved page is looked at in a browser of its own that can reach nothing. A page on the network is looked at in a fresh
browser where nobody is signed in, or in one that listens already on this machine: then exactly one of its tabs must
show the address. Nothing is clicked, typed or kept.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from tenuto.model.faults import Mistake, Refused
from tenuto.transports.addresses import bare

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
MODULES: Final = ("text", "prepared", "view", "clause", "errors", "composer", "sensor")
"""The sensor and what it stands on, each after what it needs."""

SIZE: Final = 16 * 1024 * 1024
PATIENCE: Final = 30.0
LISTED: Final = 5.0
"""Seconds in which a browser tells which tabs it has."""

QUIET: Final = (
    "--headless=new", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
)  # fmt: skip
CLOSED: Final = ("--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>")
"""A proxy where nobody listens: what a saved page asks for is not fetched."""

_numbers = itertools.count(1)
_LOOPBACK: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):([0-9]{1,5})")
_TAB: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
_IMPORT: Final = re.compile(r"^import \{([^}]*)\} from '\./([a-z]+)\.js';$", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class) (\w+))", re.MULTILINE)

Facts = dict[str, Any]


def saved(page: Path, profile: Mapping[str, Any], address: str, modules: Path, pause: Callable[[float], None]) -> Facts:
    """The facts of a saved page as if it stood at `address`. Raises Mistake where page or browser is not there."""
    try:
        if page.stat().st_size > SIZE:
            raise Mistake(f"{page}: a page of more than {SIZE // 1024 // 1024} MiB is not read", field="page")
        html = page.read_text("utf-8", errors="replace")
    except OSError as fault:
        raise Mistake(f"{page}: cannot be read: {fault.strerror}", field="page") from None
    with _browser(CLOSED, pause) as port, _tab(_made(port, "about:blank")) as tab:
        return _looked(tab, profile, modules, html, address)


def visited(url: str, profile: Mapping[str, Any], modules: Path, pause: Callable[[float], None]) -> Facts:
    """The facts of a page as somebody sees it who is not signed in, once it has stood still or 15 s have passed."""
    with _browser((), pause) as port, _tab(_made(port, url)) as tab:
        return _settled(lambda: _looked(tab, profile, modules, None, None), pause)


def shown(url: str, profile: Mapping[str, Any], modules: Path, devtools: str) -> Facts:
    """The facts of the one tab that shows exactly that address, in a browser whose DevTools listen at `devtools`."""
    meant = bare(url)
    tabs = [tab for tab in listed(devtools) if bare(tab["url"]) == meant]
    if len(tabs) != 1:
        raise Refused(f"{len(tabs)} tabs of that browser show {url}; exactly one must")
    with _tab(line_of(devtools, tabs[0]["id"])) as tab:
        return _looked(tab, profile, modules, None, None)


def local(where: str) -> tuple[str, int]:
    """The host and port of an address on this machine; a name is not looked up. Raises Mistake for any other."""
    found = _LOOPBACK.fullmatch(where)
    if found is None or not 0 < int(found[2]) < 65536:
        raise Mistake(f"{where!r} is no address of this machine like 127.0.0.1:9222", field="devtools")
    return {"localhost": "127.0.0.1", "[::1]": "::1"}.get(found[1], found[1]), int(found[2])


def line_of(where: str, name: str) -> str:
    """The address at which a tab is spoken to, made of where we asked and its name: not whatever a list says."""
    host, port = local(where)
    if not _TAB.fullmatch(name):
        raise Mistake("that browser names a tab as no browser does", field="devtools")
    return f"ws://{f'[{host}]' if ':' in host else host}:{port}/devtools/page/{name}"


def listed(where: str) -> list[dict[str, str]]:
    """The pages of a browser by `id` and `url`. Raises Mistake where it does not tell all of them."""
    told = asked(where, "GET", "/json/list", LISTED)
    if not isinstance(told, list) or not all(isinstance(tab, dict) for tab in told):
        raise Mistake(f"no browser answers at {where}: that is no list of tabs", field="devtools")
    found = []
    for tab in told:
        if tab.get("type") != "page":
            continue
        name, url = tab.get("id"), tab.get("url")
        if not isinstance(name, str) or not _TAB.fullmatch(name) or not isinstance(url, str):
            raise Mistake(f"no browser answers at {where}: a tab of its list has no name or address", field="devtools")
        found.append({"id": name, "url": url})
    return found


def script(modules: Path) -> str:
    """The sensor as one function of no imports, made of its modules: `(profile, html, address) => facts`."""
    parts = []
    for name in MODULES:
        text = (modules / f"{name}.js").read_text("utf-8")
        names = _EXPORT.findall(text)
        text = _IMPORT.sub(r"const {\1} = modules.\2;", text)
        text = _EXPORT.sub("", text)
        parts.append(f"modules.{name} = (() => {{\n{text}\nreturn {{ {', '.join(names)} }};\n}})();")
    return """(profile, html, address) => {
      'use strict';
      const modules = {};
      %s
      if (html !== null) {
        const parsed = new DOMParser().parseFromString(html, 'text/html');
        document.title = parsed.title;
        document.replaceChild(document.adoptNode(parsed.documentElement), document.documentElement);
      }
      const where = address ?? location.href;
      const sensor = new modules.sensor.Sensor(document, () => where, () => false);
      const asked = { markers: [], ours: [], baseline: null };
      return JSON.stringify(sensor.look(modules.prepared.prepare(profile), asked).facts);
    }""" % "\n".join(parts)  # noqa: UP031 - a template of braces reads best so


def _settled(look: Callable[[], Facts], pause: Callable[[float], None]) -> Facts:
    facts = look()
    for _ in range(15):
        pause(1.0)
        before, facts = facts, look()
        if facts["digest"] == before["digest"] and facts["state"] not in ("loading", "settling", "unknown"):
            break
    return facts


def _looked(
    tab: ClientConnection, profile: Mapping[str, Any], modules: Path, html: str | None, address: str | None
) -> Facts:
    frame = _called(tab, "Page.getFrameTree")["frameTree"]["frame"]["id"]
    world = _called(tab, "Page.createIsolatedWorld", frameId=frame, worldName="tenuto")["executionContextId"]
    given = ", ".join(json.dumps(each) for each in (profile, html, address))
    result = _called(
        tab, "Runtime.evaluate", expression=f"({script(modules)})({given})", contextId=world, returnByValue=True
    )
    if "exceptionDetails" in result:
        said = result["exceptionDetails"].get("exception", {}).get("description", "the page cannot be read")
        raise Mistake(f"the sensor failed on this page: {str(said)[:300]}")
    facts: Facts = json.loads(result["result"]["value"])
    return facts


def _called(tab: ClientConnection, method: str, **parameters: object) -> dict[str, Any]:
    """One command; events are passed over. Raises Mistake where the browser says no or nothing."""
    number = next(_numbers)
    try:
        tab.send(json.dumps({"id": number, "method": method, "params": parameters}))
        for _ in range(10_000):
            told = json.loads(tab.recv(timeout=PATIENCE))
            if told.get("id") == number:
                if "error" in told:
                    raise Mistake(f"the browser refused {method}: {told['error'].get('message')}")
                result: dict[str, Any] = told["result"]
                return result
    except (TimeoutError, WebSocketException, OSError) as fault:
        raise Mistake(f"the browser does not answer: {fault}") from None
    raise Mistake("the browser does not answer")


@contextlib.contextmanager
def _tab(address: str) -> Iterator[ClientConnection]:
    """A line to a tab of this machine: by no proxy, and to nowhere else."""
    at = urllib.parse.urlsplit(address)
    with contextlib.ExitStack() as opened:
        try:
            line = opened.enter_context(socket.create_connection((at.hostname or "", at.port or 0), timeout=PATIENCE))
            # Over a socket that is open already no redirect is followed.
            tab = opened.enter_context(
                connect(address, sock=line, proxy=None, max_size=SIZE * 2, open_timeout=PATIENCE, origin=None)
            )
        except (OSError, ValueError, WebSocketException) as fault:
            raise Mistake(f"the browser does not answer: {fault}", field="devtools") from None
        yield tab


def _made(port: int, url: str) -> str:
    where = f"127.0.0.1:{port}"
    return line_of(where, str(asked(where, "PUT", f"/json/new?{url}")["id"]))


def asked(where: str, method: str, path: str, within: float = PATIENCE) -> Any:
    """What a browser of this machine answers, all of it within so many seconds: by no proxy, and by no redirect."""
    host, port = local(where)
    until = time.monotonic() + within
    try:
        with socket.create_connection((host, port), timeout=within) as line:
            speaking = http.client.HTTPConnection(host, port)
            speaking.sock = _Bounded(line, until)
            speaking.request(method, path)
            answer = speaking.getresponse()
            if answer.status != 200:
                raise ValueError(f"it says {answer.status}")
            return json.loads(answer.read(SIZE))
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as fault:
        raise Mistake(f"no browser answers at {where}: {fault}", field="devtools") from None


class _Bounded(io.RawIOBase):
    """A socket of which nothing is waited for after one moment, whatever comes in before."""

    def __init__(self, line: socket.socket, until: float) -> None:
        super().__init__()
        self._line = line
        self._until = until

    def _left(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._line.settimeout(left)

    def sendall(self, data: bytes) -> None:
        self._left()
        self._line.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Bounded(self._line, self._until))

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self._left()
        return self._line.recv_into(into)


@contextlib.contextmanager
def _browser(more: tuple[str, ...], pause: Callable[[float], None]) -> Iterator[int]:
    """A browser with a profile that is thrown away; the port its DevTools listen at."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        raise Mistake("no Chromium is installed here, and a page is looked at with one", see="tenuto site check --help")
    with tempfile.TemporaryDirectory(prefix="tenuto-look-", ignore_cleanup_errors=True) as place:
        alone = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
        said = Path(place, "said")
        with said.open("wb") as out:
            process = subprocess.Popen(
                [program, *QUIET, *alone, *more, f"--user-data-dir={place}/profile", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out, start_new_session=True,
            )  # fmt: skip
        try:
            yield _port(process, said, pause)
        finally:
            _ended(process)


def _port(process: subprocess.Popen[bytes], said: Path, pause: Callable[[float], None]) -> int:
    """The port that the browser says on its standard error it listens at."""
    for _ in range(int(PATIENCE / 0.05)):
        if found := re.search(rb"DevTools listening on ws://127\.0\.0\.1:(\d+)/", said.read_bytes()[:SIZE]):
            return int(found[1])
        if process.poll() is not None:
            break
        pause(0.05)
    raise Mistake("the browser did not start")


def _ended(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
