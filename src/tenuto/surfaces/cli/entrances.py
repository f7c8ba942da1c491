"""What the command line needs from outside, as one protocol that the wiring fulfils.

A face knows no store, no transport and no configuration; it is handed an `Entrances` and works with that alone. This
module does nothing and imports only the standard library, so that `tenuto status` can be quick: an implementation
must import what it needs inside its methods, and `places`, `environment`, `now`, `fresh_key` and `glance` may import
neither SQLAlchemy nor anything of the web stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tenuto.engine.desk import Desk
    from tenuto.model.foreign import Source


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything of this registry lies.

    `registry` is what a person is shown (a path, or a URL without its password); `registry_file` is None for
    PostgreSQL. `socket` is the Unix socket of the API, `operator_token` the file that holds the operator's bearer
    token (mode 0600), `log` the supervisor's log file, `spool` the directory an agent's words go to while nobody
    listens. None of them needs to exist. `home` is the state directory, `home_from` says what chose it:
    "the platform", "TENUTO_HOME", "--config" and so on, word for word for `tenuto status`.
    """

    home: Path
    home_from: str
    config: Path
    registry: str
    registry_file: Path | None
    socket: Path
    operator_token: Path
    log: Path
    spool: Path


@dataclass(frozen=True, slots=True)
class Glance:
    """The supervisor as its lease row and the process table tell of it, and the cheapest counts.

    `standing` is one of missing, live, fresh-dead, stop-fenced, stale-alive, stale-dead (the words of
    `engine.residency.Standing`); it is "missing" as well when there is no registry yet, and then everything else is
    None or empty. `since` is when the lease was taken, `until` when it runs out unless renewed. `held_at` is the
    operator's hold on everything. `address` is the socket of whoever leads, `near` says whether that is on this host,
    `troubles` are sentences about what keeps it from its work. `tasks` counts tasks by state, `open_commands` those
    that are armed, submitted or ambiguous.
    """

    standing: str
    epoch: int | None = None
    owner: str | None = None
    host: str | None = None
    pid: int | None = None
    since: datetime | None = None
    renewed: datetime | None = None
    until: datetime | None = None
    released: datetime | None = None
    stop_asked: datetime | None = None
    registry_id: str | None = None
    held_at: datetime | None = None
    held_by: str | None = None
    tasks: Mapping[str, int] = field(default_factory=dict)
    open_commands: int = 0
    address: str | None = None
    near: bool = True
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spawned:
    """A detached supervisor that was proven to lead: its lease row names the process that was started."""

    glance: Glance


@dataclass(frozen=True, slots=True)
class AlreadyLed:
    """Nothing was started, or what was started gave way: another supervisor leads."""

    glance: Glance


@dataclass(frozen=True, slots=True)
class NotSpawned:
    """What was started did not come to lead in time, or ended. `reason` is one line; the file `log` tells more."""

    reason: str
    log: Path


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor: `ok` None means it could not be told. `mend` is "" when there is nothing to do."""

    name: str
    ok: bool | None
    found: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a demonstration, a crash matrix, a bench or a database verb came to.

    `ok` False makes the exit code 1. `summary` is one line for a person; `lines` are more of them; `result` is what
    `--json` prints and holds only JSON values.
    """

    ok: bool
    summary: str
    lines: Sequence[str] = ()
    result: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What making Tenuto a service of this user comes to, before any of it is done.

    `files` are written (or, with text None, removed); `commands` are run one after another, without a shell; `notes`
    are for the person. `kind` is "systemd" or "launchd".
    """

    kind: str
    files: tuple[tuple[Path, str | None], ...]
    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """One agent program as it stands here: `path` None where it is not installed, `can` what of it is driven.

    `trouble` is a sentence: why it is not there, or that its version was not tried; "" where nothing is to be said.
    """

    name: str
    path: str | None
    version: str | None
    can: tuple[str, ...]
    trouble: str


@dataclass(frozen=True, slots=True)
class HookPlan:
    """What changing the hooks of a program comes to: the file, the change line by line, and what does it.

    `carry_out` None: there is nothing to do.
    """

    file: Path
    difference: tuple[str, ...]
    notes: tuple[str, ...]
    carry_out: Callable[[], None] | None


class Entrances(Protocol):
    """Everything outside that the command line reaches, for one registry."""

    @property
    def places(self) -> Places:
        """Where things lie. Raises `model.faults.Mistake` when the configuration cannot be read, naming the field."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The process's environment, read only. TENUTO_TOKEN in it means: this is a turn of an agent."""
        ...

    def chosen(self, *, config: Path | None, db: str | None) -> Entrances:
        """The same for another configuration file or registry URL (the global options --config and --db)."""
        ...

    def now(self) -> datetime:
        """The present, aware, UTC."""
        ...

    def fresh_key(self) -> str:
        """A fresh idempotency key of 1 to 200 characters; a retried request carries the same one."""
        ...

    def glance(self) -> Glance:
        """Read the lease row, the hold and the counts with the standard library's sqlite3 (or one query on PostgreSQL).

        Opens read-only, makes nothing, takes no lock. Raises `model.faults.Corrupt` for a file that is no registry and
        `model.faults.UnsupportedVersion` for one of a later version.
        """
        ...

    def open_desk_readonly(self) -> tuple[Desk, Callable[[], None]]:
        """A desk on which nothing can be changed, and what closes it; for reading verbs without a supervisor.

        Raises `model.faults.NotFound` when there is no registry yet, `Corrupt` or `UnsupportedVersion` as `glance`.
        """
        ...

    def run_supervisor_foreground(self, *, standby: bool = False) -> int:
        """Lead and serve until stopped by SIGINT, SIGTERM or `tenuto stop`; the exit code of the process.

        With `standby` it waits while another leads, and leads when nobody does. 0 after a clean stop, 5 when another
        supervisor leads, 1 when the lease was lost. Prints only to the log and to stderr.
        Makes the state directory, the registry and the operator's token where they are missing.
        """
        ...

    def spawn_supervisor_detached(self, within: timedelta) -> Spawned | AlreadyLed | NotSpawned:
        """Start a supervisor in a session of its own and wait until its lease row proves it, at most `within`.

        The proof is a token given to the child and found in the lease row (or its pid with start time), and the
        socket answering. Never starts one beside a living one.
        """
        ...

    def spool(self, verb: str, params: Mapping[str, object], key: str) -> Path:
        """Write an agent's words (complete, fail, wait, report) durably where the next supervisor finds them.

        `params` are the verb's own, as they would be sent to the API, `key` the idempotency key. The agent's token
        and task come from `environment`. Returns the file; raises `model.faults.StorageFull` when it cannot be written.
        """
        ...

    def serve_mcp(self) -> int:
        """Serve MCP on standard input and output until the input ends; the exit code of the process.

        Raises ModuleNotFoundError where the protocol's library was not installed.
        """
        ...

    def host(self, name: str, addresses: Sequence[str], token: Path, journal: Path | None) -> int:
        """Run programs here for a supervisor at one of `addresses` (none: the configured ones) until stopped.

        0 after a clean stop, 4 when the supervisor does not want it, 1 when something failed. Raises
        `model.faults.Mistake` for a name or an address that is none.
        """
        ...

    def extension_folder(self, browser: str, folder: Path | None) -> Path:
        """Lay the browser extension out for a family of browsers; the folder to load. Raises Mistake or OSError.

        Without a folder it is laid out in the state directory.
        """
        ...

    def foreign(self, path: Path, objective: str | None) -> Sequence[Source]:
        """What a registry of another program, or a repository with worktrees, holds that could be imported; only read.

        `objective` is what is to be done in worktrees. Raises Mistake where there is nothing that can be read.
        """
        ...

    def sites(self) -> Proof:
        """The chat sites that are known. Raises Mistake naming the file of a profile that does not fit."""
        ...

    def site_check(self, target: str, *, site: str | None, at: str | None, devtools: str | None) -> Proof:
        """A page against its profile; `result["verdict"]` is known, drifted, unknown or waits.

        `target` is a saved page (which then stood `at` an address) or an address, looked at in a browser of its own, or
        in the one whose DevTools listen at `devtools`. Raises Mistake, and Refused where several tabs fit.
        """
        ...

    def doctor(self, *, probe: bool = False) -> Sequence[Check]:
        """Look at every dependency, lease, schema, directory, permission and executor; changes nothing.

        With `probe` agent programs are asked for their version, and tool servers are greeted.
        """
        ...

    def database(self, act: str, target: Path | None, say: Callable[[str], None]) -> Proof:
        """`act` is "upgrade", "check" or "backup"; `target` is the file a backup goes to (None: beside the registry).

        `upgrade` raises `model.faults.Refused` while a supervisor leads. `say` takes lines of progress.
        """
        ...

    def move(self, url: str, say: Callable[[str], None]) -> Proof:
        """Move the registry from its file into an empty PostgreSQL database; raises Refused while it is used."""
        ...

    def service_plan(self, act: str) -> ServicePlan:
        """What "install" or "remove" would do here; changes nothing. Raises Refused where there is no such service."""
        ...

    def carry_out(self, plan: ServicePlan) -> Sequence[str]:
        """Do what a plan says; a sentence for each step. Raises Mistake when a step fails, and says which."""
        ...

    def agents(self) -> Sequence[AgentFacts]:
        """The agent programs that are known by name, each asked for its version."""
        ...

    def agent_test(self, name: str, argv: tuple[str, ...]) -> Proof:
        """One dry turn with a program in an empty directory. Raises Mistake for a name that is none."""
        ...

    def hooks_plan(self, act: str, agent: str, project: Path | None) -> HookPlan:
        """What "install" or "remove" would do to a program's settings; changes nothing. Raises Mistake."""
        ...

    def hooks_standing(self, agent: str, project: Path | None) -> Mapping[str, object]:
        """`file`, `installed`, `called` (when last, and by what), and `text`, of a program's hooks."""
        ...

    def demo(self, *, keep: bool, say: Callable[[str], None]) -> Proof:
        """The sixty-second demonstration in a registry and directory of its own; `keep` leaves them for looking at."""
        ...

    def crash_matrix(self, *, points: int, seed: int, jobs: int, only: str | None, say: Callable[[str], None]) -> Proof:
        """Kill at `points` points (0: every one once), `jobs` at a time, or at `only` the one of that name.

        `ok` means no invariant was broken. Raises `model.faults.Mistake` for a name that names no case.
        """
        ...

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
        """Live through `worlds` simulated worlds from `seed` on; `ok` means no promise was broken in any of them."""
        ...

    def bench(self, *, seconds: int, say: Callable[[str], None]) -> Proof:
        """Measure this machine for about `seconds`; `result` holds the figures with their units in their names."""
        ...
