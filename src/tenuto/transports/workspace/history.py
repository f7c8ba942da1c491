"""Whether work is part of a base: asked of the base's own history, as it was just fetched.

Work has landed when its last commit is part of the base (a merge, or a fast-forward), when every change of it stands
there again under other names (a rebase), when all of it together does (a squash), or when the commit that a host or the
number in a message points to is there. A branch on which nothing was done has not landed. What cannot be told, because
it is too much to look through or the remote does not answer, is a sentence and never a no.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tenuto.model.phase import Landed, Landing, Looked, Sought
from tenuto.model.worktree import Base
from tenuto.transports.workspace.git import Repository
from tenuto.transports.workspace.hand import GitFailed, Hand, own_ref, repository_at

MOST: Final = 2000
"""Commits that are looked through for one answer; more cannot be told."""

CONSISTS: Final = 100
PATCHES: Final = 64 << 20
COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DIFF: Final = ("-p", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "--no-renames")
_MERGED: Final = "Merge pull request #{number} from "


@dataclass(frozen=True)
class GitHistory:
    """Implements `ports.History`."""

    hand: Hand

    async def default(self, repository: str, remote: str) -> str | None:
        """The branch that HEAD of the remote names."""
        try:
            found = repository_at(repository)
            answer = await self.hand.act(
                found, "ls-remote", "--symref", "--upload-pack=git-upload-pack", remote, "HEAD"
            )
        except (GitFailed, OSError):
            return None
        told = re.match(r"ref: refs/heads/(\S+)\tHEAD\n", answer.output.decode("utf-8", "replace"))
        return told[1] if told is not None and answer.code == 0 else None

    async def look(self, repository: str, base: Base, sought: Sought, seen: str | None) -> Looked | str:
        """Fetch the base and the pull request, and lay them beside each other."""
        try:
            found = repository_at(repository)
            at = await self.hand.base(found, base)
            head, gone = await self._head(found, base, sought)
            landing = await self._landing(found, at, head, sought)
            after = () if landing is None else await self._after(found, at, landing.commit) or ()
            since = await self._after(found, at, seen) if seen is not None else ()
            return Looked(at, head, gone, landing, after, since)
        except (GitFailed, OSError, ValueError) as why:
            return str(why)

    async def after(self, repository: str, base: str, commit: str) -> tuple[Landed, ...] | str | None:
        """What came to a base after one of its commits."""
        try:
            return await self._after(repository_at(repository), base, commit)
        except (GitFailed, OSError, ValueError) as why:
            return str(why)

    async def merged(self, repository: str, base: Base, begun: Mapping[str, str]) -> tuple[str, ...]:
        """Branches with work of their own that is part of the base as it was last fetched."""
        try:
            found = repository_at(repository)
            at = (await self.hand.said(found, "rev-parse", "--verify", f"{own_ref(base)}^{{commit}}")).strip()
            branches = []
            for branch, first in list(begun.items())[:MOST]:
                ref = f"refs/heads/{branch}^{{commit}}"
                told = await self.hand.look(found, "rev-parse", "--verify", "--quiet", ref)
                head = told.output.decode("ascii", "replace").strip()
                if told.code == 0 and await self._landing(found, at, head, Sought(0, begun_at=first)) is not None:
                    branches.append(branch)
        except (GitFailed, OSError, ValueError):
            return ()
        return tuple(branches)

    # -- one pull request

    async def landed(self, repository: Repository, base: str, head: str) -> Landing | None:
        """How the work that ends in `head` stands in the base; None: it does not, or there is none."""
        return await self._landing(repository, base, head, Sought(0))

    async def _head(self, repository: Repository, base: Base, sought: Sought) -> tuple[str | None, bool]:
        """The last commit of the pull request, and whether the remote has neither its number nor its branch."""
        if not sought.number:
            return None, False
        names = [f"refs/pull/{sought.number}/head"]
        if sought.branch is not None:
            names.append(f"refs/heads/{sought.branch}")
        there = await self.hand.heads(repository, base.remote, *names)
        if there:
            name = next(name for name in names if name in there)
            kept = f"refs/tenuto/pull/{base.remote}/{sought.number}"
            async with self.hand.turn(repository):
                await self.hand.fetch(repository, base.remote, f"+{name}:{kept}")
            return there[name], False
        known = sought.head
        if known is not None and not await self._has(repository, known):
            known = None
        return known, True

    async def _landing(self, repository: Repository, base: str, head: str | None, sought: Sought) -> Landing | None:
        if head is not None and not (sought.begun_at and await self._part(repository, head, sought.begun_at)):
            if await self._part(repository, head, base):
                return await self._merge(repository, base, head, sought)
            if (landing := await self._by_content(repository, base, head)) is not None:
                return landing
        said = sought.merged_as
        if said is not None and await self._has(repository, said) and await self._part(repository, said, base):
            return await self._one(repository, said, "host")
        if sought.number and sought.begun_at is not None:
            return await self._by_number(repository, base, sought.begun_at, sought.number)
        return None

    async def _merge(self, repository: Repository, base: str, head: str, sought: Sought) -> Landing | None:
        """The commit of the base by which a head that is part of it came there."""
        spine = (await self._list(repository, "--first-parent", f"{head}..{base}")) if head != base else []
        below = set(await self._list(repository, "--ancestry-path", f"{head}..{base}")) if spine else set()
        by = next((commit for commit in reversed(spine) if commit in below), None)
        first = f"{by}^1" if by is not None else None
        if first is not None and not await self._part(repository, head, first):
            ours = await self._list(repository, f"{first}..{head}")
            return await self._one(repository, str(by), "merge", tuple(ours[: CONSISTS - 1]))
        # It stands on the spine itself: the base was moved forward to it.
        begun = sought.begun_at
        if begun is None:
            return await self._one(repository, head, "forward")
        ours = await self._list(repository, "--first-parent", f"{begun}..{head}")
        patch, undo = await self._ids(repository, begun, head)
        return Landing(head, "forward", tuple(ours[:CONSISTS]), patch, undo)

    async def _by_content(self, repository: Repository, base: str, head: str) -> Landing | None:
        fork = await self.hand.look(repository, "merge-base", head, base)
        if fork.code != 0:
            return None
        begun = fork.output.decode("ascii", "replace").strip()
        ours = await self._patches(repository, f"{begun}..{head}")
        if not ours:
            return None
        theirs = await self._patches(repository, f"{begun}..{base}")
        named: dict[str, str] = {}
        for commit, patch in theirs:
            named.setdefault(patch, commit)  # the newest commit with this change
        whole, undo = await self._ids(repository, begun, head)
        if whole is not None and whole in named:
            # Copies that were reverted and came back count as what it consists of: a later revert may name any of them.
            copies = tuple(commit for commit, patch in theirs if patch == whole)
            return Landing(named[whole], "squash", copies[:CONSISTS], whole, undo)
        changes = {patch for _, patch in ours}
        if changes <= named.keys():
            copies = tuple(commit for commit, patch in theirs if patch in changes)
            return Landing(copies[0], "rebase", copies[:CONSISTS], None, None)
        return None

    async def _by_number(self, repository: Repository, base: str, begun: str, number: int) -> Landing | None:
        """The oldest commit since then whose own message says that it is this pull request's merge."""
        told = await self.hand.said(
            repository, "log", "--reverse", f"--max-count={MOST + 1}", "--format=%H%x00%s%x00", f"{begun}..{base}", "--"
        )
        parts = told.split("\0")
        for commit, subject in zip(parts[::2], parts[1::2], strict=False):
            squashed = subject.endswith(f" (#{number})") and not subject.startswith(('Revert "', 'Reapply "'))
            if squashed or subject.startswith(_MERGED.format(number=number)):
                return await self._one(repository, commit.strip(), "number")
        return None

    async def _one(self, repository: Repository, commit: str, how: str, more: tuple[str, ...] = ()) -> Landing:
        patch, undo = await self._ids(repository, f"{commit}^1", commit)
        return Landing(commit, how, (commit, *more), patch, undo)

    # -- what git says

    async def _has(self, repository: Repository, commit: str) -> bool:
        if not COMMIT.fullmatch(commit):
            return False
        return (await self.hand.look(repository, "cat-file", "-e", f"{commit}^{{commit}}")).code == 0

    async def _part(self, repository: Repository, commit: str, whole: str) -> bool:
        answer = await self.hand.look(repository, "merge-base", "--is-ancestor", commit, whole)
        if answer.code not in (0, 1):
            raise GitFailed(answer.complaint or "the history cannot be followed")
        return answer.code == 0

    async def _list(self, repository: Repository, *arguments: str) -> list[str]:
        """Commits, newest first; GitFailed for more than can be looked through."""
        most = f"--max-count={MOST + 1}"
        told = (await self.hand.said(repository, "rev-list", "--topo-order", most, *arguments, "--")).split()
        if len(told) > MOST:
            raise GitFailed(f"more than {MOST} commits would have to be looked through")
        return told

    async def _after(self, repository: Repository, base: str, commit: str) -> tuple[Landed, ...] | None:
        if not await self._has(repository, commit) or not await self._part(repository, commit, base):
            return None
        if commit == base:
            return ()
        span = f"{commit}..{base}"
        order = list(reversed(await self._list(repository, span)))
        told = await self.hand.said(repository, "log", "--format=%H%x00%B%x00", f"--max-count={MOST + 1}", span, "--")
        parts = told.split("\0")
        messages = {name.strip(): body.strip()[:4000] for name, body in zip(parts[::2], parts[1::2], strict=False)}
        patches = dict(await self._patches(repository, span))
        return tuple(Landed(one, messages.get(one, ""), patches.get(one)) for one in order)

    async def _patches(self, repository: Repository, span: str) -> list[tuple[str, str]]:
        """Commit and patch id of everything in a span that is no merge, newest first."""
        await self._list(repository, span)  # refuses what is too much
        how = ("log", "--topo-order", "--no-merges", "--format=commit %H", *_DIFF)
        text = await self._text(repository, *how, span, "--")
        told = await self.hand.piped(repository, text, "patch-id", "--stable")
        pairs = [line.split(" ", 1) for line in told.splitlines() if " " in line]
        return [(commit.strip(), patch) for patch, commit in pairs]

    async def _ids(self, repository: Repository, old: str, new: str) -> tuple[str | None, str | None]:
        """Patch ids of a change and of its reverse; None where there is none."""
        found: list[str | None] = []
        for way in ((), ("-R",)):
            text = await self._text(repository, "diff", *_DIFF, *way, old, new, "--")
            told = await self.hand.piped(repository, text, "patch-id", "--stable") if text else ""
            found.append(told.split(" ", 1)[0].strip() or None)
        return found[0], found[1]

    async def _text(self, repository: Repository, *arguments: str) -> bytes:
        answer = await self.hand.look(repository, *arguments, limit=PATCHES)
        if answer.code != 0 or answer.cut:
            raise GitFailed("its changes are too large to compare" if answer.cut else answer.complaint or "no diff")
        return answer.output
