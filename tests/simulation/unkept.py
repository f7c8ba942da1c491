"""Ways to break what is promised of pages, words and limits, each put in by a test and missed by a law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tenuto.core import closing, hindered, limits, pages, reconcile
from tenuto.core.draft import Draft
from tenuto.engine import wheel
from tenuto.model.command import Command, CommandKind
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence
from tenuto.model.lifecycle import DeliveryEvent
from tenuto.model.limit import UsageLimit
from tenuto.model.reconciliation import Finding, Undone
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import WakeKind
from tenuto.transports import remote, wire

Put = Callable[[object, str, object], None]
"""As `monkeypatch.setattr`."""


def limits_are_over_early(put: Put) -> None:
    """A limit is waited for a minute after it was met, and no longer."""

    def own_moment(limit: UsageLimit, *_: object) -> datetime:
        return limit.met_at + timedelta(minutes=1)

    put(limits, "own_moment", own_moment)


def limits_are_not_kept(put: Put) -> None:
    """Whoever meets a limit asks again."""

    def asked_again(draft: Draft, *_: object) -> None:
        draft.wake(WakeKind.EVENT, "once more", draft.now)

    put(hindered, "_limited", asked_again)


def _found(put: Put, undone: Callable[[Command, CommandFacts], bool]) -> None:
    honest = reconcile.of_command

    def of_command(
        command: Command, facts: CommandFacts, seen: Observation, *, over: bool = False
    ) -> tuple[Finding, ...]:
        if undone(command, facts):
            return (Undone(command, "it was not seen", mendable=False, revoked=True),)
        return honest(command, facts, seen, over=over)

    put(reconcile, "of_command", of_command)


def words_unheard_are_unread(put: Put) -> None:
    """Words of which nobody saw whether the turn took them are put in once more."""

    def undone(command: Command, facts: CommandFacts) -> bool:
        return command.kind is CommandKind.STEER and facts.mark is Mark.BEGUN and facts.performer is Presence.GONE

    _found(put, undone)


def pages_unseen_are_unsent(put: Put) -> None:
    """What a page did not show is taken for what it did not do."""

    def undone(command: Command, facts: CommandFacts) -> bool:
        return command.kind is CommandKind.SEND and command.executor.startswith("ext:") and facts.mark is Mark.DAMAGED

    _found(put, undone)


def words_turned_away_are_delivered(put: Put) -> None:
    """Words that rode in a turn that was never sent count as told."""
    honest = Draft.carried_on

    def carried_on(self: Draft, command: Command, event: DeliveryEvent, **more: Any) -> Any:
        away = event in (DeliveryEvent.UNSENT, DeliveryEvent.TURNED_AWAY)
        return honest(self, command, DeliveryEvent.DELIVERED) if away else honest(self, command, event, **more)

    put(Draft, "carried_on", carried_on)


def pages_are_closed_early(put: Put) -> None:
    """The page of a task that rests is closed."""

    def wanted(snapshot: Snapshot, now: datetime) -> bool:
        free = snapshot.live is None and not snapshot.commands and snapshot.released is None
        return free and snapshot.task.agent.in_page and snapshot.last is not None

    put(closing, "wanted", wanted)


def turns_go_into_one_conversation(put: Put) -> None:
    """Every turn is ordered for the conversation that was known first."""
    honest, known = remote.target_of, dict[str, str]()

    def target_of(command: Command) -> wire.Target | None:
        target = honest(command)
        if target is None or not target.identity.startswith("http"):
            return target
        return replace(target, identity=known.setdefault("first", target.identity))

    put(remote, "target_of", target_of)


def cards_are_asked_about_by_nobody(put: Put) -> None:
    """A turn that stands before a card in its page is waited for, and its person is not told."""

    def silent(draft: Draft, *_: object) -> None:
        del draft

    put(pages, "_cards", silent)


def whoever_is_cut_off_falls_over(put: Put) -> None:
    """A registry that cannot be reached is a fault like any other."""
    put(wheel, "OutOfReach", ConnectionAbortedError)


SABOTAGES: dict[Callable[[Put], None], tuple[int, str]] = {
    limits_are_over_early: (3, "holds until"),
    limits_are_not_kept: (3, "before the reset that its task was told of"),
    words_unheard_are_unread: (8, "said not to have happened"),
    pages_unseen_are_unsent: (1, "said not to have happened"),
    words_turned_away_are_delivered: (2, "nobody has read it"),
    pages_are_closed_early: (1, "is not over"),
    turns_go_into_one_conversation: (1, "stands in the conversation of"),
    cards_are_asked_about_by_nobody: (1, "never came to its end"),
    whoever_is_cut_off_falls_over: (1, "cannot be reached"),
}
"""Which promise is broken, the seed of a world in which that is soon missed, and the words in which it is."""
