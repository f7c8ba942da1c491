"""The executor that has a tool server give one of its sessions to a new run, through that server's own tools.

One call per command, marked in a journal before and after. A call that went out and was not answered is never made
again: the server's own log, by the label of the call, or a later life of the server tells what became of it, and where
neither does it stays unknown. A version whose tools offer no takeover is not asked at all.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenuto.model.command import Accepted, Armed, Command, Outcome, Unknown, Unsent
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.model.tools import ToolFacts
from tenuto.model.work import Agent
from tenuto.ports import Clock, Fuse, Order, Placed, TakeOver
from tenuto.transports import processes
from tenuto.transports.host import claim, journal, lineage
from tenuto.transports.localshell import asked, servers
from tenuto.transports.localshell.door import Door, NotAsked, Refused, Unanswered
from tenuto.transports.localshell.servers import Server
from tenuto.transports.localshell.sessions import SESSION

TOOL: Final = "session_manage"
#: What the tool's input must have for a takeover to be offered, and be told apart afterwards.
OFFERS: Final = frozenset({"action", "session_id", "takeover", "label"})
TOKEN_LIMIT: Final = 4096
#: A process's start is known to this.
EXACT: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class Doors:
    """Where the MCP endpoints of servers are: named ones by the settings, others by their own process. `tokens` is a
    directory of files, each named as its server, with a bearer token."""

    named: Mapping[str, str]
    tokens: Path

    def of(self, server: Server) -> Door:
        """The door of a server. Raises NotAsked where none is known."""
        url = self.named.get(server.name) or servers.address(server.state)
        if url is None:
            raise NotAsked(f"where {server.name} answers is not known; name its address in `tool_doors`")
        return Door(url, self._token(server.name))

    def _token(self, name: str) -> str | None:
        path = self.tokens / name
        try:
            about = path.lstat()
        except OSError:
            return None
        if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077 or about.st_size > TOKEN_LIMIT:
            raise NotAsked(f"{path} must be an ordinary file with mode 600")
        return path.read_text("utf-8").strip() or None


class TakingExecutor:
    """Implements `ports.Executor` and `ports.Taking` for tool servers of this machine. `beside` is the executor whose
    journal directory it shares."""

    name = "local-shell"

    def __init__(
        self,
        folder: Path,
        registry: str,
        beside: Placed,
        known: Callable[[Path | None], Sequence[Server]],
        doors: Doors,
        clock: Clock,
        fuse: Fuse,
    ) -> None:
        self._folder = folder
        self._registry = registry
        self._beside = beside
        self._known = known
        self._doors = doors
        self._clock = clock
        self._fuse = fuse
        self._working: set[CommandId] = set()

    @property
    def place(self) -> str:
        return self._beside.place

    def reaches(self, place: str) -> bool:
        """Whether a journal of that place is this machine's."""
        return self._beside.reaches(place)

    def carries(self, place: str) -> bool:
        """No conversation is opened here."""
        return self._beside.carries(place)

    def connected(self, conversation: str | None = None) -> bool:
        """Each server is asked when it is needed."""
        return True

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """No agent is started here."""
        return ("agent", "a tool server runs no agents")

    # -- may it be asked

    async def refusal(self, facts: ToolFacts, cwd: str) -> str | None:
        """Why this session cannot be taken over through its server's tools now; None when it can."""
        return await asyncio.to_thread(self._refusal, facts, cwd)

    def _refusal(self, facts: ToolFacts, cwd: str) -> str | None:
        try:
            entered = self._doors.of(self._server(facts.binding.server, cwd))
            offered = entered.enter()
            entered.leave()
        except NotAsked as error:
            return str(error)
        return None if frozenset(offered.get(TOOL, ())) >= OFFERS else "its tools offer no takeover"

    def _server(self, name: str, cwd: str) -> Server:
        for server in self._known(Path(cwd)):
            if server.name == name:
                return server
        raise NotAsked(f"no server is called {name} here")

    # -- the act

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Have the session given to a new run, once."""
        if not isinstance(order, TakeOver):
            return Unsent("only tool sessions are taken over here")
        command = armed.command
        self._working.add(command.id)
        try:
            return await asyncio.shield(asyncio.to_thread(self._carry_out, command, order))
        except Exception as error:  # noqa: BLE001 - at the edge an unexpected failure is Unknown, never an exception
            return Unknown(f"asking the tool server failed ({type(error).__name__}: {error})")

    def _carry_out(self, command: Command, order: TakeOver) -> Outcome:
        try:
            return self._take(command, order)
        finally:
            self._working.discard(command.id)

    def _take(self, command: Command, order: TakeOver) -> Outcome:
        folder = str(self._folder.absolute())
        if not claim.admit(folder, self._registry, command.epoch):
            return Unsent("a later supervisor has been here")
        me = processes.identity_of(os.getpid())
        first = {
            **self._marked("claimed"),
            "command": command.id,
            "attempt": None,
            "task": command.task_id,
            "registry": self._registry,
            "epoch": command.epoch,
            "kind": "takeover",
            "conversation": command.conversation_id,
            "host": {"pid": me.pid, "start": me.start, "boot": me.boot} if me is not None else None,
        }
        try:
            written = claim.take(folder, command.id, first)
        except claim.TakenError:
            return Unknown("its journal's place is taken")
        self._fuse.burn("takeover.claimed")
        try:
            return self._at_work(written, order)
        finally:
            written.close()

    def _at_work(self, written: claim.Journal, order: TakeOver) -> Outcome:
        """Everything that can fail without an effect comes before the mark of beginning."""
        try:
            entered = self._doors.of(self._server(order.server, order.cwd))
            offered = entered.enter()
            if not frozenset(offered.get(TOOL, ())) >= OFFERS:
                raise NotAsked("its tools offer no takeover")
        except NotAsked as error:
            return self._failed(written, str(error))
        written.mark(self._marked("begun"))
        self._fuse.burn("takeover.begun")
        given: dict[str, object] = {
            "action": "resume",
            "session_id": order.session,
            "takeover": order.run is not None,
            "label": order.label,
        }
        if "session_run_id" in offered[TOOL]:
            given["session_run_id"] = None
        try:
            data = entered.call(TOOL, given)
        except (NotAsked, Refused) as error:
            return self._failed(written, f"the tool server says: {error}")
        except Unanswered as error:
            return Unknown(f"the tool server was asked, and {error}")
        self._fuse.burn("takeover.answered")
        run = asked.run_of(data)
        if run is None or data.get("session_id") != order.session:
            return Unknown("the tool server answered with no run of this session")
        proof = {"session": f"{order.server}/{order.session}", "run": run}
        written.mark({**self._marked("accepted"), "pid": os.getpid(), "start": None, "proof": proof})
        self._fuse.burn("takeover.journaled")
        entered.leave()
        return Accepted()

    def _failed(self, written: claim.Journal, reason: str) -> Outcome:
        written.mark({**self._marked("failed"), "reason": reason[:400], "mendable": True})
        return Unsent(reason)

    def _marked(self, mark: str) -> dict[str, object]:
        return {"mark": mark, "at": self._clock.now().isoformat(timespec="milliseconds")}

    # -- what became of it

    async def look(self, command: Command) -> Observation:
        """What the journal, the server's log and the process table say of a command."""
        facts = await asyncio.to_thread(self._facts, command)
        return Observation(self.name, Rank.JOURNAL, command.id, self._clock.now(), facts)

    def _facts(self, command: Command) -> CommandFacts:
        working = command.id in self._working  # before the journal is read: who is done has written it
        seen = journal.read(self._folder, command.id)
        performer = Presence.ALIVE if working else _other(seen)
        if performer is Presence.GONE:
            seen = journal.read(self._folder, command.id)
        facts = CommandFacts(
            command.id,
            None,
            seen.mark,
            performer,
            Presence.GONE,
            launched_here=working,
            reason=seen.reason,
            mendable=seen.mendable,
            marked_at=seen.marked_at,
            proof=seen.proof,
        )
        if seen.mark is Mark.NONE and not working and not self._ours(command):
            return replace(facts, mark=Mark.DAMAGED, reason="its journal was in another directory, or has been removed")
        if seen.mark is Mark.BEGUN and performer is Presence.GONE:
            return self._afterwards(command, facts)
        return facts

    def _ours(self, command: Command) -> bool:
        return lineage.covers(self._folder, self._registry, command.epoch)

    def _afterwards(self, command: Command, facts: CommandFacts) -> CommandFacts:
        """It was asked, and nobody lived to write the answer down: the server's own records may tell."""
        subject, _, _run = (command.target or "").partition(" ")
        name, _, session = subject.partition("/")
        found = next((server for server in self._known(None) if server.name == name), None)
        if found is None or facts.marked_at is None or not SESSION.fullmatch(session):
            return replace(facts, reason="its server is not known here any more")
        told = asked.of(command.marker, found.state, facts.marked_at)
        if told.came == 1 and told.ended is True and told.run is not None:
            return replace(facts, mark=Mark.ACCEPTED, proof={"session": subject, "run": told.run})
        if told.came == 1 and told.ended is False:
            return replace(facts, mark=Mark.FAILED, reason="the tool server's log says that it refused")
        life = servers.alive(found.state)
        later = life.told and (life.since is None or life.since - EXACT > facts.marked_at)
        if told.came == 0 and later:
            return replace(facts, mark=Mark.FAILED, reason="its server ended without having heard of it")
        twice = told.came is not None and told.came > 1
        why = told.why or ("its server's log has it more than once" if twice else "nobody saw its answer")
        return replace(facts, reason=f"the tool server was asked, and {why}")

    async def revoke(self, command: Command, epoch: int) -> None:
        """Take the journal's place, so that it can never begin; the next `look` shows who won."""
        now = self._clock.now()
        await asyncio.to_thread(
            lambda: journal.revoke(
                self._folder, command.id, registry=self._registry, epoch=epoch,
                reason="it was revoked before it began", now=now,
            )
        )  # fmt: skip


def _other(seen: journal.Journal) -> Presence:
    """Whether the supervisor that was at it is still there; this very one is not at it any more."""
    if seen.host is None or seen.host == processes.identity_of(os.getpid()):
        return Presence.GONE
    return processes.presence(seen.host)
