"""Sweeping: every unit of a chain with its evidence, when the chain ends, comes to a blocker, or when it is asked for.

Primary evidence is the source; beside it stand what the registry knows to be shipped, pull requests that have landed,
and branches of the chain that are part of its base. It is written down as it was found, and nothing is put right.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

from tenuto.core import chain as rules
from tenuto.core.chain import Finding
from tenuto.engine.chaining.asked import EVERY
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.units import Units
from tenuto.model.chain import Chain, Link, Outcome
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import Mistake, Refused
from tenuto.model.ids import TextId
from tenuto.model.lifecycle import PhaseState
from tenuto.model.work import Text, TextKind
from tenuto.ports import History

#: Units that are told one by one in what is written down; the rest is counted.
TOLD = 500


class Sweeping:
    """Looks at every unit."""

    def __init__(self, books: Books, units: Units, history: History | None) -> None:
        self._books = books
        self._units = units
        self._history = history

    async def sweep(self, chain: Chain, settled: Link | None = None) -> tuple[Finding, ...]:
        """Every unit as it stands; of a link that is about to be settled, as its source says."""
        board = await self._units.board(chain.source)
        claimed = {unit: str(task) for unit, task in self._books.ledger.claimed(self._units.name(chain.source)).items()}
        if settled is not None:
            claimed.pop(settled.unit, None)
        return rules.sweep(board, claimed, await self._shipped(chain), chain.attempt_cap)

    async def _shipped(self, chain: Chain) -> dict[str, str]:
        """What speaks for a unit's being done beside its source, the strongest last."""
        shipped: dict[str, str] = {}
        links = self._books.ledger.links(chain.id, EVERY)
        if chain.base is not None and self._history is not None:
            rows = self._books.ledger.worktrees(EVERY, chain_id=chain.id)
            unit_of = {link.task_id: link.unit for link in links}
            begun = {row.branch: row.begun_at_commit for row in rows if row.begun_at_commit is not None}
            units = {row.branch: unit_of[row.task_id] for row in rows if row.task_id in unit_of}
            for branch in await self._history.merged(chain.cwd, chain.base, begun):
                if branch in units:
                    shipped[units[branch]] = f"branch {branch}, which is part of {chain.base}"
        for link in links:
            if link.outcome is Outcome.DONE and link.recorded_at is not None:
                shipped[link.unit] = f"task {link.task_id}"
        for phase in self._books.ledger.phases(chain.id):
            if phase.state is PhaseState.MERGED and phase.landing is not None:
                shipped[phase.unit] = f"pull request {phase.number}, landed as {phase.landing.commit[:12]}"
            else:
                shipped.pop(phase.unit, None)
        return shipped

    async def noted(self, chain: Chain, settled: Link | None = None) -> tuple[Chain, Commit]:
        """A chain with its sweep written down; where the source cannot be read, without one."""
        try:
            found = await self.sweep(chain, settled)
        except (Refused, Mistake):
            return chain, Commit()
        counts = Counter(one.what.value for one in found)
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        lines = [f"{one.unit}: {one.what.value.replace('_', ' ')} ({one.evidence})" for one in found[:TOLD]]
        more = [f"+{len(found) - TOLD} more"] if len(found) > TOLD else []
        body = "\n".join([told, *lines, *more])[:200_000]
        now = self._books.clock.now()
        digest = hashlib.sha256(body.encode()).hexdigest()
        text = Text(TextId(self._books.mint.new("text")), TextKind.SWEEP, None, body, digest, now)
        fact = Fact(FactKind.CHAIN_SWEPT, chain.run_id, None, {"chain": chain.id, "counts": told, "text": text.id})
        return replace(chain, swept=text.id), Commit(puts=(text,), facts=(fact,))
