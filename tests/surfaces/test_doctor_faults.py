"""Everything the doctor checks, seen to fail: each fault is told by its check, with a mend that can be carried out.

Each fault is made for real where a test can make it, in a home of its own, and played where it takes another machine,
another user or another program. All of them go through `tenuto doctor --json` as a person gives it.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import os
import resource
import shutil
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from tests.support import mends
from tests.support.world import OPERATOR, world

from tenuto.model.work import Agent
from tenuto.surfaces.cli import app
from tenuto.surfaces.cli.entrances import Glance
from tenuto.transports.host import turn
from tenuto.wiring import doctor, examining, places, probing
from tenuto.wiring.entrances import RealEntrances
from tenuto.wiring.world import SystemClock

DATA = Path(__file__).parent.parent / "data" / "localshell"
SOURCES = [Path(module.__file__ or "") for module in (doctor, examining, places, probing)]
LED = Glance("live", epoch=3, owner="o", host="here", pid=4711, near=True)


@dataclass
class Home:
    """One home whose doctor is asked, and what is played to it."""

    root: Path
    patch: pytest.MonkeyPatch
    glance: Glance | None = None
    probe: bool = False
    #: Sockets that are held open until the test is over.
    held: list[socket.socket] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.root / "state"

    def made(self, name: str = "", mode: int = 0o700) -> Home:
        """Make a directory of the state, or the state itself."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        path = self.state / name if name else self.state
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        return self

    def file(self, name: str, text: str, mode: int = 0o600) -> Home:
        """Write a file of the state."""
        path = self.made().state / name
        path.write_text(text)
        path.chmod(mode)
        return self

    def config(self, text: str) -> Home:
        """Write the configuration."""
        (self.root / "config.toml").write_text(text)
        return self

    def put(self, name: str, text: str) -> Home:
        """Write a file of the home."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return self

    def opened(self, name: str, mode: int) -> Home:
        """Give a file of the home another mode."""
        (self.root / name).chmod(mode)
        return self

    def given(self, name: str, value: str) -> Home:
        """Set a variable of the environment."""
        self.patch.setenv(name, value)
        return self

    def lacks(self, module: str) -> Home:
        """Have a module not be there."""
        self.patch.setitem(sys.modules, module, None)
        return self

    def plays(self, where: object, name: str, value: object) -> Home:
        """Have something stand in for what is there."""
        self.patch.setattr(where, name, value)
        return self

    def program(self, name: str, script: str) -> Home:
        """A program that is found before all others."""
        folder = self.root / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        self.patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return self

    def rows(self, agent: Agent | None = None, *, doubt: bool = False, later: bool = False) -> Home:
        """Make a real registry with a task in it."""

        async def make() -> None:
            async with world(self.root) as it:
                if doubt:
                    await it.doubted()
                await it.create()
                if later:
                    it.clock.time = it.clock.time.replace(year=2999)
                    await it.desk.hold(OPERATOR)

        asyncio.run(make())
        if agent is not None:
            change = "UPDATE task SET agent = json_set(agent, '$.adapter', ?, '$.argv', json(?), '$.on', ?)"
            self.sql(change, agent.adapter, json.dumps(agent.argv), agent.on)
        return self

    def sql(self, statement: str, *values: object) -> Home:
        """Change the registry by hand."""
        with closing(sqlite3.connect(self.state / "registry.sqlite3")) as registry:
            registry.execute(statement, values)
            registry.commit()
        return self

    def listens(self) -> Home:
        """Leave a socket at which nobody listens."""
        self.made()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(self.state / "api.sock"))
        return self

    def stands(self, standing: str, **more: Any) -> Home:
        """Play a supervisor that stands so."""
        self.glance = replace(LED, standing=standing, **more)
        return self

    def server(self) -> Path:
        """A tool server's state with one session; its file."""
        folder = self.root / "lsm" / "sessions"
        folder.mkdir(parents=True)
        self.config(f'[tool_servers]\nmine = "{self.root / "lsm"}"\n')
        session = folder / f"s_{'2' * 24}.json"
        shutil.copy(DATA / "session-v2.json", session)
        return session


class Entrances(RealEntrances):
    """The real ones, of whose supervisor another glance is played."""

    home: Home

    def glance(self) -> Glance:
        return self.home.glance if self.home.glance is not None else super().glance()


@dataclass(frozen=True)
class Fault:
    """One way in which a check fails: what makes it, and what must stand in what is found and in the mend."""

    check: str
    about: str
    make: Callable[[Home], object]
    found: str
    mend: str
    ok: bool | None = False


FAULTS: list[Fault] = []


def fault(check: str, about: str, found: str, mend: str, ok: bool | None = False) -> Callable[[Any], Any]:
    """Add a fault."""

    def add(make: Callable[[Home], object]) -> Callable[[Home], object]:
        FAULTS.append(Fault(check, about, make, found, mend, ok))
        return make

    return add


def simple(
    check: str, about: str, make: Callable[[Home], object], found: str, mend: str, ok: bool | None = False
) -> None:
    """Add a fault that is made in one line."""
    FAULTS.append(Fault(check, about, make, found, mend, ok))


# -- programs and settings

simple(
    "python", "too old", lambda h: h.plays(doctor, "sys", SimpleNamespace(version_info=(3, 10, 4))), "3.10.4", "3.11"
)
simple("git", "too old", lambda h: h.program("git", "echo git version 2.9.5"), "2.9.5", "2.20")
simple("git", "broken", lambda h: h.program("git", "exit 1"), "no known version", "2.20")
simple(
    "sqlite",
    "too old",
    lambda h: h.plays(doctor, "sqlite3", SimpleNamespace(sqlite_version_info=(3, 34, 1), sqlite_version="3.34.1")),
    "3.34.1",
    "3.35",
)
simple("configuration", "a name nobody knows", lambda h: h.config("slotz = 3\n"), "'slotz'", "in the file")
simple("configuration", "no TOML", lambda h: h.config("slots = = 3"), "cannot be read", "in the file")
simple(
    "configuration",
    "no text",
    lambda h: (h.root / "config.toml").write_bytes(b"\xff\xfe\x00"),
    "cannot be read",
    "in the file",
)
simple("configuration", "a directory", lambda h: (h.root / "config.toml").mkdir(), "cannot be read", "in the file")
simple("configuration", "too large", lambda h: h.config("#" * 1_100_000), "larger than", "in the file")
simple("configuration", "a number out of bounds", lambda h: h.config("slots = 0\n"), "slots is", "in the file")
simple("configuration", "a variable", lambda h: h.given("TENUTO_PORT", "many"), "port", "environment")

# -- directories, files and room

#: A server of PostgreSQL that is not there.
SERVER = 'database = "postgresql://127.0.0.1:9/x"\n'
OTHER = 1 + os.geteuid()
simple("state directory", "a file", lambda h: h.put("state", "x"), "no directory", "put")
simple("state directory", "open to others", lambda h: h.made(mode=0o755), "0755", "chmod 700")
simple(
    "state directory",
    "of somebody else",
    lambda h: h.made().plays(os, "geteuid", lambda: OTHER),
    "belongs to user",
    "chown",
)
simple(
    "state directory",
    "not to be written",
    lambda h: h.made().plays(os, "access", lambda *_: False),
    "cannot be written",
    "chown",
)
simple(
    "state directory",
    "below a file",
    lambda h: h.file("f", "").config(f'state = "{h.root}/state/f/state"\n'),
    "no directory",
    "put",
)
simple(
    "state directory",
    "cannot be made",
    lambda h: h.plays(os, "access", lambda *_: False),
    "cannot be made",
    "writable",
)
simple("kept directories", "a journal that is a file", lambda h: h.file("journal", ""), "journal is no", "put")
simple(
    "kept directories",
    "worktrees that cannot be made",
    lambda h: h.file("f", "").config(f'worktrees = "{h.root}/state/f/w"\n'),
    "f is no directory",
    "put",
)
simple(
    "disk",
    "full",
    lambda h: h.plays(shutil, "disk_usage", lambda _: SimpleNamespace(free=1024 * 1024)),
    "1 MiB free",
    "make room",
)


@fault("disk", "that says nothing", "cannot be told", "its disk", None)
def _gone(home: Home) -> None:
    def fails(_path: Path) -> None:
        raise OSError(5, "Input/output error")

    home.patch.setattr(shutil, "disk_usage", fails)


simple("operator token", "open to others", lambda h: h.file("operator.token", "x", 0o644), "0644", "chmod 600")
simple("operator token", "a directory", lambda h: h.made("operator.token"), "no file", "put")
simple(
    "operator token",
    "of somebody else",
    lambda h: h.file("operator.token", "x").plays(os, "geteuid", lambda: OTHER),
    "belongs to user",
    "chown",
)
simple("environment file", "open to others", lambda h: h.put("env", "A=b").opened("env", 0o640), "0640", "chmod 600")
simple(
    "registry file", "open to others", lambda h: h.rows().opened("state/registry.sqlite3", 0o664), "0664", "chmod 600"
)


def wide(home: Home) -> Home:
    """A bind that is not loopback, whose certificate is none."""
    home.file("cert.pem", "no certificate").file("key.pem", "no key").file("token", "x")
    cert, key = home.state / "cert.pem", home.state / "key.pem"
    told = {"bind": "0.0.0.0", "tls_certificate": cert, "tls_key": key, "token_file": home.state / "token"}
    lines = [f'{name} = "{value}"' for name, value in told.items()]
    return home.config("\n".join([*lines, 'hosts = ["box.example:6174"]', ""]))


simple("TLS certificate", "is none", wide, "cert.pem", "`tls_certificate`")
simple("TLS key", "open to others", lambda h: wide(h).opened("state/key.pem", 0o644), "0644", "chmod 600")
simple("TLS key", "is not there", lambda h: (wide(h).state / "key.pem").unlink(), "not there", "put it at")

# -- the registry, its supervisor and its doors

simple(
    "registry",
    "damaged",
    lambda h: h.file("registry.sqlite3", "not a database " * 300),
    "not a database",
    "tenuto db check",
)
simple("registry", "a directory", lambda h: h.made("registry.sqlite3"), "registry.sqlite3", "yours")
simple(
    "registry",
    "of a newer program",
    lambda h: h.rows().sql("UPDATE alembic_version SET version_num = '9999'"),
    "9999",
    "tenuto db restore FILE",
)
simple(
    "registry",
    "of an older program",
    lambda h: h.rows().sql("UPDATE alembic_version SET version_num = '0001'"),
    "0001",
    "tenuto db upgrade",
)
simple("registry", "of no known kind", lambda h: h.config('database = "mysql://box/x"\n'), "mysql", "`database`")
simple("registry", "a server that is away", lambda h: h.config(SERVER), "127.0.0.1", "start the database server")
simple(
    "registry",
    "without its driver",
    lambda h: h.config(SERVER).lacks("tenuto.store.postgresql"),
    "extra 'postgres'",
    "pip install",
)


simple("supervisor", "dead", lambda h: h.stands("fresh-dead"), "fresh-dead, pid 4711", "tenuto start")
simple("supervisor", "long dead", lambda h: h.stands("stale-dead"), "stale-dead", "tenuto start")
simple("supervisor", "stopping", lambda h: h.stands("stop-fenced"), "stop-fenced", "wait until")
simple("supervisor", "hanging", lambda h: h.stands("stale-alive"), "stale-alive", "tenuto restart")
simple("supervisor", "hanging elsewhere", lambda h: h.stands("stale-alive", near=False, host="far"), "on far", "on far")
simple(
    "supervisor",
    "in trouble",
    lambda h: h.stands("live", troubles=("the disk is full",)),
    "the disk is full",
    "tenuto status",
)
simple(
    "supervisor",
    "unreadable",
    lambda h: h.file("registry.sqlite3", "not a database " * 300),
    "cannot be read",
    "registry first",
)
simple("API socket", "left behind", Home.listens, "refused", "tenuto start")
simple("API socket", "not answered", lambda h: h.listens().stands("live"), "refused", "tenuto restart")
simple("API socket", "gone", lambda h: h.stands("live"), "though a supervisor leads", "tenuto restart")
simple(
    "API socket",
    "of one that leads elsewhere",
    lambda h: h.listens().stands("live", near=False, host="far", address="/far/api.sock"),
    "leads and answers at /far/api.sock",
    "tenuto start",
    None,
)
simple(
    "API socket",
    "nowhere to be looked for",
    lambda h: h.file("registry.sqlite3", "not a database " * 300),
    "not there",
    "registry first",
    None,
)


@fault("API socket", "answered by somebody who does not lead", "somebody answers", "end what listens")
def _answered(home: Home) -> None:
    home.made()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(home.state / "api.sock"))
    listening.listen()
    home.held.append(listening)
    home.glance = replace(LED, address="/elsewhere/api.sock")


def taken(home: Home, *, named: bool) -> None:
    """A port that another program has."""
    other = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    other.bind(("127.0.0.1", 0))
    other.listen()
    home.held.append(other)
    port = other.getsockname()[1]
    if named:
        home.config(f"port = {port}\n")
    else:
        home.patch.setattr("tenuto.config.PORT", port)


simple("HTTP port", "taken", lambda h: taken(h, named=True), "in use", "`port`")
simple("HTTP port", "taken, and nobody asked for it", lambda h: taken(h, named=False), "socket alone", "", None)
simple(
    "HTTP port",
    "whose holder cannot be known",
    lambda h: h.file("registry.sqlite3", "not a database " * 300),
    "cannot be read",
    "registry",
    None,
)
simple("host executor", "half installed", lambda h: h.plays(turn, "__file__", "/nowhere/turn.py"), "missing", "install")
simple(
    "spool",
    "with refused words",
    lambda h: h.made("spool/refused").file("spool/refused/a.json", ""),
    "1 refused",
    "refused",
)

# -- the machine


def limit(home: Home, which: int, soft: int, hard: int) -> None:
    """What the machine allows."""
    real = resource.getrlimit
    home.patch.setattr(resource, "getrlimit", lambda what: (soft, hard) if what == which else real(what))


simple("descriptors", "too few", lambda h: limit(h, resource.RLIMIT_NOFILE, 100, 4096), "100 allowed", "ulimit -n 224")
simple("descriptors", "never enough", lambda h: limit(h, resource.RLIMIT_NOFILE, 100, 200), "100", "ulimit -n 200")
simple("processes", "too many", lambda h: limit(h, resource.RLIMIT_NPROC, 1, 1), "of 1", "ulimit -u")


def without(home: Home, module: str) -> Home:
    """A module that is not installed."""
    real = importlib.util.find_spec
    played = partial(_found, real, module)
    return home.plays(importlib.util, "find_spec", played)


def _found(real: Callable[..., Any], lacking: str, name: str, *rest: Any) -> Any:
    return None if name == lacking else real(name, *rest)


simple("extras", "no driver", lambda h: without(h, "psycopg").config(SERVER), "postgres", "tenuto[postgres]")
simple(
    "extras",
    "no accessibility",
    lambda h: without(h, "jeepney").config('[page_witnesses]\ndesk = "accessibility"\n'),
    "accessibility",
    "tenuto[accessibility]",
)
simple(
    "extras",
    "no GitHub",
    lambda h: without(h, "githubkit").given("TENUTO_GITHUB_TOKEN", "x"),
    "github",
    "tenuto[github]",
)
simple("site profiles", "one that is none", lambda h: h.put("sites/a.toml", "[site]\n"), "a.toml", "mend that file")

# -- tool servers and witnesses

simple(
    "tool server",
    "not there",
    lambda h: h.config(f'[tool_servers]\nmine = "{h.root}/no"\n'),
    "holds no sessions",
    "`tool_servers`",
)


def change(home: Home, **fields: Any) -> None:
    """A session file with other fields."""
    session = home.server()
    session.write_text(json.dumps(json.loads(session.read_text()) | fields))


simple("tool server", "of another version", lambda h: change(h, version=9), "version", "tenuto tool unbind TASK")
simple("tool server", "with a spoiled file", lambda h: h.server().write_text("{"), "s_222", "tenuto tool unbind TASK")
CALL = {"a" * 32: {"started_at": 1780000015.0, "heartbeat_at": 1780000015.0}}


@fault("tool server", "with a call that outlived it", "1 with a call that outlived it", "end that session")
def _orphaned(home: Home) -> None:
    change(home, in_flight_calls=CALL)
    home.plays(SystemClock, "now", lambda _self: datetime.fromtimestamp(1780000300.0, UTC))


simple(
    "page witness",
    "with nothing to look at",
    lambda h: h.config('[page_witnesses]\nweb = "devtools:127.0.0.1:9"\n'),
    "127.0.0.1:9",
    "`page_witnesses`",
)


@fault("door of tool server", "that does not answer", "cannot be reached", "start the server")
def _closed(home: Home) -> None:
    home.server()
    with (home.root / "config.toml").open("a") as file:
        file.write('[tool_doors]\nmine = "http://127.0.0.1:9/mcp"\n')
    home.program("true", "exit 0").probe = True


# -- what the registry says

simple(
    "tasks",
    "unreadable",
    lambda h: h.file("registry.sqlite3", "not a database " * 300),
    "cannot be read",
    "registry first",
    None,
)
simple("clock", "before the last event", lambda h: h.rows(later=True), "2999", "set the clock")
simple(
    "agent programs", "gone", lambda h: h.rows(Agent("program", ("no-such-program",), True)), "no-such-program", "PATH"
)
simple(
    "agent programs",
    "gone from its place",
    lambda h: h.rows(Agent("program", ("/no/such/program",), True)),
    "/no/such/program",
    "PATH",
)
simple(
    "directories", "gone", lambda h: h.rows().sql("UPDATE task SET cwd = '/no/such/place'"), "/no/such/place", "cancel"
)
simple("queue", "full", lambda h: h.rows().config("[policy]\npending-tasks = 0\n"), "0 of at most 0", "wait until")
simple("commands", "in doubt", lambda h: h.rows(doubt=True), "1 of which", "tenuto attention")


@fault("journals", "that nobody knows", "1 began something", "tenuto start")
def _strange(home: Home) -> None:
    home.rows()
    with closing(sqlite3.connect(home.state / "registry.sqlite3")) as registry:
        (name,) = registry.execute("SELECT id FROM registry").fetchone()
    home.made("journal")
    command = "c-00000000000000000000000001"
    mark = {"v": 1, "mark": "claimed", "registry": name, "epoch": 1, "kind": "turn", "attempt": "a-1", "host": None}
    home.file(f"journal/{command}.jsonl", json.dumps({**mark, "command": command}) + "\n")


simple(
    "executors",
    "that nobody can be asked about",
    lambda h: h.rows(Agent("program", ("true",), True, on="host:lab")),
    "could be asked",
    "tenuto start",
    None,
)


def executors(home: Home, *rows: dict[str, object]) -> None:
    """A supervisor that tells of these executors."""
    home.rows(Agent("program", ("true",), True, on="host:lab"))
    home.patch.setattr(probing, "_asked", lambda *_: {"executors": list(rows)})


simple("executor", "that never came", executors, "never connected", "tenuto host --name lab")
simple(
    "executor",
    "that is away",
    lambda h: executors(h, {"name": "host:lab", "connected": False}),
    "1 tasks are meant",
    "tenuto host --name lab",
)
simple("executor", "in trouble", lambda h: executors(h, {"name": "host:lab", "trouble": "no room"}), "no room", "log")
simple(
    "executor",
    "with commands of another registry",
    lambda h: executors(h, {"name": "host:lab", "strangers": ["c-1"]}),
    "1 commands",
    "tenuto attention",
)


@fault("agent", "that tells no version", "tells no version", "--version by hand")
def _silent(home: Home) -> None:
    home.program("claude", "exit 1")
    home.probe = True


@fault("agent", "that is gone", "no-such-codex is not found", "PATH")
def _missing(home: Home) -> None:
    home.program("true", "exit 0").rows(Agent("codex", ("no-such-codex",), True))
    home.probe = True


#: Checks that say that there is none of something, and cannot fail.
NONE_OF_IT = {"tool servers", "agents"}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home with a short name: the sockets in it have no room for a long one."""
    for name in [name for name in os.environ if name.startswith(("TENUTO_", "LOCAL_SHELL_"))]:
        monkeypatch.delenv(name)
    # Reading the commands' signatures anew for every line takes longer than all the checks.
    monkeypatch.setattr(typer.main, "get_command", lambda _program: mends.PROGRAM)
    with tempfile.TemporaryDirectory(prefix="tn-") as root:
        made = Home(Path(root), monkeypatch)
        yield made
        for each in made.held:
            each.close()


@pytest.mark.parametrize("it", FAULTS, ids=[f"{each.check} {each.about}" for each in FAULTS])
def test_a_fault_is_told_with_its_mend(it: Fault, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    it.make(home)
    outside = Entrances({**os.environ, "TENUTO_HOME": str(home.root)})
    outside.home = home
    code = app.main(outside, ["doctor", "--json", *(["--probe"] if home.probe else [])])
    told = json.loads(capsys.readouterr().out)
    named = [each for each in told["checks"] if each["name"] == it.check]
    named = named or [each for each in told["checks"] if each["name"].startswith(f"{it.check} ")]
    (check,) = [each for each in named if each["ok"] is not True]
    assert check["ok"] is it.ok, told
    assert it.found in check["found"], check
    assert it.mend in check["mend"], check
    assert code == (0 if told["ok"] else 1), "the exit code says whether all is well"
    assert told["ok"] is (not any(each["ok"] is False for each in told["checks"]))
    for each in told["checks"]:
        assert each["mend"] or each["ok"] is not False, each
        assert [why for words in mends.commands(each["mend"]) if (why := mends.objection(words))] == []


def test_every_check_is_seen_to_fail() -> None:
    """Whoever adds a check adds the fault that it finds."""
    named: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                given = node.args[0] if node.func.id in ("Check", "directory", "private") else None
            elif isinstance(node, ast.Assign) and {ast.unparse(each) for each in node.targets} & {"name", "what"}:
                given = node.value
            else:
                continue
            if isinstance(given, ast.JoinedStr):
                given = given.values[0]
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                named.add(given.value.strip())
    assert len(named) > 30
    assert named - NONE_OF_IT == {each.check for each in FAULTS}
