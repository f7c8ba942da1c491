"""Beginning a chain: its rule is checked, and written with its run.

What cannot be is refused by the name of its field, and has made nothing. A chain that nothing would ever stop is not
begun.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from tenuto.core import authority
from tenuto.engine.calling import Caller, Done
from tenuto.engine.chaining.asked import MergeWish, Start
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.units import Units
from tenuto.model.chain import ATTEMPT_CAPS, GOAL_BYTES, Chain, canonical_repo, permits, said
from tenuto.model.change import Commit, Committed, Replayed
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake
from tenuto.model.forge import MergeMethod
from tenuto.model.ids import ChainId, MandateId, RunId
from tenuto.model.lifecycle import ChainState, RunState
from tenuto.model.merging import Mandate
from tenuto.model.policy import Policy
from tenuto.model.work import AutoResume, Run
from tenuto.model.worktree import Base
from tenuto.ports import History, Worktrees

_NAME = re.compile(r"(?!-)(?!.*\.\.)(?!.*//)[A-Za-z0-9._/-]{1,200}(?<![/.])")


class Starting:
    """Makes chains."""

    def __init__(self, books: Books, units: Units, defaults: Policy, trees: Worktrees, history: History | None) -> None:
        self._trees = trees
        self._history = history
        self._books = books
        self._units = units
        self._defaults = defaults

    async def start(self, caller: Caller, asked: Start, key: str | None) -> Done:
        """Make a chain; its first task is the first step. Raises Mistake with the field to mend."""
        if (replay := self._books.help.replay(caller, key, "chain start", asked)) is not None:
            return replay
        spelled, asked = asked, _checked(asked)
        await self._units.board(asked.source)
        now, new = self._books.clock.now(), self._books.mint.new
        title = (asked.title.strip() or asked.goal.strip().splitlines()[0])[:200]
        run = Run(RunId(new("run")), 1, title, RunState.OPEN, AutoResume.ON, self._defaults, None, now)
        chain = Chain(
            id=ChainId(new("chain")),
            revision=1,
            run_id=run.id,
            state=ChainState.OPEN,
            goal=asked.goal,
            repo=asked.repo,
            selector=asked.selector,
            source=asked.source,
            authorization=asked.authorization,
            caps=asked.caps,
            attempt_cap=asked.attempt_cap,
            cwd=asked.cwd,
            created_at=now,
            agent=asked.agent,
            playbook=asked.playbook,
            look_at=now,
            base=await self._base(asked),
            phases=asked.phases,
        )
        if chain.base is not None:
            own = authority.namespace(chain.id)
            chain = replace(chain, source=replace(chain.source, merges=chain.phases, own=own))
        mandate = None if asked.merging is None else self._mandate(asked, asked.merging, chain.id, now)
        if mandate is not None:
            chain = replace(chain, source=replace(chain.source, merges=True, own=mandate.branches))
        result: dict[str, Scalar] = {"chain": chain.id, "run": run.id}
        facts = (
            Fact(FactKind.RUN_CREATED, run.id, None, {"title": title}),
            Fact(FactKind.CHAIN_STARTED, run.id, None, {"chain": chain.id, "by": caller.name}),
        )
        commit = Commit(
            puts=(run, chain, *((mandate,) if mandate is not None else ())),
            facts=facts,
            key=self._books.help.key(caller, "chain start", key, spelled, result),
        )
        outcome = await self._books.ledger.commit(commit)
        if isinstance(outcome, Replayed):
            return Done(outcome.result, replayed=True)
        if not isinstance(outcome, Committed):
            raise Conflict("something changed meanwhile; try again")
        return Done(result)

    async def _base(self, asked: Start) -> Base | None:
        """What the worktrees of a chain begin at; None: it has none."""
        if not (asked.worktrees or asked.phases):
            if asked.base is not None:
                raise Mistake("a base is what worktrees begin at", field="base", see="--worktrees, or --phases")
            return None
        if (why := self._trees.objection(asked.cwd)) is not None:
            raise Mistake(why, field="cwd")
        for field, name in (("remote", asked.remote), ("base", asked.base)):
            if name is not None and not _NAME.fullmatch(name):
                raise Mistake(f"{field} is the name of a {'remote' if field == 'remote' else 'branch'}", field=field)
        branch = asked.base
        if branch is None and self._history is not None:
            branch = await self._history.default(asked.cwd, asked.remote)
        if branch is None:
            raise Mistake(f"the remote {asked.remote} does not tell its default branch; name one", field="base")
        return Base(asked.remote, branch)

    def _mandate(self, asked: Start, wish: MergeWish, chain_id: ChainId, now: datetime) -> Mandate:
        """What the chain may merge. It is written with the chain, and nothing changes it afterwards."""
        if dict(asked.authorization).get(authority.MERGE) is not True:
            raise Mistake("a chain that merges authorises it in its envelope", field="authorization")
        if not wish.gate:
            raise Mistake("name the program that has to end with 0 before anything is merged", field="gate")
        if (wish.reviewer is None) == (wish.playbook is None):
            raise Mistake("name a program or a playbook that reviews", field="reviewer")
        if wish.forge.kind == "git" and wish.method is MergeMethod.REBASE:
            raise Mistake("a remote without a host merges or squashes", field="method")
        most = self._defaults.reviews
        if wish.reviews is not None and not 1 <= wish.reviews <= most:
            raise Mistake(f"reviews is from 1 to {most}", field="reviews")
        if wish.branches is not None and (len(wish.branches) < 3 or wish.branches.strip("/") in ("refs", "heads")):
            raise Mistake("branches begins the names of the chain's own branches", field="branches")
        return Mandate(
            id=MandateId(self._books.mint.new("mandate")),
            revision=1,
            chain_id=chain_id,
            forge=replace(wish.forge, base=wish.base),
            mode=wish.mode,
            method=wish.method,
            branches=wish.branches or authority.namespace(chain_id),
            base=wish.base,
            gate=wish.gate,
            reviews=wish.reviews or most,
            made_at=now,
            reviewer=wish.reviewer,
            playbook=wish.playbook,
        )


def _checked(asked: Start) -> Start:
    said(asked.goal, "goal", GOAL_BYTES)
    said(asked.selector, "selector")
    if asked.caps.none:
        raise Mistake("a chain needs a cap that stops it: units, tasks, hours or cost", field="max_units")
    for field, cap in (("max_units", asked.caps.units), ("max_tasks", asked.caps.tasks)):
        if cap is not None and cap < 1:
            raise Mistake(f"{field} is at least 1", field=field)
    least, most = ATTEMPT_CAPS
    if not least <= asked.attempt_cap <= most:
        raise Mistake(f"attempt_cap is from {least} to {most}", field="attempt_cap")
    if (asked.agent is None) == (asked.playbook is None):
        raise Mistake("name a program or a playbook that works on the units", field="agent")
    allowed = permits(dict(asked.authorization))
    return replace(asked, repo=canonical_repo(asked.repo), authorization=allowed)
