"""Looks at a file or a directory and says what of it could be imported: recognised by content, and nothing guessed.

A directory is searched one level deep, and in the places where known programs keep their registries; it may be a
repository with worktrees as well.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from tenuto.model.foreign import Source
from tenuto.transports.foreign import cws, database, general, kookr, worktrees
from tenuto.transports.foreign.database import NotReadable

#: Where registries lie below a directory that a person would name.
PLACES: Final = (".cws", ".kookr", ".kookr-*")
SUFFIXES: Final = frozenset({".sqlite3", ".sqlite", ".db", ".json"})
FILES: Final = 50


def at(path: Path, objective: str | None) -> tuple[Source, ...]:
    """Everything at this path. Raises NotReadable where nothing is."""
    if path.is_dir():
        found = _one_of_each([of_file(file) for file in _files(path)])
        if (path / ".git").exists():
            found.append(_repository(path, objective))
        if not found:
            raise NotReadable(f"{path} holds no SQLite or JSON file, and is no repository")
        return tuple(found)
    if not path.exists():
        raise NotReadable(f"{path} is not there")
    return (of_file(path),)


def _one_of_each(found: list[Source]) -> list[Source]:
    """The sources, without those that say the same of one registry: which of them is the true one is not guessed."""
    names = [source.name for source in found if source.kind is not None]
    why = "another file here is of the same registry, and which is the newer one is not known: name one of them"
    return [
        Source(source.path, None, unread=(why,)) if source.kind is not None and names.count(source.name) > 1 else source
        for source in found
    ]


def _files(top: Path) -> list[Path]:
    found: list[Path] = []
    for folder in (top, *(place for name in PLACES for place in sorted(top.glob(name)))):
        try:
            with os.scandir(folder) as entries:
                found += [
                    Path(entry.path)
                    for entry in entries
                    if entry.is_file(follow_symlinks=False) and Path(entry.name).suffix in SUFFIXES
                ]
        except OSError:
            continue
    return sorted(found)[:FILES]


def of_file(path: Path) -> Source:
    """One file."""
    try:
        if database.is_one(path):
            return _database(path)
        tree = general.parsed(path)
        if (rows := kookr.tasks(tree)) is not None:
            return Source(str(path), "Kookr tasks", f"kookr {kookr.of_file(rows)}", *kookr.read(rows))
        told = general.of_tree(tree)
        if told is None:
            return Source(str(path), None, unread=("no list in it says name, objective, directory and state",))
        (items, left), unread = told
        return Source(str(path), "JSON lists", _by_path("json", path), items, left, unread)
    except NotReadable as error:
        return Source(str(path), None, unread=(str(error),))


def _database(path: Path) -> Source:
    with database.opened(path) as connection:
        if cws.recognised(connection):
            version, items, left, unread = cws.read(connection)
            return Source(
                str(path), f"CWS registry, schema {version}", f"cws {cws.fingerprint(connection)}", items, left, unread
            )
        if kookr.recognised(connection):
            rows, torn, unread = kookr.stored(connection)
            items, left = kookr.read(rows)
            name = f"kookr {kookr.of_store(connection)}"
            return Source(str(path), f"Kookr store, schema {kookr.SCHEMA}", name, items, (*left, *torn), unread)
        told = general.of_tables(connection)
    if told is None:
        return Source(str(path), None, unread=("no table in it says name, objective, directory and state",))
    (items, left), unread = told
    return Source(str(path), "SQLite tables", _by_path("sqlite", path), items, left, unread)


def _repository(path: Path, objective: str | None) -> Source:
    try:
        items, left = worktrees.of(path, objective)
    except NotReadable as error:
        return Source(str(path), None, unread=(str(error),))
    return Source(str(path), "git worktrees", _by_path("worktrees", path), items, left)


def _by_path(kind: str, path: Path) -> str:
    return f"{kind} {hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]}"
