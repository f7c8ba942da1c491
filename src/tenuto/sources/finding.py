"""Opens a source of units by its place: a queue file, a list with its log, or rows of a configured database.

A file is named by an absolute path and a database by its name in the configuration, so that no address with a password
in it is ever kept. What a source is called is the same however its place is spelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenuto.config import UnitRows
from tenuto.model.chain import SourcePlace
from tenuto.model.faults import Mistake
from tenuto.ports import UnitSource
from tenuto.sources.attempts import AttemptsLog
from tenuto.sources.queue import QueueFile


@dataclass(frozen=True)
class SourceFinder:
    """Implements `ports.UnitSources`; `rows` are the configured databases by their names."""

    rows: Mapping[str, UnitRows]

    def open(self, place: SourcePlace) -> UnitSource:
        """The source at a place; Mistake for a place that cannot be."""
        match place.kind:
            case "queue":
                return QueueFile(self._path(place))
            case "log":
                return AttemptsLog(self._path(place))
            case "sql":
                from tenuto.sources.rows import SqlRows  # brings drivers that only its users need

                if (found := self.rows.get(place.location)) is None:
                    raise Mistake(f"no units named {place.location!r:.60} are configured", field="source")
                return SqlRows(found.url, found.listing, found.recording)
            case _:
                raise Mistake("a source is a queue, a log or sql", field="source")

    def name(self, place: SourcePlace) -> str:
        """The kind, and the real path or the configured name."""
        return f"{place.kind}:{place.location if place.kind == 'sql' else self._path(place).resolve()}"

    @staticmethod
    def _path(place: SourcePlace) -> Path:
        path = Path(place.location)
        if not path.is_absolute():
            raise Mistake("a source in a file is named by its absolute path", field="source")
        return path
