"""A played executor that can put words into a turn under way, as those do that speak a protocol.

It keeps the journal of the played one. What it does with words is set by the test: it takes them and names the turn,
refuses them, falls silent at a step, or has the acknowledgement of another turn. `heard` is all that its agent has
read: prompts and steered words, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.support.world import Played

from tenuto.model.command import Accepted, Armed, Command, Outcome, Unknown, Unsent
from tenuto.model.evidence import CommandFacts, Mark, Presence
from tenuto.model.ids import CommandId
from tenuto.ports import Order, Steer, Turn


class Taking(StrEnum):
    """What becomes of words: taken and acknowledged, refused, lost on the way, or stuck at a step."""

    TAKES = "takes"
    REFUSES = "refuses"
    LOSES = "loses"
    DIES_CLAIMED = "dies_claimed"
    DIES_BEGUN = "dies_begun"
    WAITS = "waits"
    OTHER_TURN = "other_turn"


@dataclass
class Steered(Played):
    """Played, and able to steer."""

    able: bool = True
    taking: Taking = Taking.TAKES
    heard: list[str] = field(default_factory=list)

    def can_steer(self, turn: Command) -> bool:
        facts = self.journal.get(turn.id)
        return self.able and facts is not None and facts.mark is Mark.ACCEPTED

    @property
    def under_way(self) -> tuple[CommandId, ...]:
        return tuple(key for key in self.turns if self.journal[key].mark is Mark.ACCEPTED)

    @property
    def steers(self) -> tuple[CommandId, ...]:
        """Every steer that was handed over, in order."""
        return tuple(key for key, order in self.orders.items() if isinstance(order, Steer))

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        command = armed.command
        if not isinstance(order, Steer):
            outcome = await super().perform(armed, order)
            facts = self.journal[command.id]
            if isinstance(order, Turn) and facts.mark is Mark.ACCEPTED:
                self.heard.append(order.prompt)
                self.journal[command.id] = replace(facts, proof={"turn": f"turn {command.id}"})
            return outcome
        assert command.id not in self.journal, "handed over twice, or after it was revoked"
        self.orders[command.id] = order
        match self.taking:
            case Taking.TAKES:
                self.heard.append(order.text)
                self._mark(command, Mark.ACCEPTED, Presence.ALIVE, turn=order.turn)
                return Accepted()
            case Taking.REFUSES:
                self._mark(command, Mark.FAILED, Presence.ALIVE)
                return Unsent("that turn is over")
            case Taking.LOSES:
                return Unknown("it never arrived")
            case Taking.DIES_CLAIMED:
                self._mark(command, Mark.CLAIMED, Presence.GONE)
            case Taking.DIES_BEGUN:
                self.heard.append(order.text)
                self._mark(command, Mark.BEGUN, Presence.GONE)
            case Taking.WAITS:
                self.heard.append(order.text)
                self._mark(command, Mark.BEGUN, Presence.ALIVE)
            case Taking.OTHER_TURN:
                self._mark(command, Mark.ACCEPTED, Presence.ALIVE, turn="turn of somebody else")
        return Unknown("it has not said")

    def acknowledge(self, command: CommandId) -> None:
        """The turn says, late, that it has taken the words."""
        order = self.orders[command]
        assert isinstance(order, Steer)
        self.journal[command] = replace(self.journal[command], mark=Mark.ACCEPTED, proof={"turn": order.turn})

    def _mark(self, command: Command, mark: Mark, there: Presence, *, turn: str | None = None) -> None:
        proof = {} if turn is None else {"turn": turn}
        self.journal[command.id] = CommandFacts(
            command.id, command.attempt_id, mark, there, Presence.ALIVE, marked_at=self.clock.now(), proof=proof
        )
