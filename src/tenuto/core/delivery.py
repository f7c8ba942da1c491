"""How words reach a task: into the turn under way, by a turn made for them, with the next turn, or not at all.

A message is stored before anything is tried, and at any time at most one command carries it: the same commit that arms
the command takes the message, so it can never be put into a turn and ride in a prompt as well. The ladder of *deliver*
is that of *continue* (the rungs know what an operator's words pass); the ladder of *steer* is made of the same rungs.
Nothing here promises more than the executor has said it can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tenuto.core import rungs
from tenuto.core.draft import Draft, New
from tenuto.model.change import Commit
from tenuto.model.command import CommandKind
from tenuto.model.decision import Because, Rung, SteerTurn
from tenuto.model.lifecycle import CommandState, DeliveryState
from tenuto.model.message import Message, MessageKind, MessagePolicy, Party
from tenuto.model.reconciliation import Living, Seen
from tenuto.model.work import WakeKind

Check = Callable[[Seen, datetime], Because | None]


class Way(StrEnum):
    """What becomes of words: steered, sent by a turn made for them, with the next turn, or only recorded."""

    STEER = "steer"
    SEND = "send"
    NEXT_TURN = "next_turn"
    RECORDED = "recorded"


@dataclass(frozen=True)
class Prospect:
    """How words will be delivered as things stand, since nothing more can be promised.

    `by` is when at the earliest, None where it hangs on something that has no moment; `because` is what they wait for.
    """

    way: Way
    by: datetime | None
    because: str | None


@dataclass(frozen=True)
class Stored:
    """A commit that stores words, the message it stores, and how that will be delivered."""

    commit: Commit
    message: Message
    prospect: Prospect


# -- the ladder of steer


def under_way(seen: Seen, now: datetime) -> Because | None:
    """No turn is there that words could be put into, or it cannot be told that it is there."""
    change = "the end of the turn; then they are sent"
    live, sent, talk = seen.snapshot.live, seen.snapshot.live_command, seen.snapshot.conversation
    if live is None or sent is None:
        return Because(Rung.STEER, "no turn is under way", "the next turn")
    if talk is None or talk.id != live.conversation_id:
        return Because(Rung.STEER, "its turn belongs to a conversation that has lost the task", change)
    if sent.state is not CommandState.ACKNOWLEDGED:
        return Because(Rung.STEER, "it is not proven yet that its turn has begun", "the proof")
    if not seen.steerable:
        return Because(Rung.STEER, f"{sent.executor} cannot put words into a turn under way", change)
    if any(command.kind is CommandKind.STEER for command in seen.snapshot.commands):
        return Because(Rung.STEER, "it is not known yet what became of the words put in before", change)
    if turn_seen(seen) is None:
        return Because(Rung.STEER, "its turn was not seen just now", "a look that sees it")
    return None


def turn_seen(seen: Seen) -> str | None:
    """What the executor calls the turn that it sees under way now: its id, or the marker it carries."""
    sent = seen.snapshot.live_command
    for finding in seen.found.findings:
        if isinstance(finding, Living) and sent is not None and finding.command.id == sent.id:
            return None if finding.orphaned or finding.unsure else finding.turn or sent.marker
    return None


def spacing(seen: Seen, now: datetime) -> Because | None:
    """Words were put into its turns a short while ago."""
    due = next_live(seen)
    last = seen.snapshot.task.steered_at
    if due is None or last is None or due <= now or last > now:  # a clock that went back holds nobody up
        return None
    return Because(Rung.SPACING, "words were put into its turns a short while ago", "time, or the end of the turn", due)


def next_live(seen: Seen) -> datetime | None:
    """When words may go into a turn under way again; None: at once."""
    last = seen.snapshot.task.steered_at
    return last + seen.snapshot.run.policy.live_spacing if last is not None else None


#: What holds back every word to a turn under way, corrective or not.
BEFORE_SPACING: tuple[Check, ...] = (
    rungs.terminal,
    rungs.held,
    rungs.run_stopped,
    rungs.not_leader,
    rungs.person,
    rungs.permission,
    rungs.limit,
    under_way,
)
#: The ladder of *steer*. It passes an earlier command of the task and the turn under way: into that it goes.
STEER: tuple[Check, ...] = (*BEFORE_SPACING, spacing)
#: The ladder of *deliver*: that of *continue*, whose rungs let words of the operator past a pause, a stall and manual.
DELIVER: tuple[Check, ...] = rungs.CONTINUE


def first(ladder: Iterable[Check], seen: Seen, now: datetime) -> Because | None:
    """The first rung that holds."""
    return next((because for rung in ladder if (because := rung(seen, now))), None)


def urgent(message: Message, now: datetime) -> bool:
    """Whether a message waits to be put into a turn under way; after a failed delivery it first waits its time."""
    if message.policy is not MessagePolicy.STEER_NOW:
        return False
    match message.state:
        case DeliveryState.DEFERRED:
            return True  # the spacing is the task's, and stands in its ladder
        case DeliveryState.RETRY_WAIT:
            return message.not_before <= now or message.created_at > now
        case _:
            return False


def steer(seen: Seen, now: datetime) -> SteerTurn | None:
    """The messages that may be put into the turn under way now, oldest first; None when there are none."""
    waiting = [message for message in seen.snapshot.messages if urgent(message, now)]
    if not waiting or first(BEFORE_SPACING, seen, now) is not None:
        return None
    if spacing(seen, now) is not None:
        waiting = [message for message in waiting if message.corrective is not None]
    turn = turn_seen(seen)
    if not waiting or turn is None:
        return None
    return SteerTurn(tuple(message.id for message in waiting), turn)


# -- storing


def store(
    seen: Seen,
    party: Party,
    sender: str,
    body: str,
    policy: MessagePolicy,
    corrective: str | None,
    now: datetime,
    new: New,
) -> Stored | Because:
    """Store words for a task, and ask for a turn where they are wanted now; whether one is made is judged later."""
    task = seen.snapshot.task
    if task.terminal:
        return Because(Rung.TERMINAL, f"the task is {task.state}", "nothing; start a new task for more work")
    draft = Draft(seen.snapshot, now, new)
    not_before = now
    if policy is MessagePolicy.STEER_NOW and corrective is None and seen.snapshot.live is not None:
        not_before = max(now, next_live(seen) or now)
    message = draft.message(
        sender, MessageKind.WORDS, body, policy, party=party, corrective=corrective, not_before=not_before
    )
    if policy is MessagePolicy.STEER_NOW:
        by = sender if party is Party.OPERATOR else None
        draft.wake(WakeKind.MESSAGE, f"words of {sender}", now, asked_by=by)
    commit = draft.commit()
    if commit is None:
        raise AssertionError("a stored message is a change")
    return Stored(commit, message, prospect(replace(seen, snapshot=draft.snapshot), message, now))


def prospect(seen: Seen, message: Message, now: datetime) -> Prospect:
    """How a message that waits will be delivered, as things stand now."""
    match message.policy:
        case MessagePolicy.RECORD_ONLY:
            return Prospect(Way.RECORDED, None, None)
        case MessagePolicy.NEXT_TURN:
            return _with_next_turn(seen, now)
        case MessagePolicy.STEER_NOW if seen.snapshot.live is not None:
            because = first(BEFORE_SPACING, seen, now)
            if because is not None:
                return Prospect(Way.NEXT_TURN, None, because.sentence)
            spaced = spacing(seen, now) if message.corrective is None else None
            if spaced is not None:
                return Prospect(Way.STEER, spaced.until, spaced.sentence)
            return Prospect(Way.STEER, now, None)
        case _:
            because = first(DELIVER, seen, now)
            if because is None or because.rung in PREPARED:
                return Prospect(Way.SEND, now, None)
            return Prospect(Way.NEXT_TURN, because.until, because.sentence)


#: Rungs that are dealt with before a turn, without anybody's doing.
PREPARED = frozenset({Rung.LEASE, Rung.FENCE})


def _with_next_turn(seen: Seen, now: datetime) -> Prospect:
    because = first(DELIVER, seen, now)
    if because is None or because.rung in PREPARED:
        return Prospect(Way.NEXT_TURN, now, None)
    if because.rung is Rung.LIVE:
        return Prospect(Way.NEXT_TURN, None, because.sentence)
    return Prospect(Way.NEXT_TURN, because.until, because.sentence)
