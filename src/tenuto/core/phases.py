"""Phases: whether a merge that stood in a base still counts, and which phase a chain has to wait for.

A merge counts until something of it is reverted, and again when that revert is itself reverted or the same change comes
back. A revert is known by the commit or the pull request that its message names, or because it is exactly the reverse
change. Everything here is told from commits in the order in which they came; nothing reads a repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from tenuto.model.forge import NoPull, PullFacts, PullState, Unreachable
from tenuto.model.lifecycle import PHASE, PhaseEvent, PhaseState
from tenuto.model.phase import Landed, Landing, Looked, Phase

_COMMITS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")
_PULLS = re.compile(r"^Reverts (?:[\w.-]+/[\w.-]+)?#(\d{1,9})\s*$", re.MULTILINE)
_REVERT = re.compile(r'^(?:Revert|Reapply) "(?P<what>.*)"(?: \(#\d{1,9}\))?$')
_NUMBER = re.compile(r"\(#(\d{1,9})\)$")


@dataclass(frozen=True)
class Names:
    """What a commit's message says that it undoes: beginnings of commits, and numbers of pull requests."""

    commits: tuple[str, ...]
    numbers: tuple[int, ...]


def undoes(message: str) -> Names:
    """What a message says is undone by its commit."""
    subject, _, body = message.partition("\n")
    numbers = [int(number) for number in _PULLS.findall(body)]
    named = _REVERT.match(subject.strip())
    if named is not None and (number := _NUMBER.search(named["what"].strip())) is not None:
        numbers.append(int(number[1]))
    return Names(tuple(_COMMITS.findall(message)), tuple(numbers))


def undone(landing: Landing, number: int, before: Iterable[str], after: Sequence[Landed]) -> tuple[str, ...]:
    """The commits by which a merge is undone, after all of `after`; () where it counts."""
    ours = {landing.commit, *landing.commits}
    standing = list(before)
    for commit in after:
        names = undoes(commit.message)
        took = [one for one in standing if _meant(names, one.partition("#")[0], _number_of(one))]
        if took:
            standing = [one for one in standing if one not in took]
        elif any(_meant(names, one, number) for one in ours) or _reverse(landing, commit):
            standing.append(_spelled(commit))
        elif standing and landing.patch is not None and commit.patch == landing.patch:
            standing = []
    return tuple(standing)


def _meant(names: Names, commit: str, number: int | None) -> bool:
    return any(commit.startswith(name) for name in names.commits) or number in names.numbers


def _reverse(landing: Landing, commit: Landed) -> bool:
    return landing.undo is not None and commit.patch == landing.undo


def _spelled(commit: Landed) -> str:
    """A commit with the number of the pull request that its subject names, if any."""
    number = _NUMBER.search(commit.message.partition("\n")[0].strip())
    return f"{commit.commit}#{number[1]}" if number is not None else commit.commit


def _number_of(spelled: str) -> int | None:
    _, mark, number = spelled.partition("#")
    return int(number) if mark else None


# -- what becomes of a phase


def seen(phase: Phase, looked: Looked, now: datetime) -> Phase:
    """The phase as a look at the base and at the remote leaves it; the same where nothing changed."""
    phase = replace(phase, head=looked.head or phase.head)
    if looked.landing is not None and phase.state is not PhaseState.MERGED:
        by = undone(looked.landing, phase.number, (), looked.after)
        return _landed(phase, looked.landing, by, now)
    if phase.state is PhaseState.OPEN and looked.gone and looked.landing is None:
        return closed(phase, "its branch is gone from the remote, and its work is not part of the base", now)
    if phase.state is PhaseState.CLOSED and not looked.gone:
        return _moved(phase, PhaseEvent.REOPENED, None, now)
    return phase


def told(phase: Phase, said: PullFacts | NoPull | Unreachable, looked: Looked, now: datetime) -> Phase:
    """The phase as its host's word leaves it, after the base was looked at: the base outranks what a host says."""
    match said:
        case Unreachable():
            return seen(phase, replace(looked, gone=False), now) if phase.state is not PhaseState.CLOSED else phase
        case NoPull(why):
            after = seen(phase, replace(looked, gone=False), now)
            return after if after.state is not PhaseState.OPEN else closed(after, why, now)
        case PullFacts():
            after = seen(phase, replace(looked, gone=said.state is PullState.CLOSED), now)
            return replace(after, url=said.url or after.url, branch=after.branch or said.branch)
        case _ as never:
            assert_never(never)


def later(phase: Phase, came: Sequence[Landed], now: datetime, *, anew: bool = False) -> Phase:
    """A phase that had landed, after more commits came to the base; `anew`: after all that came since it landed."""
    if phase.landing is None or phase.state not in (PhaseState.MERGED, PhaseState.REVERTED):
        return phase
    by = undone(phase.landing, phase.number, () if anew else phase.undone_by, came)
    return phase if by == phase.undone_by else _landed(phase, phase.landing, by, now)


def lost(phase: Phase, now: datetime) -> Phase:
    """A phase whose merge is not part of the base any more, because the base was rewritten: it is to land again."""
    if phase.state is PhaseState.MERGED:
        phase = _moved(phase, PhaseEvent.REVERTED, "the base was rewritten without it", now)
    if phase.state is PhaseState.REVERTED:
        return replace(_moved(phase, PhaseEvent.REOPENED, phase.reason, now), landing=None, undone_by=())
    return phase


def closed(phase: Phase, why: str, now: datetime) -> Phase:
    """A phase that a person has to say something about."""
    return _moved(phase, PhaseEvent.CLOSED, why, now)


def _landed(phase: Phase, landing: Landing, by: tuple[str, ...], now: datetime) -> Phase:
    phase = replace(phase, landing=landing)
    if phase.state is not PhaseState.MERGED and (not by or phase.state is not PhaseState.REVERTED):
        phase = _moved(replace(phase, undone_by=()), PhaseEvent.MERGED, None, now)
    if not by:
        return phase
    why = f"reverted by {by[0].partition('#')[0][:12]}"
    if phase.state is PhaseState.MERGED:
        phase = _moved(phase, PhaseEvent.REVERTED, why, now)
    return replace(phase, undone_by=by, reason=why)


def _moved(phase: Phase, event: PhaseEvent, why: str | None, now: datetime) -> Phase:
    state = PHASE.after(phase.state, event)
    return replace(phase, state=state, reason=why, settled_at=None if state is PhaseState.OPEN else now)


def first_blocking(phases: Iterable[Phase], but: str | None = None) -> Phase | None:
    """The first phase, in the order in which they were opened, that has not landed or does not count any more."""
    return next((one for one in phases if one.state is not PhaseState.MERGED and one.unit != but), None)


def worktree_told(branch: str, base: str, *, phases: bool) -> str:
    """What the task of a unit is told of its worktree, and of the pull request it has to open."""
    lines = [
        "",
        f"You are in a fresh git worktree of your own, on branch {branch}, begun at {base}. Stay on that branch; the",
        "worktree is taken away afterwards, so commit and push whatever is to stay.",
    ]
    if phases:
        lines += [
            f"Push the branch and open one pull request into {base}. As soon as it is open, record its number with",
            "phase_open (or: tenuto phase open --pr NUMBER), and hand off. The unit counts when that has landed; do",
            "not wait for it.",
        ]
    return "\n".join(lines) + "\n"


def sentence(phase: Phase) -> str:
    """Why a chain waits for this phase."""
    what = f"pull request {phase.number} of unit {phase.unit}"
    match phase.state:
        case PhaseState.OPEN:
            return f"{what} is not part of the base yet" + (f" ({phase.reason})" if phase.reason else "")
        case PhaseState.CLOSED:
            return f"{what} was closed and is not part of the base: {phase.reason}"
        case PhaseState.REVERTED:
            return f"{what} is not part of the base any more: {phase.reason}"
        case PhaseState.MERGED:
            return f"{what} is part of the base"
        case _ as never:
            assert_never(never)
