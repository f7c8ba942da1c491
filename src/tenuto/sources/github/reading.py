"""GitHub's JSON, read field by field: what is missing or of another type is an answer that cannot be read.

Nothing is guessed. Texts of others are only searched for what they may say: which issues a pull request closes, and
the markers of our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tenuto.model.forge import PullFacts, PullState, Runs
from tenuto.sources.github.api import Later

MARKER = re.compile(r"\[tenuto:c-[0-9a-hjkmnp-tv-z]{26}\]")
_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+"
    r"(?:(?:https?://[\w.-]+/(?P<url>[\w.-]+/[\w.-]+)/issues/(?P<there>\d{1,10}))"
    r"|(?:(?P<repo>[\w.-]+/[\w.-]+)?\#(?P<number>\d{1,10})))\b",
    re.IGNORECASE,
)
#: How much of a text is searched.
SEARCHED = 65536


def field(row: Any, name: str, kind: type) -> Any:
    """A field of one type; Later where it is not there."""
    value = row.get(name) if isinstance(row, Mapping) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Later(f"GitHub's answer has no {name} that can be read")
    return value


def rows(told: Any) -> list[Any]:
    """An answer that is a list as a whole; Later where it is none."""
    if not isinstance(told, list):
        raise Later("GitHub's answer is no list")
    return told


def text(row: Mapping[str, Any], name: str) -> str:
    """A text that may be missing."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def closes(body: str, repo: str) -> frozenset[int]:
    """The issues of `repo` that a pull request with this text closes when it is merged to the default branch."""
    found = set()
    for match in _CLOSES.finditer(body[:SEARCHED]):
        named = match["url"] or match["repo"]
        if named is None or named.lower() == repo.lower():
            found.add(int(match["there"] or match["number"]))
    return frozenset(found)


def pull(row: Any, runs: Runs = Runs.NONE, marker: str | None = None) -> PullFacts:
    """A pull request as one of GitHub's answers has it; Later for one that cannot be read."""
    head, base = field(row, "head", dict), field(row, "base", dict)
    merged = row.get("merged") is True or isinstance(row.get("merged_at"), str)
    state = PullState.MERGED if merged else PullState(_open_or_closed(row))
    mergeable = row.get("mergeable")
    there = head.get("repo")
    here = field(base, "repo", dict)
    return PullFacts(
        number=field(row, "number", int),
        state=state,
        branch=field(head, "ref", str),
        head=field(head, "sha", str),
        base=field(base, "ref", str),
        url=field(row, "html_url", str),
        title=text(row, "title")[:500],
        body=text(row, "body")[:SEARCHED],
        fork=not isinstance(there, Mapping) or there.get("id") != here.get("id"),
        draft=row.get("draft") is True,
        mergeable=mergeable if isinstance(mergeable, bool) else None,
        runs=runs,
        merged_as=(text(row, "merge_commit_sha") or None) if merged else None,
        marker=marker,
    )


def _open_or_closed(row: Mapping[str, Any]) -> str:
    state = field(row, "state", str)
    if state not in ("open", "closed"):
        raise Later("GitHub's answer has a state that is not known")
    return str(state)


def marker_in(message: str) -> str | None:
    """The last marker of ours in a text."""
    found = MARKER.findall(message[:SEARCHED])
    return found[-1] if found else None


#: Whose words count as the repository's own.
TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def trusted(row: Mapping[str, Any], me: str | None) -> bool:
    """Whether a comment or a pull request is by ourselves or by somebody who may write to the repository."""
    user = row.get("user")
    own = isinstance(user, Mapping) and me is not None and user.get("login") == me
    return own or text(row, "author_association") in TRUSTED


PASSED = frozenset({"success", "neutral", "skipped"})


def runs(checks: list[Any], statuses: list[Any]) -> Runs:
    """What check runs and statuses of one commit say together: one red is red, one under way is pending."""
    told: set[Runs] = set()
    for check in checks:
        if text(check, "status") != "completed":
            told.add(Runs.PENDING)
        else:
            told.add(Runs.GREEN if text(check, "conclusion") in PASSED else Runs.RED)
    for status in statuses:
        word = text(status, "state")
        told.add({"success": Runs.GREEN, "pending": Runs.PENDING}.get(word, Runs.RED))
    return next((one for one in (Runs.RED, Runs.PENDING, Runs.GREEN) if one in told), Runs.NONE)
