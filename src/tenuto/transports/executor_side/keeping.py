"""The journal of an executor: a place per command that exactly one writer takes, and marks that are on the disk.

The same files as a host's (`transports.host.claim`), with three more beside them: which registry it belongs to, which
life of the directory this is, and the highest epoch that was seen. It refuses orders of a supervisor that a later one
has replaced, and a second registry. A claim comes before anything irreversible, and every mark before the next step.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tenuto.model.evidence import Ending, Mark, Presence
from tenuto.model.ids import CommandId
from tenuto.ports import Clock, Fuse
from tenuto.transports import processes, values, wire
from tenuto.transports.executor_side.hands import Greeting, OldEpoch, OtherRegistry, Tell
from tenuto.transports.host import claim, journal, whereabouts

REGISTRY: Final = "registry"
SUMMARY: Final = 1000
"""Of how many commands a greeting tells, the newest."""

REST: Final = timedelta(days=1)
"""How long nobody has touched what may be called over."""

TOLD: Final = 500
"""Of how many such commands a supervisor is asked at a time."""

PATIENCE: Final = 600
"""How often, once a second, a mark is written again that the disk would not take."""


class Keeping:
    """One journal directory. Blocking calls are short: one small file and its sync."""

    def __init__(self, folder: Path, clock: Clock, fuse: Fuse) -> None:
        self.folder = folder
        self.clock = clock
        self.fuse = fuse
        self.registry: str | None = None

    def open(self) -> None:
        """Make the directory and its incarnation, or find them; OSError when that cannot be."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        whereabouts.settle_in(self.folder)
        self.registry = self._line(REGISTRY)

    def incarnation(self) -> str:
        """Which life of the directory this is; OSError when it was taken away."""
        found = whereabouts.incarnation_of(self.folder)
        if found is None:
            raise FileNotFoundError(f"{self.folder} has lost its incarnation")
        return found

    def epoch(self) -> int:
        """The highest epoch that was seen; ValueError when the record is damaged."""
        return claim.epochs(str(self.folder)).get(self.registry, 0) if self.registry is not None else 0

    def greeting(self) -> Greeting:
        """What stands here, newest commands first."""
        self.open()
        entries = []
        for command_id in reversed(journal.held(self.folder)):
            told = journal.read(self.folder, command_id)
            if told.registry in (self.registry, None):
                entries.append(
                    wire.Entry(command_id, told.mark, told.epoch or 0, told.kind, told.conversation, told.task_id)
                )
            if len(entries) >= SUMMARY:
                break
        return Greeting(self.incarnation(), self.registry, self.epoch(), entries)

    def follow(self, registry: str, epoch: int) -> None:
        """Write down who leads. Raises OldEpoch, OtherRegistry, OSError, or ValueError for a damaged record."""
        if self.registry is None:
            self._write_once(REGISTRY, registry)
            self.registry = self._line(REGISTRY)
        if self.registry != registry:
            raise OtherRegistry(f"{self.folder} is the journal of another registry")
        if not claim.admit(str(self.folder), registry, epoch):
            raise OldEpoch(f"epoch {epoch} was replaced by {self.epoch()}")

    def over(self) -> Sequence[CommandId]:
        """Commands that ended and were not touched for a day, the oldest `TOLD` of them."""
        return journal.old(self.folder, age=REST, now=self.clock.now())[:TOLD]

    def forget(self, commands: Collection[CommandId]) -> None:
        """Remove what stands of these, where it is over; all else stays."""
        now = self.clock.now()
        stays = [one for one in journal.old(self.folder, age=REST, now=now) if one not in commands]
        journal.clean(self.folder, stays, age=REST, now=now)

    def read(self, command_id: CommandId) -> journal.Journal:
        return journal.read(self.folder, command_id)

    async def revoke(self, revoke: wire.Revoke) -> Mark:
        """Take the place if it is free; the mark that stands there now."""
        self.fuse.burn("peer.before_revoke")
        await asyncio.to_thread(
            journal.revoke,
            self.folder,
            revoke.command,
            registry=self.registry or "",
            epoch=revoke.epoch,
            reason=revoke.reason[:500],
            now=self.clock.now(),
        )
        self.fuse.burn("peer.revoked")
        return self.read(revoke.command).mark

    async def claim(self, command: wire.Command, tell: Tell) -> Marks | None:
        """Take the place of a command; None when it is taken, or this supervisor was replaced by a later one."""
        me = processes.identity_of(os.getpid())
        line = {
            "mark": Mark.CLAIMED.value,
            "at": _at(self.clock.now()),
            "command": command.command,
            "attempt": command.attempt,
            "task": command.task,
            "registry": self.registry,
            "epoch": command.epoch,
            "kind": command.kind,
            "conversation": command.conversation.identity if command.conversation is not None else None,
            "host": {"pid": me.pid, "start": me.start, "boot": me.boot} if me is not None else None,
        }
        try:
            written = await asyncio.to_thread(claim.take, str(self.folder), command.command, line)
        except claim.TakenError:
            return None
        marks = Marks(command.command, written, self.clock, self.fuse, tell)
        self.fuse.burn("peer.claimed")
        tell(wire.Received(command.command))
        try:
            admitted = claim.admit(str(self.folder), self.registry or "", command.epoch)
        except (OSError, ValueError):
            admitted = False
        if not admitted:
            await marks.failed("a later supervisor leads")
            return None
        return marks

    # -- the small files

    def _line(self, name: str) -> str | None:
        try:
            text = (self.folder / name).read_bytes()[:200].decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        return text or None

    def _write_once(self, name: str, text: str) -> None:
        """Write a small file that stays; whoever comes second finds the first one's."""
        made = self.folder / f".{name}.{os.urandom(6).hex()}.new"
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("ascii") + b"\n")
                file.flush()
                os.fsync(file.fileno())
            try:
                (self.folder / name).hardlink_to(made)
            except FileExistsError:
                return
        finally:
            made.unlink()
        claim.sync_folder(str(self.folder))


class Marks:
    """A command that is ours to carry out: each mark is on the disk before its method returns, and then told.

    `failed` may be used until `accepted`, and only where nothing happened and nothing can happen any more.
    """

    def __init__(self, command: CommandId, written: claim.Journal, clock: Clock, fuse: Fuse, tell: Tell) -> None:
        self.command = command
        self._written = written
        self._clock = clock
        self._fuse = fuse
        self._tell = tell
        self.last = Mark.CLAIMED

    async def begun(self) -> None:
        """The next step cannot be taken back. OSError when the disk refuses: then the step must not be made."""
        at = self._clock.now()
        await asyncio.to_thread(self._written.mark, {"mark": Mark.BEGUN.value, "at": _at(at)})
        self.last = Mark.BEGUN
        self._fuse.burn("peer.begun")
        self._tell(wire.Begun(self.command, at))

    async def accepted(self, **proof: str) -> None:
        """The step was seen to take effect; `proof` names what was seen (ids, counts)."""
        at = self._clock.now()
        await self._surely({"mark": Mark.ACCEPTED.value, "at": _at(at), "pid": None, "start": None, "proof": proof})
        self.last = Mark.ACCEPTED
        self._fuse.burn("peer.accepted")
        self._tell(wire.Accepted(self.command, at, proof))

    async def ended(self, ending: Ending, **proof: str) -> None:
        """The turn's own end was seen, or that it was cut short."""
        at = self._clock.now()
        line = {name: values.written(getattr(ending, name)) for name in Ending.__dataclass_fields__}
        await self._surely({"mark": Mark.ENDED.value, "at": _at(at), **line, "proof": proof})
        self.last = Mark.ENDED
        self._fuse.burn("peer.ended")
        self._tell(wire.Ended(self.command, at, ending, proof))

    async def failed(self, reason: str, *, mendable: bool = False) -> None:
        """Nothing happened, and nothing can happen any more."""
        at = self._clock.now()
        await self._surely({"mark": Mark.FAILED.value, "at": _at(at), "reason": reason[:500], "mendable": mendable})
        self.last = Mark.FAILED
        self._tell(wire.Failed(self.command, at, reason[:500], no_effect=True, mendable=mendable))

    def close(self) -> None:
        self._written.close()

    async def _surely(self, line: Mapping[str, object]) -> None:
        """Write what has happened already; what a full disk refuses is tried again until it takes it."""
        for _ in range(PATIENCE):
            try:
                await asyncio.to_thread(self._written.mark, line)
            except OSError:
                await asyncio.sleep(1)
            else:
                return
        await asyncio.to_thread(self._written.mark, line)


def seen_of(told: journal.Journal) -> wire.CommandSeen:
    """What the journal alone says of a command; who carries it is for eyes."""
    return wire.CommandSeen(
        mark=told.mark,
        performer=Presence.UNKNOWN,
        agent=Presence.UNKNOWN,
        reason=told.reason,
        mendable=told.mendable,
        ending=told.ending,
        marked_at=told.marked_at,
        proof=told.proof,
    )


def _at(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
