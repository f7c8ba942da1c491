"""The workspace witness as the engine knows it: observations of rank 1, and answers to what a task waits for.

Maps what was found to the model's facts. What cannot be told stays unknown; it is never taken for "no".
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path

from tenuto.model.evidence import AcceptanceFacts, Observation, Rank, WorkspaceFacts, WorkspaceKind
from tenuto.model.work import Acceptance, AcceptanceKind, Wait, WaitKind
from tenuto.ports import Clock
from tenuto.transports.workspace import git, place, witness
from tenuto.transports.workspace.git import Repository

REVISION = re.compile(r"\b[0-9a-f]{7,64}\b")
REFERENCE = re.compile(r"[A-Za-z0-9_#][A-Za-z0-9_#./+@-]{0,254}")


class WorkspaceWitness:
    """Implements `ports.Workspace`; `timeout` bounds each look."""

    def __init__(self, clock: Clock, timeout: timedelta = timedelta(seconds=10)) -> None:
        self._clock = clock
        self._timeout = timeout

    async def look(self, cwd: str, since: str | None, *, plain: bool) -> Observation:
        """WorkspaceFacts of a directory."""
        found = await witness.look(Path(cwd), timeout=self._timeout, plain=plain)
        commits = None
        if since is not None and found.head is not None and found.head != since:
            commits = await witness.commits_since(Path(cwd), since, timeout=self._timeout)
        facts = WorkspaceFacts(
            kind=WorkspaceKind(found.kind.value),
            head=found.head,
            branch=found.branch,
            dirty=found.dirty,
            cursor=found.cursor,
            commits=commits,
            reason=found.reason or None,
            ahead=found.ahead,
            behind=found.behind,
            worktrees=found.worktrees,
            locked_since=found.lock_since,
        )
        return self._seen(cwd, facts)

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        """AcceptanceFacts: whether the file is there, or the commit the evidence names is part of HEAD."""
        match acceptance.kind:
            case AcceptanceKind.FILE:
                facts = await asyncio.to_thread(_file, Path(cwd), acceptance.path or "")
            case AcceptanceKind.COMMIT:
                facts = await self._commit(cwd, evidence)
            case _:
                facts = AcceptanceFacts(None, f"a {acceptance.kind} is not looked at here")
        return self._seen(cwd, facts)

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        """Whether the path exists, or the change is part of the branch; None when it cannot be told."""
        subject = wait.subject or ""
        match wait.kind:
            case WaitKind.PATH:
                return await asyncio.to_thread((Path(cwd) / subject).exists)
            case WaitKind.COMMIT:
                ref, _, branch = subject.partition(" into ")
                return await self._part_of(cwd, ref.strip(), branch.strip())
            case _:
                return None

    async def _commit(self, cwd: str, evidence: str) -> AcceptanceFacts:
        named = REVISION.findall(evidence)
        if not named:
            return AcceptanceFacts(False, "the evidence names no commit")
        for revision in named[:8]:
            answer = await self._part_of(cwd, revision, "HEAD")
            if answer is None:
                return AcceptanceFacts(None, "the repository cannot be asked")
            if answer:
                return AcceptanceFacts(True, f"{revision} is part of HEAD")
        return AcceptanceFacts(False, f"{named[0]} is no commit that HEAD contains")

    async def _part_of(self, cwd: str, ref: str, branch: str) -> bool | None:
        if not (REFERENCE.fullmatch(ref) and REFERENCE.fullmatch(branch)):
            return None
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                found = await asyncio.to_thread(place.find, Path(cwd))
                if not isinstance(found, Repository):
                    return None
                names = (f"{ref}^{{commit}}", f"{branch}^{{commit}}")
                answer = await git.ask(found, "merge-base", "--is-ancestor", *names)
        except (TimeoutError, git.NoGitError, OSError, ValueError):
            return None
        return answer.code == 0

    def _seen(self, cwd: str, facts: WorkspaceFacts | AcceptanceFacts) -> Observation:
        return Observation("workspace", Rank.JOURNAL, cwd, self._clock.now(), facts)


def _file(cwd: Path, name: str) -> AcceptanceFacts:
    try:
        size = (cwd / name).stat().st_size
    except FileNotFoundError:
        return AcceptanceFacts(False, f"{name} does not exist")
    except OSError as error:
        return AcceptanceFacts(None, f"{name} cannot be looked at: {error.strerror}")
    return AcceptanceFacts(size > 0, f"{name} has {size} bytes" if size else f"{name} is empty")
