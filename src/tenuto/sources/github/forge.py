"""Pull requests on GitHub: facts of one, and the merge of exactly one commit.

A merge is asked for with the head that was reviewed, and GitHub refuses any other. Before it is asked for, and whenever
no answer came, it is looked whether it stands already: the marker in the merge's message tells whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from tenuto.model.faults import Mistake
from tenuto.model.forge import (
    BaseFacts,
    Doubtful,
    Look,
    Merge,
    MergeAnswer,
    Merged,
    MergeMethod,
    NoPull,
    NotMerged,
    PullFacts,
    PullState,
    Runs,
    Unreachable,
)
from tenuto.sources.github import reading
from tenuto.sources.github.api import Api, Doubt, Later, Said

T = TypeVar("T")
#: Pages of checks of one commit, and of pull requests of one branch.
MOST = 10
#: Seconds after which a request that was not answered is over at GitHub's end as well.
SETTLED = 15.0
#: Statuses that mean: the head or the base is not what was expected, or it cannot be merged as it is.
MOVED, UNFIT = 409, 405


@dataclass(frozen=True)
class GitHubForge:
    """Implements `ports.Forge` for one repository; `connect` gives a fresh connection to it."""

    connect: Callable[[], Api]
    over: float = 60.0

    def base(self, branch: str | None) -> BaseFacts | Unreachable:
        """The branch and its commit; GitHub answers for a renamed branch under its new name."""

        def ask(api: Api) -> BaseFacts:
            name = branch if branch is not None else reading.field(api.about(), "default_branch", str)
            told = api.get(f"{api.place}/branches/{quote(name, safe='')}")
            return BaseFacts(
                reading.field(told, "name", str), reading.field(reading.field(told, "commit", dict), "sha", str)
            )

        return self._asked(ask)

    def pull(self, number: int) -> Look:
        """One pull request; the checks of its head where it is open, the marker of its merge where it is merged."""
        return self._asked(lambda api: _look(api, number))

    def pulls(self, branch: str) -> tuple[PullFacts, ...] | Unreachable:
        """Pull requests from a branch of this repository, newest first."""

        def ask(api: Api) -> tuple[PullFacts, ...]:
            owner = reading.field(reading.field(api.about(), "owner", dict), "login", str)
            wanted: dict[str, str | int] = {
                "head": f"{owner}:{branch}", "state": "all", "sort": "created", "direction": "desc",
            }  # fmt: skip
            return tuple(
                told
                for told in map(reading.pull, api.pages(f"{api.place}/pulls", wanted, MOST))
                if told.branch == branch and not told.fork
            )

        return self._asked(ask)

    def merge(self, order: Merge) -> MergeAnswer:
        """Merge the expected head, at most once; after silence it is looked up, and never asked for again here."""
        api = self.connect()
        try:
            return _merge(api, order)
        except Later as why:
            return NotMerged(str(why), after=why.after or SETTLED)
        except (Said, Mistake) as why:
            return NotMerged(str(why))
        finally:
            api.close()

    def _asked(self, ask: Callable[[Api], T]) -> T | Unreachable:
        api = self.connect()
        try:
            return ask(api)
        except Later as why:
            return Unreachable(str(why), why.after)
        except (Said, Mistake) as why:
            return Unreachable(str(why))
        finally:
            api.close()


def _look(api: Api, number: int) -> PullFacts | NoPull:
    api.about()
    try:
        row = api.get(f"{api.place}/pulls/{number}")
    except Said as why:
        if why.status in (404, 410):
            return NoPull(f"there is no pull request {number}")
        raise
    seen = reading.pull(row)
    if seen.state is PullState.OPEN:
        return reading.pull(row, _runs(api, seen.head))
    if seen.merged_as is None:
        return seen
    message = reading.field(
        reading.field(api.get(f"{api.place}/commits/{seen.merged_as}"), "commit", dict), "message", str
    )
    return reading.pull(row, marker=reading.marker_in(message))


def _runs(api: Api, head: str) -> Runs:
    checks = list(api.pages(f"{api.place}/commits/{head}/check-runs", {"filter": "latest"}, MOST, "check_runs"))
    statuses = list(api.pages(f"{api.place}/commits/{head}/status", {}, MOST, "statuses"))
    return reading.runs(checks, statuses)


def _merge(api: Api, order: Merge) -> MergeAnswer:
    before = _look(api, order.number)
    if (answer := _stands(before, order)) is not None:
        return answer
    body = {"sha": order.head, "merge_method": order.method.value}
    if order.method is not MergeMethod.REBASE:
        body |= {"commit_title": order.title, "commit_message": order.marker}
    try:
        told = api.write("PUT", f"{api.place}/pulls/{order.number}/merge", body)
    except Said as why:
        return NotMerged(str(why), moved=why.status == MOVED or (why.status == UNFIT and "modified" in why.message))
    except Doubt as why:
        return _after_silence(api, order, str(why))
    if isinstance(told, dict) and told.get("merged") is True:
        return Merged(reading.field(told, "sha", str))
    return _after_silence(api, order, "GitHub's answer to the merge cannot be read")


def _after_silence(api: Api, order: Merge, why: str) -> MergeAnswer:
    """What a look says after a merge was asked for and nothing was heard: done, or still in doubt."""
    try:
        found = _look(api, order.number)
    except (Later, Said):
        return Doubtful(why, SETTLED)
    if isinstance(found, PullFacts) and found.state is PullState.MERGED:
        answer = _stands(found, order)
        return answer if answer is not None else Doubtful(why, SETTLED)
    return Doubtful(why, SETTLED)


def _stands(found: PullFacts | NoPull, order: Merge) -> MergeAnswer | None:
    """Merged where this very merge stands, NotMerged where it cannot be any more; None: it may be asked for."""
    if isinstance(found, NoPull):
        return NotMerged(found.why)
    if found.state is PullState.MERGED:
        ours = found.marker == order.marker or (order.method is MergeMethod.REBASE and found.head == order.head)
        if ours and found.merged_as is not None:
            return Merged(found.merged_as)
        return NotMerged("it was merged by somebody else", moved=True)
    if found.state is PullState.CLOSED:
        return NotMerged("it was closed without being merged", moved=True)
    if found.head != order.head:
        return NotMerged(f"its head is {found.head[:12]} now, and {order.head[:12]} was expected", moved=True)
    if found.base != order.base:
        return NotMerged(f"it goes to {found.base} now, and {order.base} was expected", moved=True)
    return None
