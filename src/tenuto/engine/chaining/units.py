"""The units of a chain: what its source says, which comes next, and what its task is handed.

Everything is read anew each time, from the source and the rows; nothing is remembered here and nothing is written.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tenuto.core import chain as rules
from tenuto.core.chain import NotAdvanced, Resolution
from tenuto.engine.chaining.asked import Foreseen
from tenuto.engine.chaining.books import Books
from tenuto.model.chain import Board, Chain, Envelope, Link, Outcome, Parent, SourcePlace
from tenuto.model.faults import Mistake, Refused
from tenuto.model.ids import ChainId
from tenuto.model.lifecycle import ChainState
from tenuto.ports import UnitSource, UnitSources


class Units:
    """Reads sources, and says what comes next."""

    def __init__(self, books: Books, sources: UnitSources | None) -> None:
        self._books = books
        self._sources = sources

    def source(self, place: SourcePlace) -> UnitSource:
        if self._sources is None:
            raise Mistake("no sources of units are read here", field="source")
        return self._sources.open(place)

    def name(self, place: SourcePlace) -> str:
        if self._sources is None:
            raise Mistake("no sources of units are read here", field="source")
        return self._sources.name(place)

    async def board(self, place: SourcePlace) -> Board:
        """All units of a source; Refused where it cannot be read now, Mistake where it is none."""
        source = self.source(place)
        try:
            return await asyncio.to_thread(source.read)
        except OSError as why:
            raise Refused(f"the source cannot be read: {why}", field="source") from None

    def resolve(self, chain: Chain, board: Board, settled: Link | None) -> Resolution:
        claimed = set(self._books.ledger.claimed(self.name(chain.source)))
        if settled is not None:
            claimed.discard(settled.unit)
        return rules.resolve(board, None, frozenset(claimed), self._books.ledger.tried(chain.id), chain.attempt_cap)

    def envelope(self, chain: Chain, board: Board, found: Resolution, link: Link | None) -> Envelope:
        """What the next task is handed. `chain` has counted the link's unit already."""
        if link is None or link.outcome is None:
            return rules.first(chain, board, found)
        before = replace(chain, processed=chain.processed - (link.outcome is Outcome.DONE))
        url = link.evidence if link.evidence is not None and link.evidence.startswith("https://") else None
        parent = Parent(task=link.task_id, pr_url=url)
        made = rules.advance(rules.first(before, board, found), found, board.revision, link.outcome, parent)
        if isinstance(made, NotAdvanced):
            raise Refused(made.why, see=made.change)
        return made

    def cost(self, chain: Chain) -> int:
        return self._books.ledger.chain_cost(chain.id) if chain.caps.cost is not None else 0

    async def foresee(self, given: ChainId) -> Foreseen:
        """What the next step would be, from what is durable now."""
        chain, link = self._books.chain(given), self._books.last(self._books.chain(given))
        board = await self.board(chain.source)
        found = self.resolve(chain, board, None)
        if link is not None and link.recorded_at is None:
            because = f"unit {link.unit} is with task {link.task_id}, and what became of it is not recorded"
            return Foreseen(chain, link, replace(found, because=because), None, None)
        if found.unit is None or chain.state is not ChainState.OPEN:
            return Foreseen(chain, link, found, None, None)
        envelope = self.envelope(chain, board, found, link)
        unit = board.unit(found.unit)
        attempt = self._books.ledger.tried(chain.id).get(found.unit, 0) + 1
        return Foreseen(chain, link, found, envelope, rules.render(envelope, attempt, unit.title if unit else ""))
