"""A registry in another place: restored from a backup, brought here from elsewhere, moved to PostgreSQL, archived.

What is replaced or left behind is renamed and stays readable; nothing is deleted. A registry that a supervisor uses is
never replaced. Whoever leads next leads above every epoch that a host was ever ordered under, and has a person look at
what the hosts began and the registry does not know of.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from tenuto.config import SERVER, Settings, without_password
from tenuto.model.faults import Conflict, Corrupt, Mistake, NotFound, Refused, UnsupportedVersion
from tenuto.store.sqlite import BESIDE, Sqlite, remove_beside, synced
from tenuto.surfaces.cli.entrances import Proof
from tenuto.wiring.glance import Glimpse, presence_of
from tenuto.wiring.outside import Outside, unused

Say = Callable[[str], None]
PAGE = 1000


def restore(outside: Outside, source: Path, say: Say) -> Proof:
    """Put a backup in the registry's place; the one that was there is renamed."""
    settings = _file_only(outside.settings, "restore")
    unused(outside)
    _sound(outside, source)
    floor = max(_highest_epoch(settings, source), *(_epoch_of(path) for path in (source, settings.registry_path)))
    made = settings.registry_path.with_name(f".{settings.registry_path.name}.restoring")
    _removed(made)
    say(f"copying {source}")
    _copy(source, made)
    try:
        _present(outside, made)
        with closing(sqlite3.connect(made, isolation_level=None)) as connection:
            now = int(outside.now().timestamp() * 1_000_000)
            connection.execute("UPDATE leadership SET epoch = ?, released_at = ?, stop_asked_at = NULL", (floor, now))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
            if damage := Sqlite(made).damage(connection):
                raise Corrupt(f"the copy of {source} is not sound: {damage[0]}; nothing was changed")
        synced(made)
        unused(outside)
        aside = _set_aside(settings.registry_path, "replaced", outside)
        made.replace(settings.registry_path)
        synced(settings.registry_path.parent)
    finally:
        _removed(made)
    lines = [f"what was there is now {aside}"] if aside is not None else []
    lines.append("start with: tenuto start; tasks whose hosts did more than the backup knows will wait for you")
    result = {"registry": str(settings.registry_path), "epoch_above": floor, "aside": str(aside) if aside else None}
    return Proof(True, f"restored from {source}; the next supervisor leads above epoch {floor}", lines, result)


def bring(outside: Outside, source: Path, say: Say) -> Proof:
    """Copy an older registry from elsewhere to the place where it is looked for now; the source stays as it is."""
    from tenuto.store.opening import version_of

    settings = _file_only(outside.settings, "bring")
    if version_of(settings.registry_path) is not None:
        raise Conflict(f"there is a registry at {settings.registry_path} already; nothing is put over it", field="from")
    if version_of(source) is None:
        raise NotFound(f"there is no registry at {source}", field="from")
    lease = Glimpse(source).lease
    if lease is not None and lease.released_at is None:
        alive = presence_of(lease, settings.machine).value
        if alive != "gone" and (alive == "alive" or lease.expires_at > outside.now()):
            raise Refused(f"a supervisor holds {source}: pid {lease.pid} on {lease.host}", see="tenuto stop")
    settings.registry_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    say(f"copying {source}")
    _copy(source, settings.registry_path)
    _present(outside, settings.registry_path)
    return Proof(
        True,
        f"brought {source} to {settings.registry_path}",
        [f"{source} stays as it is; do not start a supervisor on it any more"],
        {"registry": str(settings.registry_path), "from": str(source)},
    )


def archive(outside: Outside, target: Path, say: Say) -> Proof:
    """Write the events that retention would forget by now into a new file, one JSON document a line, compressed."""
    from tenuto.store.opening import open_registry

    settings = outside.settings
    before = outside.now() - settings.keep.events
    count, after = 0, 0
    ledger = open_registry(settings.database, outside.clock, minter=outside.minter, read_only=True)
    try:
        with _new(target) as raw, gzip.open(raw, "wt", encoding="utf-8") as file:
            while page := ledger.events(after, PAGE):
                for event in page:
                    if event.at >= before:
                        page = ()
                        break
                    fact = event.fact
                    row = {"n": event.n, "epoch": event.epoch, "at": event.at.isoformat(), "kind": fact.kind.value}
                    row |= {"run": fact.run_id, "task": fact.task_id, "data": dict(fact.data)}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    count += 1
                if not page:
                    break
                after = page[-1].n
                say(f"{count} events")
        synced(target)
    finally:
        ledger.close_readers()
    told = f"{count} events from before {before.date()} are in {target}"
    return Proof(True, told, result={"path": str(target), "events": count, "before": before.isoformat()})


def move(outside: Outside, url: str, say: Say) -> Proof:
    """Move the registry from its file into an empty PostgreSQL database; the file is renamed once all has arrived."""
    from tenuto.store import copying
    from tenuto.store.dialect import Texts
    from tenuto.store.migrating import carry_server_forward
    from tenuto.store.opening import PRESENT, open_registry, server, version_of

    settings = _file_only(outside.settings, "move")
    if not url.startswith(SERVER):
        raise Mistake(f"the target is a URL that begins with {SERVER}", field="target")
    unused(outside)
    version = version_of(settings.registry_path)
    if version is None:
        raise NotFound(f"there is no registry at {settings.registry_path}", field="database")
    if version != PRESENT:
        raise UnsupportedVersion(f"{settings.registry_path} has schema {version}; first: tenuto db upgrade")
    _sound(outside, settings.registry_path)
    reader = open_registry(settings.registry_path, outside.clock, minter=outside.minter, read_only=True)
    identity = reader.registry()
    reader.close_readers()
    dialect, own = server(url), Sqlite(settings.registry_path)
    dialect.version()
    carry_server_forward(dialect, url, identity)
    with closing(own.connect()) as source, closing(dialect.connect()) as target:
        own.begin(source)  # nobody else writes while it is copied
        try:
            unused(outside)
            dialect.begin(target)
            try:
                told = copying.copy(source, Texts(own.core), target, Texts(dialect.core), say)
            except dialect.failure as error:
                translated = dialect.translated(error)
                if translated is error:
                    translated = Mistake(f"PostgreSQL does not take a row of it, so nothing was moved: {error}")
                raise translated from error
            dialect.commit(target)
        except BaseException:
            dialect.rollback(target)
            raise
        finally:
            own.rollback(source)
    aside = _set_aside(settings.registry_path, "moved", outside)
    rows = sum(measure.rows for measure in told.values())
    return Proof(
        True,
        f"{rows} rows of {len(told)} tables arrived, counted and digested; the file is now {aside}",
        [f'put this into {settings.config_file}: database = "{without_password(url)}"'],
        {
            "rows": rows,
            "aside": str(aside),
            "tables": {name: {"rows": one.rows, "digest": one.digest} for name, one in told.items()},
        },
    )


def _file_only(settings: Settings, act: str) -> Settings:
    if settings.server:
        raise Refused(f"'db {act}' is for a registry in a file; PostgreSQL has its own means (pg_restore, pg_dump)")
    return settings


def _sound(outside: Outside, path: Path) -> None:
    """Raises NotFound, Corrupt or UnsupportedVersion for what cannot be a registry in force."""
    from tenuto.store.opening import PRESENT, open_registry, version_of

    version = version_of(path)
    if version is None:
        raise NotFound(f"there is no registry at {path}", field="target")
    if version == PRESENT:
        reader = open_registry(path, outside.clock, minter=outside.minter, read_only=True)
        try:
            found = reader.check()
        finally:
            reader.close_readers()
        if found:
            raise Corrupt(f"{path} is not sound: {found[0].sentence}; nothing was changed")


def _highest_epoch(settings: Settings, source: Path) -> int:
    """The highest epoch that a host of this home was ordered under, for the registry in `source`."""
    from tenuto.transports.host import claim

    identity = Glimpse(source).registry_id
    try:
        return claim.epochs(str(settings.journal)).get(identity or "", 0)
    except (OSError, ValueError) as error:
        raise Corrupt(f"the record of epochs in {settings.journal} cannot be read: {error}") from None


def _epoch_of(path: Path) -> int:
    """The last epoch that a registry has given out; 0 where it cannot be read any more."""
    try:
        lease = Glimpse(path).lease
    except (Corrupt, UnsupportedVersion):
        return 0
    return lease.epoch if lease is not None else 0


def _copy(source: Path, target: Path) -> None:
    """A consistent copy, whole or not at all, for its owner only."""
    Sqlite(source).backup(target)


def _present(outside: Outside, copy: Path) -> None:
    """Carry a copy forward where it is older; what it was made of stays as it is."""
    from tenuto.model.snapshot import Registry
    from tenuto.store.migrating import carry_forward
    from tenuto.store.opening import open_registry

    carry_forward(copy, Registry(outside.minter.new("registry"), 1, outside.now()), keep=False)
    open_registry(copy, outside.clock, minter=outside.minter).close_readers()


def _set_aside(path: Path, why: str, outside: Outside) -> Path | None:
    """Rename a registry with its logs, so that nobody takes it for the one in force."""
    there = path.exists()
    stamp = outside.now().strftime("%Y%m%dT%H%M%S%fZ")
    aside = path.with_name(f"{path.stem}-{why}-{stamp}{path.suffix}")
    for suffix in BESIDE:
        log = path.with_name(path.name + suffix)
        if log.exists():
            log.rename(aside.with_name(aside.name + suffix))
    if there:
        path.rename(aside)
    synced(path.parent)
    return aside if there else None


def _removed(path: Path) -> None:
    """Remove a file of ours that was not finished, and the logs of one that was killed over it."""
    path.unlink(missing_ok=True)
    remove_beside(path)


def _new(path: Path) -> BinaryIO:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"{path} exists already; nothing is written over it", field="target") from None
    except OSError as error:
        raise Mistake(f"{path} cannot be written: {error.strerror}", field="target") from None
    return os.fdopen(descriptor, "wb")
