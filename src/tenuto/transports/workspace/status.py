"""Reading ``git status --porcelain=v2 -z --branch``, and nothing else.

Pure: bytes in, values out. A line this module does not know is a mistake of ours or a newer
git, so it is refused (``ValueError``) rather than skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ABSENT: Final = b"000000"
GITLINK: Final = b"160000"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs from HEAD. ``index`` tells what git recorded (modes and object ids), b"" if untracked."""

    path: bytes
    index: bytes = b""
    gitlink: bool = False
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """HEAD, branch and every differing path, in git's order. ``truncated`` when more paths stood there than allowed.

    ``follows`` is whether the branch follows another that is there, ``level`` whether it stands where that one does.
    """

    head: str | None
    branch: str | None
    changes: tuple[Change, ...]
    truncated: bool = False
    follows: bool = False
    level: bool = False


def parse(output: bytes, limit: int) -> Status:
    """Read at most ``limit`` changed paths; raises ``ValueError`` for a line of unknown shape."""
    head: str | None = None
    branch: str | None = None
    follows = level = False
    changes: list[Change] = []
    records = iter(output.split(b"\0"))
    for record in records:
        if not record:
            continue
        if record.startswith(b"# "):
            name, _, value = record[2:].partition(b" ")
            if name == b"branch.oid":
                head = None if value == b"(initial)" else value.decode("ascii")
            elif name == b"branch.head":
                branch = None if value == b"(detached)" else value.decode("utf-8", "backslashreplace")
            elif name == b"branch.ab":
                follows, level = True, value == b"+0 -0"
            continue
        if len(changes) == limit:
            return Status(head, branch, tuple(changes), truncated=True, follows=follows, level=level)
        changes.append(_change(record))
        if record.startswith(b"2 "):
            next(records, None)  # the path it came from; its content is the new path's matter
    return Status(head, branch, tuple(changes), follows=follows, level=level)


def _change(record: bytes) -> Change:
    match record[:2]:
        case b"? ":
            path = record[2:]
            return Change(path.rstrip(b"/"), gitlink=path.endswith(b"/"))
        case b"1 ":  # XY sub mH mI mW hH hI path
            fields = record.split(b" ", 8)
            return _tracked(fields, worktree=5, last=8)
        case b"2 ":  # XY sub mH mI mW hH hI Xscore path
            fields = record.split(b" ", 9)
            return _tracked(fields, worktree=5, last=9)
        case b"u ":  # XY sub m1 m2 m3 mW h1 h2 h3 path
            fields = record.split(b" ", 10)
            return _tracked(fields, worktree=6, last=10)
        case _:
            raise ValueError(f"a status line of unknown shape: {record[:40]!r}")


def _tracked(fields: list[bytes], *, worktree: int, last: int) -> Change:
    if len(fields) != last + 1:
        raise ValueError(f"a status line cut short: {b' '.join(fields)[:40]!r}")
    return Change(
        path=fields[last],
        index=b" ".join(fields[:1] + fields[3:worktree] + fields[worktree + 1 : last]),
        gitlink=fields[2].startswith(b"S") and fields[worktree] == GITLINK,
        deleted=fields[worktree] == ABSENT,
    )
