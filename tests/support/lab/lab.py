"""The lab as a test holds it: start, tell it what to do wrong, ask what it accepted, stop.

It lives on a thread of its own with three loopback ports: plain HTTP under any name, TLS under the site's names with a
certificate made at the start, and the door that leads a browser from the real names to it.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import socket
import tempfile
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.lab.app import application
from tests.support.lab.door import Door
from tests.support.lab.state import FAULTS, Accepted, Answer, Fault, Past, Site

NAMES = ("chatgpt.com", "chat.openai.com", "lab.localhost", "second.localhost")
PATIENCE = 150.0
_T = TypeVar("_T")


class Lab:
    """One chat site. Use it as a context, or `start` and `stop` it; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="lab", daemon=True)
        self._over = asyncio.Event()
        self._place = tempfile.TemporaryDirectory(prefix="lab-")
        self.site: Site
        self.http_port = 0
        self.tls_port = 0
        self.door_port = 0
        self.refused: set[str] = set()

    # -- life --------------------------------------------------------------------

    @classmethod
    def start(cls) -> Self:
        """Serve; returns when all three ports answer."""
        lab = cls()
        lab._thread.start()
        lab._ready.result(PATIENCE)
        return lab

    def stop(self) -> None:
        """End the site and everything it was saying."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)
        self._place.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as fault:
            if not self._ready.done():
                self._ready.set_exception(fault)
            raise
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self) -> None:
        self.site = Site()
        app = application(self.site)
        certificate, key = _certificate(Path(self._place.name))
        plain, secure = _listening(), _listening()
        self.http_port, self.tls_port = plain.getsockname()[1], secure.getsockname()[1]
        common: dict[str, Any] = {"log_level": "critical", "lifespan": "off", "timeout_graceful_shutdown": 1}
        servers = [
            (_Server(uvicorn.Config(app, **common)), plain),
            (_Server(uvicorn.Config(app, ssl_certfile=certificate, ssl_keyfile=key, **common)), secure),
        ]
        door = Door(frozenset(NAMES), self.tls_port)
        self.refused = door.refused
        entrance = await asyncio.start_server(door.serve, "127.0.0.1", 0)
        self.door_port = entrance.sockets[0].getsockname()[1]
        serving = [self._loop.create_task(server.serve(sockets=[where])) for server, where in servers]
        await asyncio.gather(*(server.ready.wait() for server, _ in servers))
        self._ready.set_result(None)
        await self._over.wait()
        entrance.close()
        for server, _ in servers:
            server.should_exit = server.force_exit = True
        await asyncio.gather(*serving, return_exceptions=True)
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    # -- calls from other threads --------------------------------------------------

    def _on(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def _do(self, change: Callable[[Site], _T]) -> _T:
        async def there() -> _T:
            result = change(self.site)
            self.site.touch()
            return result

        return self._on(there())

    # -- where it is ---------------------------------------------------------------

    @property
    def proxy(self) -> str:
        """The address a browser is to use as its proxy, to find the site under its real names."""
        return f"http://127.0.0.1:{self.door_port}"

    def url(self, path: str = "/", host: str = "chatgpt.com") -> str:
        """An address under one of NAMES, reached through the door."""
        return f"https://{host}{path}"

    def plain_url(self, path: str = "/") -> str:
        """The same site without the door and without TLS."""
        return f"http://127.0.0.1:{self.http_port}{path}"

    def conversation_url(self, identity: str, host: str = "chatgpt.com") -> str:
        return self.url(f"/c/{identity}", host)

    @property
    def chromium_arguments(self) -> list[str]:
        """What to start Chromium with, so that it finds the site and nothing else."""
        return [f"--proxy-server={self.proxy}", "--ignore-certificate-errors"]

    @property
    def firefox_preferences(self) -> dict[str, str | int | bool]:
        """What to put into Firefox's user.js for the same; certificates are to be accepted by the session."""
        return {
            "network.proxy.type": 1,
            "network.proxy.ssl": "127.0.0.1",
            "network.proxy.ssl_port": self.door_port,
            "network.proxy.http": "127.0.0.1",
            "network.proxy.http_port": self.door_port,
            "network.proxy.no_proxies_on": "127.0.0.1,localhost",
            "network.stricttransportsecurity.preloadlist": False,
            "security.cert_pinning.enforcement_level": 0,
        }

    # -- what it is told -----------------------------------------------------------

    def fault(self, name: Fault, times: int = 1, **told: object) -> None:
        """The next `times` user turns meet this; after them the site is honest again. See `Fault` for the words."""
        if name not in FAULTS:
            raise ValueError(f"no such fault: {name}")
        self._do(lambda site: site.faults.extend([(name, dict(told))] * times))

    def look(self, **changes: object) -> None:
        """Draw it differently from now on; fields of Look. Open pages follow at once."""

        def change(site: Site) -> None:
            for name, value in changes.items():
                if not hasattr(site.look, name):
                    raise ValueError(f"no such look: {name}")
                setattr(site.look, name, value)

        self._do(change)

    def show(self, dialog: str | None = None, banner: str | None = None, toast: str | None = None) -> None:
        """Put a dialog ("rate", or a sentence), a banner or a toast on every page; None takes it away."""

        def change(site: Site) -> None:
            site.shown.dialog, site.shown.banner, site.shown.toast = dialog, banner, toast

        self._do(change)

    def login(self, there: bool) -> None:
        """Whether somebody is signed in."""
        self._do(lambda site: setattr(site, "logged_in", there))

    def challenge(self, there: bool) -> None:
        """Whether every page is the one that asks whether a person is there."""
        self._do(lambda site: setattr(site, "challenge", there))

    def answers(self, answer: Callable[[str], Answer]) -> None:
        """From now on `answer(prompt)` is what the assistant says. Runs on the lab's thread; must not block."""
        self._do(lambda site: setattr(site, "answer", answer))

    def seed(self, past: list[Past] | None = None, identity: str | None = None) -> str:
        """A conversation with a past; its id."""
        return self._do(lambda site: site.seed(past or [], identity))

    def approve(self) -> None:
        """A person allows the card that stands there."""
        self._do(lambda site: site.approved.set())

    def mend(self) -> None:
        """A person has the site try again where the card of an error stands; now there is an answer in its place."""

        def change(site: Site) -> None:
            for turn in (turn for one in site.conversations.values() for turn in one.turns if turn.error is not None):
                turn.text, turn.error, turn.button, turn.state = "Here is the rest.", None, None, "done"

        self._do(change)

    def resume(self) -> None:
        """A stalled answer goes on."""
        self._do(lambda site: site.resumed.set())

    def reset(self) -> None:
        """As after the start: honest, empty, signed in."""

        self._do(lambda site: site.reset())

    # -- what it judges ------------------------------------------------------------

    def accepted(self, containing: str = "") -> list[Accepted]:
        """The user turns the server took, oldest first; only those whose text has `containing`."""
        return self._do(lambda site: [turn for turn in site.accepted if containing in turn.text])

    def pressed(self) -> list[str]:
        """Every button of the page that was pressed, other than Send and Stop, by its name."""
        return self._do(lambda site: list(site.pressed))

    def stops(self) -> list[str]:
        """The conversations in which Stop was pressed, each as often as it was."""
        return self._do(lambda site: list(site.stops))

    def posts(self) -> int:
        """How many times a page posted a turn, accepted or not."""
        return self._do(lambda site: site.posts)

    def generating(self, identity: str) -> bool:
        """Whether that conversation's answer is being written."""
        return self._do(lambda site: identity in site.conversations and site.conversations[identity].generating)

    def wait_accepted(self, number: int, containing: str = "", patience: float = PATIENCE) -> list[Accepted]:
        """Wait until `number` turns were taken; TimeoutError says how many there are."""
        return self._wait(lambda: self.accepted(containing), lambda got: len(got) >= number, patience)

    def wait_quiet(self, identity: str, patience: float = PATIENCE) -> None:
        """Wait until nothing is being generated in that conversation."""
        self._wait(lambda: self.generating(identity), lambda busy: not busy, patience)

    def _wait(self, read: Callable[[], _T], good: Callable[[_T], bool], patience: float) -> _T:
        async def there() -> None:
            await self.site.after(self.site.version, 0.25)

        for _ in range(int(patience / 0.05) + 1):
            got = read()
            if good(got):
                return got
            self._on(there())
        raise TimeoutError(f"not in {patience} s; last seen: {read()!r}")


class _Server(uvicorn.Server):
    """A server on a thread, that says when it is there."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As ever; then it is ready."""
        await super().startup(sockets=sockets)
        self.ready.set()


def _listening() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    return listener


def _certificate(place: Path) -> tuple[str, str]:
    """A certificate for the site's names, good for ten days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the lab")])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in NAMES]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, private = place / "lab.pem", place / "lab.key"
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(certificate), str(private)
