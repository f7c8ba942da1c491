"""Looking at a task's working directory once.

It only reads: see ``git`` for why looking runs nothing of the repository's and takes no lock.
It refuses to fail: whatever is broken about a directory becomes a fact with a reason. Two git
processes answer for an ordinary repository.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenuto.transports.workspace import content, git, place, plain, status
from tenuto.transports.workspace.facts import PATH_LIMIT, Kind, Workspace, git_cursor
from tenuto.transports.workspace.git import Repository

COMMIT_LIMIT: Final = 1_000
NESTED_LIMIT: Final = 100
#: What git calls a branch whose file it cannot make a commit of; one without any commit it calls by its name.
UNREADABLE: Final = "(unknown)"
STATUS: Final = (
    "status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--no-renames",
    "--untracked-files=all", "--ignore-submodules=dirty",
)  # fmt: skip
COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

Stopped = Callable[[], bool]


async def look(cwd: Path, *, timeout: timedelta, plain: bool = True) -> Workspace:
    """Facts about ``cwd``, gathered within ``timeout``; raises for no state of the directory.

    A repository that covers ``cwd`` from further up counts as a whole, unless it ignores ``cwd``. A directory outside
    git is read through only when ``plain`` says so.
    """
    nobody_waits = threading.Event()
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            return await _look(cwd, nobody_waits.is_set, read_plain=plain)
    except TimeoutError:
        return Workspace(Kind.UNKNOWN, reason=f"looking took longer than {timeout.total_seconds():g} s")
    except (git.NoGitError, OSError, ValueError) as error:
        return Workspace(Kind.UNKNOWN, reason=str(error)[:200])
    finally:
        nobody_waits.set()


async def commits_since(cwd: Path, base: str, *, timeout: timedelta) -> int | None:
    """How many commits HEAD has beyond ``base`` (a full commit id), at most 1,000; None when that cannot be told."""
    if not COMMIT.fullmatch(base):
        return None
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            found = await asyncio.to_thread(place.find, cwd)
            if not isinstance(found, Repository):
                return None
            answer = await git.ask(found, "rev-list", "--count", f"--max-count={COMMIT_LIMIT}", f"{base}..HEAD", "--")
            return int(answer.output) if answer.code == 0 else None
    except (TimeoutError, git.NoGitError, OSError, ValueError):
        return None


async def _look(cwd: Path, stopped: Stopped, *, read_plain: bool) -> Workspace:
    found = await asyncio.to_thread(place.find, cwd)
    match found:
        case Workspace():
            return found
        case Repository():
            return await _repository(found, cwd, stopped)
        case Path() if not read_plain:
            return Workspace(Kind.PLAIN, reason="it was not measured this time")
        case Path():
            return await _plain(found, stopped)


async def _plain(directory: Path, stopped: Stopped) -> Workspace:
    cursor = await asyncio.to_thread(plain.plain_cursor, os.fsencode(directory), stopped)
    reason = "" if cursor else f"the directory holds more than {PATH_LIMIT:,} files"
    return Workspace(Kind.PLAIN, cursor=cursor, reason=reason)


async def _repository(repository: Repository, cwd: Path, stopped: Stopped) -> Workspace:
    listing = await git.ask(repository, "config", "--list", "--name-only", "-z")
    if listing.code != 0 or listing.cut:
        return _broken(listing)
    if await _ignores(repository, cwd):
        return await _plain(await asyncio.to_thread(cwd.resolve), stopped)
    answer = await git.ask(repository, *STATUS, overrides=git.filter_overrides(listing.output))
    if answer.code != 0 and not answer.cut:
        return _broken(answer)
    whole = answer.output if not answer.cut else answer.output[: answer.output.rfind(b"\0") + 1]
    seen = status.parse(whole, PATH_LIMIT)
    if seen.head is None and seen.branch == UNREADABLE:
        return Workspace(Kind.UNKNOWN, reason="its branch is there and cannot be read")
    lock_since = place.locked_since(repository)
    nested = [change.path for change in seen.changes if change.gitlink]
    reason, dirty = "", None
    if answer.cut or seen.truncated:
        reason = f"more than {PATH_LIMIT:,} paths differ from HEAD, or their names are too long to list"
    elif len(nested) > NESTED_LIMIT:
        reason = f"more than {NESTED_LIMIT} nested repositories differ from HEAD"
    else:
        heads = dict(zip(nested, await _heads(repository, nested), strict=True))
        top = os.fsencode(repository.top)
        dirty = await asyncio.to_thread(content.dirty_digest, top, seen.changes, heads, stopped)
    ahead, behind = await _apart(repository, seen)
    worktrees = await asyncio.to_thread(place.worktrees, repository)
    cursor = git_cursor(seen.head, dirty)
    return Workspace(
        Kind.GIT, seen.head, seen.branch, dirty, cursor, lock_since, reason, ahead=ahead, behind=behind,
        worktrees=worktrees,
    )  # fmt: skip


async def _apart(repository: Repository, seen: status.Status) -> tuple[int | None, int | None]:
    """How many commits the branch has beyond what it follows, and lacks of it; asked only where they differ."""
    if not seen.follows or seen.head is None:
        return None, None
    if seen.level:
        return 0, 0
    wanted = ("--left-right", "--count", f"--max-count={COMMIT_LIMIT}", "HEAD...@{upstream}", "--")
    answer = await git.ask(repository, "rev-list", *wanted)
    if answer.code != 0 or answer.cut:
        return None, None
    ahead, behind = answer.output.split()
    return int(ahead), int(behind)


def _broken(answer: git.Answer) -> Workspace:
    if answer.cut:
        return Workspace(Kind.UNKNOWN, reason="the repository's configuration is too long to read")
    return Workspace(Kind.UNKNOWN, reason=answer.complaint or f"git ended with {answer.code}")


async def _ignores(repository: Repository, cwd: Path) -> bool:
    """Whether ``cwd`` is a directory below ``repository`` that it is told to ignore."""
    below = await asyncio.to_thread(cwd.resolve)
    if below == repository.top:
        return False
    relative = below.relative_to(repository.top)
    answer = await git.ask(repository, "check-ignore", "--quiet", "--", f"./{relative}/")
    return answer.code == 0


async def _heads(repository: Repository, nested: Sequence[bytes]) -> list[str]:
    return [await _head(repository.top / os.fsdecode(path)) for path in nested]


async def _head(nested: Path) -> str:
    """The commit a nested repository stands at, "" when it has none or is no repository."""
    try:
        answer = await git.ask(Repository(nested, nested / ".git"), "rev-parse", "--verify", "--quiet", "HEAD")
    except OSError:
        return ""
    return answer.output.decode("ascii", "replace").strip() if answer.code == 0 else ""
