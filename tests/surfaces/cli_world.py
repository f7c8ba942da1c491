"""A supervisor that is played, and the way outside that is played, for the command line to be tried against.

The played supervisor listens on a real Unix socket, finds the verb in the real table of routes, checks what it is sent
with the real table of verbs, and answers what the test told it to.
"""

from __future__ import annotations

import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tenuto.engine.desk import Desk
from tenuto.model.faults import Mistake, NotFound
from tenuto.model.foreign import Source
from tenuto.surfaces import present, verbs
from tenuto.surfaces.cli.entrances import (
    AgentFacts,
    AlreadyLed,
    Check,
    Glance,
    HookPlan,
    NotSpawned,
    Places,
    Proof,
    ServicePlan,
    Spawned,
)
from tenuto.surfaces.routes import PREFIX, ROUTES

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUN = "r-" + "0" * 18 + "rrrrrrrr"
TASK = "t-" + "0" * 18 + "tttttttt"
COMMAND = "c-" + "0" * 18 + "cccccccc"
OPERATOR = "operators-own-token"


@dataclass
class Asked:
    """One request as the supervisor read it."""

    verb: str
    params: Mapping[str, Any]
    key: str | None
    token: str | None
    host: str | None


Said = tuple[int, object]
Answerer = Callable[[Asked], Said | None]
"""What is answered: a status and a body; None closes the connection without a word."""


def done(**result: object) -> Said:
    """The answer of a verb that changed something."""
    return 200, {"result": {"task": TASK, **result}, "replayed": False, "effects": [], "text": "it is done"}


class Server:
    """A supervisor whose answers a test chooses, verb by verb."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[Asked] = []
        self.answers: dict[str, Answerer] = {}
        self.events: list[Mapping[str, Any]] = []

    def says(self, verb: str, *answers: object) -> None:
        """Answer a verb with these bodies in turn, the last one for ever; a tuple is a status and a body."""
        left = list(answers)

        def answer(asked: Asked) -> Said | None:
            value = left.pop(0) if len(left) > 1 else left[0]
            if value is None or isinstance(value, tuple):
                return value
            return 200, value

        self.answers[verb] = answer

    def of(self, verb: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.verb == verb]

    def answer(self, asked: Asked) -> Said | None:
        self.asked.append(asked)
        try:
            verbs.parsed(verbs.VERBS[asked.verb], asked.params, lenient=ROUTES[asked.verb].reads)
        except Mistake as mistake:
            return 422, present.error(mistake)
        answerer = self.answers.get(asked.verb)
        return done() if answerer is None else answerer(asked)


def found(method: str, path: str) -> tuple[str, dict[str, str]] | None:
    """The verb and the names in the path, by the real table."""
    for verb, route in ROUTES.items():
        pattern = "".join(
            f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part)
            for part in re.split(r"(\{\w+\})", PREFIX + route.path)
        )
        if route.method == method and (fits := re.fullmatch(pattern, path)):
            return verb, {name: unquote(value) for name, value in fits.groupdict().items()}
    return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    played: Server

    def handle_any(self) -> None:
        split = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        match = found(self.command, split.path)
        self.close_connection = True
        if match is None:
            self.reply(404, {"error": {"code": "not_found", "message": "no such place"}})
            return
        verb, names = match
        if verb == "events" and "event-stream" in self.headers.get("Accept", ""):
            self.feed()
            return
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
        params = {**dict(parse_qsl(split.query)), **body, **names}
        asked = Asked(verb, params, self.headers.get("Idempotency-Key"), bearer, self.headers.get("Host"))
        said = self.played.answer(asked)
        if said is not None:
            self.reply(*said)

    do_GET = do_POST = do_PUT = handle_any  # noqa: N815 - the names are the base class's

    def feed(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in self.played.events:
            self.wfile.write(f"id: {event['n']}\ndata: {json.dumps(event)}\n\n".encode())

    def reply(self, status: int, value: object) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


class _Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Listen at the server's path while this lasts."""
    handler = type("Handler", (_Handler,), {"played": server})
    with _Unix(str(server.path), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join(10)
    server.path.unlink()


LIVE = Glance(
    "live", 3, "me", "here", 4711, NOW - timedelta(hours=1), NOW, NOW + timedelta(seconds=15), None, None, "g-x"
)
MISSING = Glance("missing")


@dataclass
class FakeEntrances:
    """The way outside, played: what was reached is written down in `reached`."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    glances: list[Glance] = field(default_factory=lambda: [LIVE])
    spawned: Spawned | AlreadyLed | NotSpawned = field(default_factory=lambda: Spawned(LIVE))
    checks: Sequence[Check] = ()
    proof: Proof = field(default_factory=lambda: Proof(True, "it holds", ("a line",), {"kills": 3}))
    reached: list[Any] = field(default_factory=list)
    keys: int = 0

    @property
    def places(self) -> Places:
        return Places(
            home=self.root,
            home_from="TENUTO_HOME",
            config=self.root / "config.toml",
            registry=str(self.root / "registry.sqlite3"),
            registry_file=self.root / "registry.sqlite3",
            socket=self.root / "api.sock",
            operator_token=self.root / "operator.token",
            log=self.root / "supervisor.log",
            spool=self.root / "spool",
        )

    def chosen(self, *, config: Path | None, db: str | None) -> FakeEntrances:
        self.reached.append(("chosen", config, db))
        return self

    def now(self) -> datetime:
        return NOW

    def fresh_key(self) -> str:
        self.keys += 1
        return f"key-{self.keys}"

    def glance(self) -> Glance:
        return self.glances.pop(0) if len(self.glances) > 1 else self.glances[0]

    def open_desk_readonly(self) -> tuple[Desk, Callable[[], None]]:
        self.reached.append("desk")
        raise NotFound("there is no registry yet")

    def run_supervisor_foreground(self, *, standby: bool = False) -> int:
        self.reached.append("foreground")
        return 5

    def spawn_supervisor_detached(self, within: timedelta) -> Spawned | AlreadyLed | NotSpawned:
        self.reached.append(("spawn", within))
        return self.spawned

    def spool(self, verb: str, params: Mapping[str, object], key: str) -> Path:
        self.reached.append(("spool", verb, dict(params), key))
        return self.root / "spool" / "0001.json"

    def serve_mcp(self) -> int:
        self.reached.append(("serve_mcp",))
        return 0

    def host(self, name: str, addresses: Sequence[str], token: Path, journal: Path | None) -> int:
        self.reached.append(("host", name, tuple(addresses), token, journal))
        return 0

    def doctor(self, *, probe: bool = False) -> Sequence[Check]:
        self.reached.append(("doctor", probe))
        return self.checks

    def move(self, url: str, say: Callable[[str], None]) -> Proof:
        self.reached.append(("move", url))
        return self.proof

    def service_plan(self, act: str) -> ServicePlan:
        return ServicePlan("systemd", ((self.root / "unit", "[Unit]"),), (("true",),), (f"to {act}",))

    def carry_out(self, plan: ServicePlan) -> Sequence[str]:
        self.reached.append(("carried out", plan.kind))
        return ("it is done",)

    def agents(self) -> Sequence[AgentFacts]:
        return (
            AgentFacts("claude", "/bin/claude", "9.9.9", ("resume", "steer"), "this version was not tried"),
            AgentFacts("codex", None, None, ("resume",), "codex is not on the PATH"),
        )

    def agent_test(self, name: str, argv: tuple[str, ...]) -> Proof:
        self.reached.append(("agent test", name, argv))
        return self.proof

    def hooks_plan(self, act: str, agent: str, project: Path | None) -> HookPlan:
        carry_out = None if act == "nothing" else lambda: self.reached.append(("hooks", act, agent, project))
        return HookPlan(self.root / "settings.json", ("+ a line",), ("a note",), carry_out)

    def hooks_standing(self, agent: str, project: Path | None) -> Mapping[str, object]:
        return {"agent": agent, "file": "settings.json", "installed": agent == "claude", "called": None, "text": "so"}

    def extension_folder(self, browser: str, folder: Path | None) -> Path:
        self.reached.append(("extension", browser, folder))
        return folder or self.root / browser

    def foreign(self, path: Path, objective: str | None) -> Sequence[Source]:
        self.reached.append(("foreign", path, objective))
        return ()

    def sites(self) -> Proof:
        self.reached.append("sites")
        return self.proof

    def site_check(self, target: str, *, site: str | None, at: str | None, devtools: str | None) -> Proof:
        self.reached.append(("site check", target, site, at, devtools))
        return self.proof

    def database(self, act: str, target: Path | None, say: Callable[[str], None]) -> Proof:
        self.reached.append(("database", act, target))
        say("half")
        return self.proof

    def demo(self, *, keep: bool, say: Callable[[str], None]) -> Proof:
        self.reached.append(("demo", keep))
        return self.proof

    def crash_matrix(self, *, points: int, seed: int, jobs: int, only: str | None, say: Callable[[str], None]) -> Proof:
        self.reached.append(("crash_matrix", points, seed, jobs, only))
        return self.proof

    def simulate(
        self,
        *,
        seed: int,
        tasks: int,
        days: float,
        worlds: int,
        turns_a_day: float,
        jobs: int,
        say: Callable[[str], None],
    ) -> Proof:
        self.reached.append(("simulate", seed, tasks, days, worlds, turns_a_day, jobs))
        return self.proof

    def bench(self, *, seconds: int, say: Callable[[str], None]) -> Proof:
        self.reached.append(("bench", seconds))
        return self.proof


def task(**changes: object) -> dict[str, Any]:
    """A task as a verb tells of it."""
    return {
        "id": TASK,
        "run": RUN,
        "title": "Tidy",
        "state": "active",
        "standing": "working",
        "text": "working",
        "cwd": "/there",
        "adapter": "program",
        "attempts": 2,
        "created_at": "2026-03-01T11:00:00Z",
        "last_served_at": "2026-03-01T11:59:00Z",
        "disposition": None,
    } | changes


def because(rung: str, sentence: str = "not now", change: str = "tenuto help it") -> dict[str, Any]:
    """A reason as a verb tells of it."""
    return {"rung": rung, "sentence": sentence, "change": change, "until": None, "facts": {}}


def followed(events: Sequence[Mapping[str, Any]] = (), reason: object = None, **changes: object) -> dict[str, Any]:
    """What `task.follow` answers."""
    last = events[-1]["n"] if events else 0
    return {"task": task(**changes), "because": reason, "events": list(events), "last": last}


def event(n: int, kind: str = "attempt.ended", text: str = "turn 1 ended") -> dict[str, Any]:
    """Something that happened."""
    return {"id": f"1-{n}", "n": n, "at": "2026-03-01T11:59:30Z", "kind": kind, "run": RUN, "task": TASK, "text": text}
