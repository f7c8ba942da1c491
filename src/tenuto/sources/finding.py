"""Opens a source of units by its place: a queue file, a list with its log, rows of a database, or issues on GitHub.

A file is named by an absolute path and a database by its name in the configuration, so that no address with a password
in it is ever kept. What a source is called is the same however its place is spelled.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tenuto.config import GitHubAccount, UnitRows
from tenuto.model.chain import SourcePlace
from tenuto.model.faults import Mistake
from tenuto.model.forge import ForgePlace
from tenuto.ports import Forge, UnitSource
from tenuto.sources.attempts import AttemptsLog
from tenuto.sources.github.api import Account, Api
from tenuto.sources.github.doubts import Doubts
from tenuto.sources.github.forge import GitHubForge
from tenuto.sources.github.issues import GitHubIssues
from tenuto.sources.github.selecting import selection
from tenuto.sources.queue import QueueFile

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class SourceFinder:
    """Implements `ports.UnitSources`; `rows` are the configured databases by their names."""

    rows: Mapping[str, UnitRows]
    github: Account = field(default_factory=Account)
    doubts: Doubts = field(default_factory=lambda: Doubts(time.monotonic))

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
                return SqlRows(found.url, found.listing, found.recording, found.claiming)
            case "github":
                repo = repository(self.github, place.location)
                chosen = selection(place.query)
                return GitHubIssues(lambda: Api(self.github, repo), chosen, self.doubts, not place.merges, place.own)
            case _:
                raise Mistake("a source is a queue, a log, sql or github", field="source")

    def name(self, place: SourcePlace) -> str:
        """The kind, and the real path, the configured name or the repository; not which of its units are meant."""
        match place.kind:
            case "sql":
                return f"sql:{place.location}"
            case "github":
                return f"github:{self.github.host}/{repository(self.github, place.location).lower()}"
            case _:
                return f"{place.kind}:{self._path(place).resolve()}"

    @staticmethod
    def _path(place: SourcePlace) -> Path:
        path = Path(place.location)
        if not path.is_absolute():
            raise Mistake("a source in a file is named by its absolute path", field="source")
        return path


@dataclass(frozen=True)
class GitHubForges:
    """Implements `ports.Forges` for places on GitHub."""

    github: Account

    def open(self, place: ForgePlace) -> Forge:
        """The repository at a place; Mistake for a place that cannot be."""
        if place.kind != "github":
            raise Mistake("this host is no GitHub", field="forge")
        repo = repository(self.github, place.location)
        return GitHubForge(lambda: Api(self.github, repo))


def account(told: GitHubAccount) -> Account:
    """What the configuration says of GitHub, for those who ask it."""
    return Account(told.host, told.api, told.token, told.token_file)


def repository(told: Account, location: str) -> str:
    """`owner/name` of a repository on the configured host; Mistake for any other."""
    parts = location.strip("/").removesuffix(".git").split("/")
    if len(parts) == 3 and parts[0].lower() == told.host:
        parts = parts[1:]
    if len(parts) != 2 or not all(_NAME.fullmatch(part) and part.strip(".") for part in parts):
        raise Mistake(f"a repository on {told.host} is named owner/name", field="source")
    return "/".join(parts)
