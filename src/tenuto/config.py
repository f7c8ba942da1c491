"""Settings: one frozen value, read once.

`config.toml` in the platform's configuration directory gives them, a few `TENUTO_*` variables override single ones,
and TENUTO_HOME puts configuration, state and sockets under one directory. Unknown names are errors that say which.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import time, timedelta
from pathlib import Path

from tenuto.model.faults import Mistake
from tenuto.model.limit import Quiet
from tenuto.model.policy import KEEPING, POLICY, Keeping, Policy, number

SOCKET_BYTES = 100
SIZE = 1024 * 1024
SERVERS = 16
RULES = 200
_SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_DOOR = re.compile(
    r"(?:https://[A-Za-z0-9.-]+|http://(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]|localhost))(?::\d{1,5})?(?:/[\w./-]*)?"
)
SERVER = "postgresql://"
_API = re.compile(
    r"https://[A-Za-z0-9.-]{1,253}(:\d{1,5})?(/[\w./-]*)?|http://(127\.0\.0\.1|\[::1\]|localhost)(:\d{1,5})?(/[\w./-]*)?"
)
_BUS = re.compile(r"unix:(?:path|abstract)=[\w./:-]{1,300}")
_LISTENS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}")
_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,200}")
_PASSWORD = re.compile(r"^(\w+://[^:/?#@]*):[^/?#]*@")
_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&]*")
PORT = 6174
LOOPBACK = ("loopback", "localhost", "127.0.0.1", "::1")
EXTENSION = re.compile(r"chrome-extension://[a-p]{32}|moz-extension://[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HOST = re.compile(r"[A-Za-z0-9.-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]{2,45}\]:[0-9]{1,5}")


@dataclass(frozen=True)
class PageWitnessAt:
    """What watches pages: `accessibility` of the session whose bus is at `where` (None: ours), or `devtools` there."""

    kind: str
    where: str | None


@dataclass(frozen=True)
class UnitRows:
    """A database whose rows are units: its URL (never shown), the statement that lists, and the one that records."""

    url: str = field(repr=False)
    listing: str
    recording: str
    claiming: str | None = None


@dataclass(frozen=True)
class GitHubAccount:
    """Where GitHub is and who asks: its host, the API's address (None: the host's own), a token or a token's file."""

    host: str = "github.com"
    api: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None


@dataclass(frozen=True)
class Settings:
    """Where things are and the numbers that are not part of a run's policy.

    `slots` is how many tasks may be active at once. `policy` are the defaults of new runs. `port` is where HTTP is
    served beside the Unix socket, None: nowhere; `port_wished` says that nobody asked for it by name. `bind` is None
    for loopback; any other address comes with a certificate, its key, a token's file and the names it is reached by.
    `extensions` are origins of paired browser extensions. `supervisor` are addresses at which an executor that is
    started here looks for whoever leads, in turn.
    `machine` is what this machine is called where several share a registry (None: its own name);
    `shared_directories` says that a task's directory is the same on all of them. `keep` is how long what is over stays.
    `tool_servers` are state directories of tool servers, by the names they are called here, and `tool_doors` addresses
    of their MCP endpoints; `page_witnesses` are what watches pages from outside, by name; `units` are databases whose
    rows are units of chains; `github` is how GitHub is asked. `self_advancing_off` stops every merge and every
    successor of chains that advance themselves, whatever else says yes.
    """

    home: Path | None
    config_file: Path
    state: Path
    database: str
    slots: int = 20
    policy: Policy = POLICY
    port: int | None = None
    port_wished: bool = False
    bind: str | None = None
    hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    token_file: Path | None = None
    extensions: tuple[str, ...] = ()
    supervisor: tuple[str, ...] = ()
    quiet: Quiet | None = None
    machine: str | None = None
    shared_directories: bool = False
    keep: Keeping = KEEPING
    tool_servers: Mapping[str, Path] = field(default_factory=dict)
    tool_doors: Mapping[str, str] = field(default_factory=dict)
    page_witnesses: Mapping[str, PageWitnessAt] = field(default_factory=dict)
    units: Mapping[str, UnitRows] = field(default_factory=dict)
    github: GitHubAccount = field(default_factory=GitHubAccount)
    self_advancing_off: bool = False
    worktree_root: Path | None = None

    @property
    def server(self) -> bool:
        """Whether the registry is a PostgreSQL database."""
        return self.database.startswith(SERVER)

    @property
    def shown_database(self) -> str:
        """The registry as a person is shown it: a path, or a URL without its password."""
        return without_password(self.database) if "://" in self.database else str(self.registry_path)

    @property
    def registry_path(self) -> Path:
        """The SQLite file; meaningful only where `database` is one."""
        return Path(self.database.removeprefix("sqlite:///"))

    @property
    def journal(self) -> Path:
        return self.state / "journal"

    @property
    def tool_tokens(self) -> Path:
        """Where bearer tokens of tool servers lie, each in a file of its server's name."""
        return self.state / "tool-tokens"

    @property
    def spool(self) -> Path:
        return self.state / "spool"

    @property
    def forges(self) -> Path:
        """Objects of remotes that have no host."""
        return self.state / "forges"

    @property
    def checkouts(self) -> Path:
        """Checkouts of single commits, for gates and reviewers."""
        return self.state / "checkouts"

    @property
    def worktrees(self) -> Path:
        """Where fresh worktrees of tasks are made."""
        return self.worktree_root or self.state / "worktrees"

    @property
    def self_advancing_stop(self) -> Path:
        """A file that stops self-advancing chains while it is there."""
        return self.state / "self-advancing.off"

    @property
    def log(self) -> Path:
        return self.state / "supervisor.log"

    @property
    def operator_token(self) -> Path:
        return self.token_file or self.state / "operator.token"

    @property
    def playbooks(self) -> Path:
        return self.config_file.parent / "playbooks"

    @property
    def sites(self) -> Path:
        """Where a user's own profiles of chat sites lie."""
        return self.config_file.parent / "sites"

    @property
    def extensions_file(self) -> Path:
        """Which browser extensions were paired, and from which origins."""
        return self.state / "extensions.json"

    @property
    def env_file(self) -> Path:
        return (self.home or self.config_file.parent) / "env"

    @property
    def socket(self) -> Path:
        return self._socket("api.sock")

    @property
    def bell(self) -> Path:
        return self._socket("bell.sock")

    def _socket(self, name: str) -> Path:
        """In the state directory; under a hash in the runtime directory where that path is too long for a socket."""
        path = self.state / name
        if len(os.fsencode(path)) <= SOCKET_BYTES:
            return path
        runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/tenuto-{os.getuid()}"  # noqa: S108 - made 0700 and checked
        digest = hashlib.sha256(os.fsencode(self.state.absolute())).hexdigest()[:24]
        return Path(runtime) / "tenuto" / f"{digest}-{name}"


def without_password(url: str) -> str:
    """The same URL, fit to be shown."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1@", url))


def load(environ: Mapping[str, str], config: Path | None = None, db: str | None = None) -> Settings:
    """The settings in force; raises Mistake naming the field for anything that cannot be read or is unknown."""
    home = _home(environ)
    if home is not None:
        config_file, state = home / "config.toml", home / "state"
    else:
        import platformdirs

        config_file = Path(platformdirs.user_config_dir("tenuto")) / "config.toml"
        state = Path(platformdirs.user_state_dir("tenuto"))
    if config is not None:
        if not config.is_file():
            raise Mistake(f"there is no configuration at {config}", field="config")
        config_file = config
    told = _read(config_file)
    if "state" in told:
        state = Path(str(told.pop("state"))).expanduser()
        if not state.is_absolute():
            raise Mistake("state must be an absolute path", field="state")
    database = db or environ.get("TENUTO_DB") or str(told.pop("database", "") or state / "registry.sqlite3")
    told.pop("database", None)
    settings = Settings(home, config_file, state, database)
    policy = told.pop("policy", {})
    if not isinstance(policy, dict):
        raise Mistake("policy is a table of numbers", field="policy")
    slots = told.pop("slots", settings.slots)
    if not isinstance(slots, int) or isinstance(slots, bool) or not 1 <= slots <= 10_000:
        raise Mistake("slots is a whole number from 1 to 10000", field="slots")
    settings = _with_executors(_with_port(_with_others(settings, told), told, environ), told)
    settings = replace(settings, github=_github(told.pop("github", {}), environ), self_advancing_off=_off(environ))
    settings = replace(settings, worktree_root=_directory(told.pop("worktrees", None), "worktrees"))
    settings = replace(settings, quiet=_quiet(told))
    if told:
        raise Mistake(f"{config_file}: there is no setting '{sorted(told)[0]}'", field=sorted(told)[0])
    return replace(settings, slots=slots, policy=policy_with(POLICY, policy))


def _with_others(settings: Settings, told: dict[str, object]) -> Settings:
    """What this machine is to others that share its registry, and how long what is over is kept."""
    machine = told.pop("machine", None)
    if machine is not None and (not isinstance(machine, str) or not _MACHINE.fullmatch(machine)):
        raise Mistake("machine is a name of letters, digits, dots and dashes", field="machine")
    shared = told.pop("shared_directories", False)
    if not isinstance(shared, bool):
        raise Mistake("shared_directories is true or false", field="shared_directories")
    settings = replace(settings, tool_servers=_tool_servers(told.pop("tool_servers", {})))
    settings = replace(settings, tool_doors=_tool_doors(told.pop("tool_doors", {})))
    settings = replace(settings, page_witnesses=_page_witnesses(told.pop("page_witnesses", {})))
    settings = replace(settings, units=_units(told.pop("units", {})))
    keep = told.pop("keep", {})
    if not isinstance(keep, dict):
        raise Mistake("keep is a table of numbers", field="keep")
    return replace(settings, machine=machine, shared_directories=shared, keep=keeping_with(KEEPING, keep))


def _tool_servers(given: object) -> Mapping[str, Path]:
    """Where each tool server keeps its state, by the name it is called here."""
    if not isinstance(given, dict) or len(given) > SERVERS:
        raise Mistake(f"tool_servers is a table of at most {SERVERS} state directories", field="tool_servers")
    servers: dict[str, Path] = {}
    for name, path in given.items():
        if not _SERVER.fullmatch(name):
            raise Mistake("a tool server's name has up to 40 letters, digits, dots and dashes", field="tool_servers")
        if not isinstance(path, str) or not Path(path).expanduser().is_absolute():
            raise Mistake(f"the state directory of {name} must be an absolute path", field=f"tool_servers.{name}")
        servers[name] = Path(path).expanduser()
    return servers


def _tool_doors(given: object) -> Mapping[str, str]:
    """Where the MCP endpoint of each tool server is: without TLS on loopback only, and never with a secret in it."""
    if not isinstance(given, dict) or len(given) > SERVERS:
        raise Mistake(f"tool_doors is a table of at most {SERVERS} addresses", field="tool_doors")
    for name, url in given.items():
        if not _SERVER.fullmatch(name):
            raise Mistake("a tool server's name has up to 40 letters, digits, dots and dashes", field="tool_doors")
        if not isinstance(url, str) or len(url) > 500 or not _DOOR.fullmatch(url):
            raise Mistake(
                f"the address of {name} is https://HOST[:PORT]/PATH, or http:// on 127.0.0.1, [::1] or localhost",
                field=f"tool_doors.{name}",
            )
    return dict(given)


def _page_witnesses(given: object) -> Mapping[str, PageWitnessAt]:
    """What watches pages from outside: accessibility trees of a session, or a browser's DevTools on this machine."""
    if not isinstance(given, dict) or len(given) > SERVERS:
        raise Mistake(f"page_witnesses is a table of at most {SERVERS} witnesses", field="page_witnesses")
    found: dict[str, PageWitnessAt] = {}
    for name, told in given.items():
        if not _SERVER.fullmatch(name):
            raise Mistake("a page witness's name has up to 40 letters, digits, dots and dashes", field="page_witnesses")
        kind, _, where = told.partition(":") if isinstance(told, str) else ("", "", "")
        good = (kind == "accessibility" and (not where or _BUS.fullmatch(where))) or (
            kind == "devtools" and _LISTENS.fullmatch(where) and 0 < int(where.rpartition(":")[2]) < 65536
        )
        if not good:
            raise Mistake(
                f"{name} is 'accessibility', 'accessibility:unix:path=/run/user/1000/bus' or 'devtools:127.0.0.1:9222'",
                field=f"page_witnesses.{name}",
            )
        found[name] = PageWitnessAt(kind, where or None)
    return found


def _units(given: object) -> Mapping[str, UnitRows]:
    """The databases whose rows are units, by the names chains call them."""
    if not isinstance(given, dict) or len(given) > SERVERS:
        raise Mistake(f"units is a table of at most {SERVERS} databases", field="units")
    found: dict[str, UnitRows] = {}
    for name, table in given.items():
        if not _SERVER.fullmatch(name):
            raise Mistake("the name of units has up to 40 letters, digits, dots and dashes", field="units")
        parts = {"url", "list", "record"}
        whole = isinstance(table, dict) and parts <= set(table) <= parts | {"claim"}
        if not whole or not all(isinstance(part, str) for part in table.values()):
            raise Mistake(f"units.{name} has url, list, record, and perhaps claim, each a text", field=f"units.{name}")
        found[name] = UnitRows(table["url"], table["list"], table["record"], table.get("claim"))
    return found


def _github(given: object, environ: Mapping[str, str]) -> GitHubAccount:
    """How GitHub is asked. A token stands in the environment or in a file, and never in the configuration."""
    if not isinstance(given, dict) or not set(given) <= {"host", "api", "token_file"}:
        raise Mistake("github is a table of host, api and token_file", field="github")
    host = given.get("host", GitHubAccount.host)
    if not isinstance(host, str) or not _MACHINE.fullmatch(host) or host != host.lower():
        raise Mistake("github.host is a name, as in 'github.example.org'", field="github.host")
    api = given.get("api")
    if api is not None and (not isinstance(api, str) or not _API.fullmatch(api)):
        raise Mistake("github.api is an address that begins with https:// (http:// on loopback)", field="github.api")
    token = environ.get("TENUTO_GITHUB_TOKEN") or environ.get("GITHUB_TOKEN") or None
    if token is not None and (len(token) > 4096 or not token.isascii() or any(one.isspace() for one in token)):
        raise Mistake("the token of GitHub in the environment is none", field="TENUTO_GITHUB_TOKEN")
    return GitHubAccount(host, api, token, _file(given.get("token_file"), "github.token_file"))


def _off(environ: Mapping[str, str]) -> bool:
    """Whether the environment stops chains that advance themselves: any word but 0, no and false does."""
    return environ.get("TENUTO_SELF_ADVANCING_DISABLED", "").strip().lower() not in ("", "0", "no", "false")


def _with_port(settings: Settings, told: dict[str, object], environ: Mapping[str, str]) -> Settings:
    """Where HTTP is served. Anywhere but on loopback needs TLS and a token's file, each said in so many words."""
    wished = "port" not in told and "TENUTO_PORT" not in environ
    given: object = told.pop("port", PORT)
    if "TENUTO_PORT" in environ:
        word = environ["TENUTO_PORT"]
        given = int(word) if word.isascii() and word.isdigit() else word
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= 65535:
        raise Mistake("port is a whole number from 0 (none) to 65535", field="port")
    bind = told.pop("bind", "loopback")
    if not isinstance(bind, str):
        raise Mistake("bind is an address, or 'loopback'", field="bind")
    files = {
        "tls_certificate": _file(told.pop("tls_certificate", None), "tls_certificate"),
        "tls_key": _file(told.pop("tls_key", None), "tls_key"),
        "token_file": _file(told.pop("token_file", None), "token_file"),
    }
    hosts = told.pop("hosts", [])
    if not isinstance(hosts, list) or not all(isinstance(one, str) and HOST.fullmatch(one) for one in hosts):
        raise Mistake("hosts is a list of names with their ports, as in ['box.example:6174']", field="hosts")
    settings = replace(
        settings,
        port=given or None,
        port_wished=wished,
        hosts=tuple(one.lower() for one in hosts),
        tls_certificate=files["tls_certificate"],
        tls_key=files["tls_key"],
        token_file=files["token_file"],
    )
    if bind in LOOPBACK:
        return settings
    import ipaddress

    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        raise Mistake("bind is an address, or 'loopback'", field="bind") from None
    if address.is_loopback:
        return settings
    missing = [name for name, file in files.items() if file is None] + ([] if hosts else ["hosts"])
    if missing:
        raise Mistake(f"bind = '{bind}' is not loopback: set {', '.join(missing)} too, or leave bind out", field="bind")
    return replace(settings, bind=bind)


def _with_executors(settings: Settings, told: dict[str, object]) -> Settings:
    """Which extensions may come as executors, and where executors that are started here go."""
    extensions = told.pop("extensions", [])
    if not isinstance(extensions, list) or not all(
        isinstance(one, str) and EXTENSION.fullmatch(one) for one in extensions
    ):
        raise Mistake(
            "extensions is a list of origins, as in ['chrome-extension://abcdefghijklmnopabcdefghijklmnop']",
            field="extensions",
        )
    supervisor = told.pop("supervisor", [])
    if not isinstance(supervisor, list) or not all(isinstance(one, str) and 0 < len(one) <= 300 for one in supervisor):
        raise Mistake("supervisor is a list of addresses, as in ['wss://box.example:6174']", field="supervisor")
    return replace(settings, extensions=tuple(extensions), supervisor=tuple(supervisor))


def _file(given: object, name: str) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str) or not Path(given).expanduser().is_absolute():
        raise Mistake(f"{name} is the absolute path of a file", field=name)
    return Path(given).expanduser()


def _directory(given: object, name: str) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str) or not Path(given).expanduser().is_absolute():
        raise Mistake(f"{name} is the absolute path of a directory", field=name)
    return Path(given).expanduser()


def _home(environ: Mapping[str, str]) -> Path | None:
    given = environ.get("TENUTO_HOME")
    if not given:
        return None
    return Path(given).expanduser().absolute()


def _read(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > SIZE:
            raise Mistake(f"{path} is larger than a configuration can be", field="config")
        return dict(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Mistake(f"{path} cannot be read: {error}", field="config") from None


def policy_with(policy: Policy, changes: Mapping[str, object]) -> Policy:
    """A policy with single numbers replaced: durations in seconds, lists of durations as lists of seconds."""
    made: dict[str, object] = {}
    known = {field.name for field in fields(Policy)}
    for raw, value in changes.items():
        name = raw.replace("-", "_")
        if name not in known:
            raise Mistake(f"there is no policy number '{raw}'", field=raw)
        made[name] = _number(raw, getattr(policy, name), value)
    return replace(policy, **made)  # type: ignore[arg-type]


def keeping_with(keeping: Keeping, changes: Mapping[str, object]) -> Keeping:
    """Other lengths of time, in seconds; a count stays a count."""
    known = {field.name for field in fields(Keeping)}
    for name in changes:
        if name not in known:
            raise Mistake(f"there is no number '{name}' of what is kept", field=name)
    made = {name: _number(name, getattr(keeping, name), value) for name, value in changes.items()}
    return replace(keeping, **made)  # type: ignore[arg-type]


def _rules(name: str, value: object) -> tuple[str, ...]:
    """Rules about what programs ask leave for: `TOOL` or `TOOL: PATTERN`."""
    given = value.split("\n") if isinstance(value, str) else value
    if not isinstance(given, list) or len(given) > RULES or not all(isinstance(one, str) for one in given):
        raise Mistake(f"{name} is a list of at most {RULES} rules, each TOOL or 'TOOL: PATTERN'", field=name)
    found = tuple(one.strip() for one in given if one.strip())
    if any(len(one) > 500 or not one.partition(":")[0].strip() for one in found):
        raise Mistake(f"a rule of {name} names a tool and has at most 500 characters", field=name)
    return found


def _quiet(told: dict[str, object]) -> Quiet | None:
    """The hours in which nothing goes on by itself after a limit, in a zone of their own or this machine's."""
    given, zone = told.pop("quiet", None), told.pop("quiet_zone", None)
    if given is None:
        return None
    try:
        first, _, second = str(given).partition("-")
        begins, ends = time.fromisoformat(first.strip()), time.fromisoformat(second.strip())
    except ValueError:
        raise Mistake("quiet is a span of hours, as in '23:00-07:00'", field="quiet") from None
    if begins == ends or begins.tzinfo is not None or ends.tzinfo is not None:
        raise Mistake("quiet is a span of hours, as in '23:00-07:00'", field="quiet")
    if zone is None:
        return Quiet(begins, ends, None)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return Quiet(begins, ends, ZoneInfo(str(zone)))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Mistake("quiet_zone is a time zone, as in 'Europe/Berlin'", field="quiet_zone") from None


def _number(name: str, now: object, value: object) -> object:
    if name in ("allow", "deny"):
        return _rules(name, value)
    if isinstance(now, tuple):
        if not isinstance(value, list) or not value:
            raise Mistake(f"{name} is a list of seconds", field=name)
        return tuple(number(name, timedelta(), each) for each in value)
    return number(name, now, value)
