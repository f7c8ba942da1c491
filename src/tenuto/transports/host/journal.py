"""The journal of one command, as its readers see it: what the last whole line says, and who wrote it.

It makes no sense of damage: a line that cannot be read, a mark out of order or a version from the future is
DAMAGED, and what stood before it is kept as evidence. A torn last line has not been written. It never writes
into a journal; the one thing it puts down is a revocation, in a place that is still free.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tenuto.model.evidence import Cut, Ending, Hindered, Hindrance, How, Mark
from tenuto.model.ids import SHAPE, AttemptId, CommandId, TaskId
from tenuto.transports.host import claim
from tenuto.transports.processes import Identity

LIMIT: Final = 1 << 20
"""Most bytes of a journal; the longest that a host writes is well below."""

AFTER: Final[Mapping[Mark, frozenset[Mark]]] = {
    Mark.NONE: frozenset({Mark.CLAIMED, Mark.REVOKED, Mark.FAILED}),
    Mark.CLAIMED: frozenset({Mark.BEGUN, Mark.FAILED}),
    Mark.BEGUN: frozenset({Mark.ACCEPTED, Mark.FAILED}),
    Mark.ACCEPTED: frozenset({Mark.ENDED}),
    Mark.ENDED: frozenset(),
    Mark.FAILED: frozenset(),
    Mark.REVOKED: frozenset(),
}
"""Which mark may follow which."""

SKEW: Final = 1
"""How many versions apart a host and its readers may be: hosts go on while the program is replaced."""

SETTLED: Final = frozenset({Mark.REVOKED, Mark.ENDED, Mark.FAILED})


class DamageError(Exception):
    """The journal does not say what a journal says."""


@dataclass(frozen=True)
class Journal:
    """What is written of a command. `host` and `agent` are None when not written or not told by the platform.

    `heard_at` is when its program was heard last, to the second, where its host tells so by the file's own time.
    """

    command_id: CommandId
    mark: Mark = Mark.NONE
    attempt_id: AttemptId | None = None
    registry: str | None = None
    epoch: int | None = None
    kind: str | None = None
    task_id: TaskId | None = None
    target: CommandId | None = None
    host: Identity | None = None
    agent: Identity | None = None
    ending: Ending | None = None
    reason: str | None = None
    mendable: bool = False
    marked_at: datetime | None = None
    conversation: str | None = None
    proof: Mapping[str, str] = field(default_factory=dict)
    heard_at: datetime | None = None


def read(folder: Path, command_id: CommandId) -> Journal:
    """The journal now; Mark.NONE when nobody has taken its place. Never raises for what stands in it."""
    journal = Journal(command_id)
    try:
        found = _held(folder, command_id)
        if found is None:
            return journal
        held, changed = found
        *lines, _torn = held.split(b"\n")
        if not lines:
            raise DamageError("the journal has no whole line")
        for line in lines:
            journal = _with(journal, line)
    except DamageError as damage:
        return replace(journal, mark=Mark.DAMAGED, reason=str(damage))
    seconds, rest = divmod(changed, claim.SECOND)
    heard = datetime.fromtimestamp(seconds, UTC) if rest == claim.HEARD and journal.mark is Mark.ACCEPTED else None
    return replace(journal, heard_at=heard)


def revoke(
    folder: Path,
    command_id: CommandId,
    *,
    registry: str,
    epoch: int,
    reason: str,
    now: datetime,
    mendable: bool | None = None,
) -> bool:
    """Take the place so that the command can never begin; False when somebody has it. OSError when the disk refuses.

    With `mendable` it says that the command failed before any host was there, and whether a person can mend that.
    """
    _checked(command_id)
    line = {
        "mark": (Mark.REVOKED if mendable is None else Mark.FAILED).value,
        "at": now.isoformat(),
        "command": command_id,
        "registry": registry,
        "epoch": epoch,
        "reason": reason,
        "mendable": mendable is True,
    }
    try:
        claim.take(str(folder), command_id, line).close()
    except claim.TakenError:
        return False
    return True


def held(folder: Path) -> tuple[CommandId, ...]:
    """The commands that have a journal here, in the order of their making."""
    names = (path.name.removesuffix(claim.SUFFIX) for path in folder.glob(f"*{claim.SUFFIX}"))
    return tuple(sorted(CommandId(name) for name in names if _is_command(name)))


def strangers(folder: Path, registry: str, known: Collection[CommandId]) -> tuple[Journal, ...]:
    """Journals of this registry that began something, of commands it does not know: it was restored from a backup."""
    unknown = (read(folder, command_id) for command_id in held(folder) if command_id not in known)
    return tuple(one for one in unknown if one.mark is not Mark.REVOKED and one.registry in (registry, None))


def old(folder: Path, *, age: timedelta, now: datetime) -> tuple[CommandId, ...]:
    """The commands of settled journals that nobody has touched for `age`."""
    before = (now - age).timestamp()
    return tuple(
        command_id
        for command_id in held(folder)
        if _older(Path(claim.path_of(str(folder), command_id)), before) and read(folder, command_id).mark in SETTLED
    )


def clean(folder: Path, keep: Collection[CommandId], *, age: timedelta, now: datetime) -> tuple[CommandId, ...]:
    """Remove settled journals not in `keep` and untouched for `age`, and what crashes left half made; tells which."""
    before = (now - age).timestamp()
    gone: list[CommandId] = []
    for command_id in held(folder):
        path = Path(claim.path_of(str(folder), command_id))
        if command_id not in keep and _older(path, before) and read(folder, command_id).mark in SETTLED:
            path.unlink(missing_ok=True)
            gone.append(command_id)
    for pattern in (".*.new", ".*.prompt"):
        for path in folder.glob(pattern):
            if _older(path, before):
                path.unlink(missing_ok=True)
    return tuple(gone)


def _held(folder: Path, command_id: CommandId) -> tuple[bytes, int] | None:
    """What stands in the place, and when the file was changed (nanoseconds since 1970)."""
    _checked(command_id)
    try:
        descriptor = os.open(
            claim.path_of(str(folder), command_id), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamageError(f"the journal cannot be opened ({error.strerror})") from None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise DamageError("the journal is not a regular file")
        held = b""
        while more := os.read(descriptor, LIMIT + 1):
            held += more
            if len(held) > LIMIT:
                raise DamageError("the journal is longer than any host writes")
        return held, about.st_mtime_ns
    except OSError as error:
        raise DamageError(f"the journal cannot be read ({error.strerror})") from None
    finally:
        os.close(descriptor)


def _with(journal: Journal, line: bytes) -> Journal:
    """The journal with one more line."""
    try:
        told = json.loads(line)
        mark = Mark(told["mark"])
        if mark not in AFTER[journal.mark]:
            raise DamageError(f"the journal says {mark.value} after {journal.mark.value}")
        if journal.mark is Mark.NONE:
            journal = _first(journal, told)
        journal = replace(journal, mark=mark, marked_at=_moment(told.get("at")))
        match mark:
            case Mark.ACCEPTED:
                return replace(journal, agent=_agent(told, journal.host), proof=_proof(told))
            case Mark.ENDED:
                return replace(journal, ending=_ending(told), proof={**journal.proof, **_proof(told)})
            case Mark.FAILED | Mark.REVOKED:
                return replace(journal, reason=str(told["reason"]), mendable=bool(told["mendable"]))
            case _:
                return journal
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamageError("a line of the journal cannot be read") from None


def _first(journal: Journal, told: Mapping[str, object]) -> Journal:
    version = told["v"]
    if not isinstance(version, int) or abs(version - claim.VERSION) > SKEW:
        raise DamageError(f"the journal is of version {version}, which this program does not know")
    if told["command"] != journal.command_id:
        raise DamageError("the journal is of another command")
    epoch = told["epoch"]
    if not isinstance(epoch, int):
        raise TypeError(epoch)
    return replace(
        journal,
        attempt_id=AttemptId(str(told["attempt"])) if told.get("attempt") else None,
        registry=str(told["registry"]),
        epoch=epoch,
        kind=str(told.get("kind", "")) or None,
        task_id=TaskId(str(told["task"])) if told.get("task") else None,
        target=CommandId(str(told["target"])) if told.get("target") else None,
        host=_identity(told.get("host")),
        conversation=str(told["conversation"]) if told.get("conversation") else None,
    )


def _proof(told: Mapping[str, object]) -> Mapping[str, str]:
    """What the executor saw, where it named it."""
    held = told.get("proof") or {}
    if not isinstance(held, dict):
        raise TypeError(held)
    return {str(name): str(each) for name, each in held.items()}


def _identity(told: object) -> Identity | None:
    if told is None:
        return None
    if not isinstance(told, dict):
        raise TypeError(told)
    return Identity(int(told["pid"]), int(told["start"]), str(told["boot"]))


def _agent(told: Mapping[str, object], host: Identity | None) -> Identity | None:
    """The leader; it started in the same life of the machine as its host. None where that cannot be told."""
    pid, start = told["pid"], told["start"]
    if start is None or host is None:
        return None
    if not isinstance(pid, int) or not isinstance(start, int):
        raise TypeError(told)
    return Identity(pid, start, host.boot)


def _ending(told: Mapping[str, object]) -> Ending:
    code, number, cut = told["exit_code"], told["signal"], told["cut"]
    signals, reports = told["signals"], told["reports"]
    counted = [told[name] for name in ("signal_count", "output_bytes", "survivors")]
    if not isinstance(signals, list) or not isinstance(reports, list):
        raise TypeError(told)
    whole = [number for number in counted if isinstance(number, int)]
    if len(whole) != len(counted) or not isinstance(code, int | None) or not isinstance(number, int | None):
        raise TypeError(told)
    return Ending(
        exit_code=code,
        signal=number,
        cut=Cut(str(cut)) if cut is not None else None,
        signals=tuple(str(body) for body in signals),
        signal_count=whole[0],
        reports=tuple(str(body) for body in reports),
        output_bytes=whole[1],
        survivors=whole[2],
        how=How(str(told.get("how", How.EXIT))),
        stop=str(told["stop"]) if told.get("stop") else None,
        tokens_in=_count(told, "tokens_in"),
        tokens_out=_count(told, "tokens_out"),
        cost=_count(told, "cost"),
        currency=str(told["currency"]) if told.get("currency") else None,
        hindered=_hindered(told.get("hindered")),
    )


def _hindered(told: object) -> Hindered | None:
    """What hindered the turn, where something did."""
    if told is None:
        return None
    if not isinstance(told, dict):
        raise TypeError(told)
    name, model = (str(told[field]) if told.get(field) else None for field in ("name", "model"))
    return Hindered(Hindrance(str(told["by"])), str(told["text"]), name, model, _moment(told.get("resets_at")))


def _count(told: Mapping[str, object], name: str) -> int | None:
    """A number that only some executors know."""
    held = told.get(name)
    if held is not None and (not isinstance(held, int) or isinstance(held, bool)):
        raise TypeError(held)
    return held


def _moment(told: object) -> datetime | None:
    if told is None:
        return None
    moment = datetime.fromisoformat(str(told))
    return moment.astimezone(UTC) if moment.tzinfo else None


def _older(path: Path, before: float) -> bool:
    try:
        return path.lstat().st_mtime < before
    except OSError:
        return False


def _is_command(name: str) -> bool:
    return SHAPE.fullmatch(name) is not None and name.startswith("c-")


def _checked(command_id: CommandId) -> None:
    if not _is_command(command_id):
        raise DamageError(f"{command_id!r} does not name a command")
