"""Keeping the registry: carry it forward, check it, back it up.

Checking and backing up are safe beside a running supervisor; carrying forward is refused while one leads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from tenuto.model.evidence import Presence
from tenuto.model.faults import Mistake, NotFound, Refused
from tenuto.model.leadership import Leadership
from tenuto.surfaces.cli.entrances import Proof
from tenuto.wiring.glance import presence_of
from tenuto.wiring.outside import Outside, unused


def database(outside: Outside, act: str, target: Path | None, say: Callable[[str], None]) -> Proof:
    """One of upgrade, check, backup, restore, bring and archive.

    `target` is where a backup or archive goes (None: beside the registry), or what is restored or brought here.
    """
    match act:
        case "upgrade":
            return _upgrade(outside)
        case "check":
            return _check(outside)
        case "backup":
            return _backup(outside, target, say)
        case "restore" | "bring" | "archive":
            from tenuto.wiring import moving

            if target is None:
                raise Mistake("name a file", field="target")
            return {"restore": moving.restore, "bring": moving.bring, "archive": moving.archive}[act](
                outside, target, say
            )
        case _:
            raise Mistake(f"there is no database verb '{act}'", field="verb")


def _upgrade(outside: Outside) -> Proof:
    from tenuto.store.migrating import kept_before
    from tenuto.store.opening import PRESENT, open_registry, server, version_of

    settings = outside.settings
    if settings.server:
        before = server(settings.database).version()
    else:
        before = version_of(settings.registry_path)
    if before is None:
        raise NotFound(f"there is no registry at {settings.shown_database}; a supervisor makes it when it first starts")
    if before != PRESENT:
        unused(outside)

    def gone(holder: Leadership) -> bool:
        return presence_of(holder, settings.machine) is Presence.GONE

    ledger = open_registry(settings.database, outside.clock, minter=outside.minter, shared=settings.server, gone=gone)
    ledger.close_readers()
    if before == PRESENT:
        return Proof(True, "it was of the present schema already", result={"before": before, "after": PRESENT})
    copy = None if settings.server else kept_before(settings.registry_path, before)
    lines = [] if copy is None else [f"what it was is kept in {copy}; remove it when you do not need to go back"]
    told = f"carried from {before} to {PRESENT}"
    return Proof(True, told, lines, {"before": before, "after": PRESENT, "kept": str(copy) if copy else None})


def _check(outside: Outside) -> Proof:
    from tenuto.store.opening import open_registry

    ledger = open_registry(outside.settings.database, outside.clock, minter=outside.minter, read_only=True)
    try:
        found = ledger.check()
    finally:
        ledger.close_readers()
    lines = [f"{each.sentence}: {', '.join(each.subjects[:5])}" if each.subjects else each.sentence for each in found]
    summary = "the registry is sound" if not found else f"{len(found)} findings"
    return Proof(not found, summary, lines, {"findings": lines})


def _backup(outside: Outside, target: Path | None, say: Callable[[str], None]) -> Proof:
    from tenuto.store.opening import open_registry

    stamp = outside.now().strftime("%Y%m%dT%H%M%SZ")
    if outside.settings.server:
        raise Refused("a PostgreSQL registry is backed up by its own means: pg_dump, or a base backup with its log")
    path = target or outside.settings.registry_path.with_name(f"registry-{stamp}.sqlite3")
    if path.exists():
        raise Mistake(f"{path} exists already; a backup never writes over anything", field="target")
    ledger = open_registry(outside.settings.database, outside.clock, minter=outside.minter, read_only=True)
    try:
        say(f"copying to {path}")
        ledger.backup(path)
    except (OSError, sqlite3.Error) as error:
        raise Mistake(f"the backup cannot be written: {error}", field="target") from None
    finally:
        ledger.close_readers()
    size = path.stat().st_size
    return Proof(True, f"{path} ({size} bytes)", result={"path": str(path), "bytes": size})
