"""Writes the registries that are kept of the present schema anew, as long as no release has gone out with it.

Nothing of a released schema is ever written over.

python -m tests.migrations.freeze
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import Dialect

import tenuto.store.migrations
from tenuto.store.opening import PRESENT

VERSIONS = Path(tenuto.store.migrations.__file__).parent / "versions"
DIALECTS: dict[str, Dialect] = {"sqlite": SQLiteDialect_pysqlite(), "postgresql": PGDialect_psycopg()}  # type: ignore[no-untyped-call]
#: The schemas that a release has gone out with, and the digest of all their files: these never change again.
RELEASED: dict[str, str] = {"0001": "3a091146448cd9e351dfc82e538ddc85d82b921e6936cd0434f33d055492ef84"}


def files(version: str) -> Iterator[Path]:
    """The statements of a schema's step, and the registries that are kept of it."""
    from tests.migrations.keeping import KEPT

    yield from sorted(VERSIONS.glob(f"{version}_*/*.sql"))
    yield from sorted((KEPT / version).glob("*.sql"))


def digest(version: str) -> str:
    """What `files` hold, and how they are called, as one sha256."""
    told = hashlib.sha256()
    for path in files(version):
        told.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return told.hexdigest()


def freeze() -> None:
    """Make the registries of the present schema, and keep them."""
    from tests.ledger.server import server
    from tests.migrations.keeping import dumped, kept, live, make, moved

    if PRESENT in RELEASED:
        raise SystemExit(f"schema {PRESENT} is released; a change needs a schema of its own (see CONTRIBUTING.md)")
    with tempfile.TemporaryDirectory() as made, server() as running:
        folder = Path(made).resolve()
        asyncio.run(make(folder / "written.sqlite3"))
        registries = {"written": folder / "written.sqlite3", "lived": asyncio.run(live(folder))}
        for way, path in registries.items():
            kept(PRESENT, way, "sqlite").parent.mkdir(parents=True, exist_ok=True)
            kept(PRESENT, way, "sqlite").write_text(dumped(path, folder), encoding="utf-8")
            kept(PRESENT, way, "postgresql").write_text(moved(path, running.database(), folder), encoding="utf-8")
    print(f"schema {PRESENT}: {digest(PRESENT)}")


if __name__ == "__main__":
    freeze()
