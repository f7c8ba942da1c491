"""What the page of a conversation has to say about the next turn.

A page that is not ready holds its turn back, a page that needs its person (a log-in, a human check) is a wait that ends
by itself once the page shows it no more, and a conversation that is full or gone is left for a fresh one. Nothing that
a page shows authorises a turn; where no page shows the conversation, the executor looks again right before the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tenuto.core import limits, outside
from tenuto.core.draft import Draft
from tenuto.model.decision import Because, Rung
from tenuto.model.evidence import Hindered, Hindrance, PageFacts
from tenuto.model.reconciliation import Named, Seen, Undone
from tenuto.model.work import Task, Wait, WaitKind

LOOK: Final = timedelta(seconds=15)
"""How soon a page that is not ready is looked at again."""

STANDING: Final = timedelta(minutes=1)
"""How late at most a page is looked at again that has been waiting for its person for a long time."""

OPERATOR_TURN: Final = timedelta(minutes=10)
"""How long turns are held back after the person has sent one of their own."""

BREATH: Final = timedelta(seconds=5)
"""How long a page is left alone between two turns, at least."""

PERSON: Final[Mapping[str, str]] = {
    "login": "its browser is not logged in there any more: log in, in the browser",
    "challenge": "the site asks whether a person is there: answer it, in the browser",
}
"""States of a page that only its person can end, and what is asked."""

STANDS: Final[Mapping[str, str]] = {
    "draft": "somebody left a draft in its page: send it or take it away, in the browser",
    "dialog": "a dialog stands in its page: close it, in the browser",
    "approval": "an approval card stands in its page: allow or deny it, in the browser",
}
"""States that a turn was refused for and that are its person's: asked about after a refusal, until they are gone."""

OVER: Final = frozenset({"full", "dead"})
"""States, and reasons of a refusal, after which a conversation takes no turn any more."""

SUBJECT: Final = "page:"
CARD: Final = f"{SUBJECT}approval:"
"""What a wait on a card in a page begins with; the card's fingerprint follows."""

_HELD: Final[Mapping[str, str]] = {
    "generating": "its page is generating, and not for us",
    "draft": "somebody's draft stands in its page",
    "approval": "an approval card waits in its page",
    "dialog": "a dialog is open in its page",
    "error": "its page shows an error",
    "limit": "its page says that the usage is spent",
    "loading": "its page is not there yet",
    "unknown": "its page is not understood",
    **{state: sentence.partition(":")[0] for state, sentence in PERSON.items()},
}


def idle_delay(task: Task, delay: timedelta) -> timedelta:
    """How long after a turn the next one is made; a page is left alone for a moment."""
    return max(delay, BREATH) if task.agent.in_page else delay


def lost(seen: Seen) -> str | None:
    """Why a conversation in a page takes no turn any more; None while it may."""
    talk, facts = seen.snapshot.conversation, seen.found.page
    if talk is not None and seen.snapshot.task.agent.in_page and talk.turns and not talk.identity.startswith("http"):
        return "its address was never seen, so that it cannot be found again"
    if facts is None or facts.state not in OVER:
        return None
    return "its conversation is full" if facts.state == "full" else "its conversation is not there any more"


def page(seen: Seen, now: datetime) -> Because | None:
    """The rung: a page that is shown and not ready for a turn, or one that is watched and generates or just moved."""
    for watched in seen.found.watched:
        if watched.generating:
            busy = f"a page that is watched for it generates, and not for us: {watched.subject}"
            unwatch = f"it ends, or: tenuto page unwatch {seen.snapshot.task.id}"
            return Because(Rung.PAGE, busy, unwatch, now + LOOK)
    for watched in seen.found.watched:
        if (moved := outside.unquiet(watched, seen.snapshot.run.policy, now)) is not None:
            restless = f"a page that is watched for it {moved[0]} just now: {watched.subject}"
            unwatch = f"it is still for a few seconds, or: tenuto page unwatch {seen.snapshot.task.id}"
            return Because(Rung.PAGE, restless, unwatch, moved[1])
    facts = seen.found.page
    if facts is None or not facts.shown:
        return None
    sentence = _sentence(facts)
    if sentence is None:
        return None
    change = "what stands in the page is settled there"
    until = now + LOOK
    if facts.foreign_age is not None and facts.foreign_turns and facts.state == "ready" and not facts.typing:
        rest = OPERATOR_TURN - timedelta(seconds=facts.foreign_age)
        until, change = now + max(rest, timedelta(seconds=1)), "time"
    told = tuple((name, value) for name, value in (("state", facts.state), ("composer", facts.composer)) if value)
    if facts.missing:
        told = (*told, ("missing", ", ".join(facts.missing)[:200]))
    spent = OPERATOR_TURN.total_seconds()
    if facts.foreign_turns and facts.state == "ready" and (facts.foreign_age is None or facts.foreign_age >= spent):
        return None
    return Because(Rung.PAGE, sentence, change, until, told)


def standing_look(wait: Wait, now: datetime) -> timedelta:
    """After how long a page that waits for its person is looked at again: less often once it waits for hours."""
    return max(LOOK, min((now - wait.opened_at) / 30, STANDING))


def _sentence(facts: PageFacts) -> str | None:
    """Why the page is not ready; None when it is."""
    if facts.several:
        return "several tabs show its conversation, and none of them is ours"
    if facts.typing:
        return "somebody is typing in its page"
    if facts.state == "draft" and facts.composer == "ours":
        return None  # left over from a turn that provably did not begin
    if facts.state == "error" and facts.stale:
        return None  # it was seen together with generation, and belongs to what is over
    if facts.state == "ready":
        return "its person has sent a turn of their own there" if facts.foreign_turns else None
    if facts.state in OVER:
        return None  # a fresh conversation is opened instead
    return _HELD.get(facts.state, f"its page is {facts.state}")


def settle(draft: Draft, seen: Seen) -> None:
    """Ask the page's person for what only they can do, and stop asking once the page shows it no more."""
    facts = seen.found.page
    _cards(draft, seen)
    if facts is None or draft.task.terminal:
        return
    if facts.shown is False:
        for wait in draft.snapshot.waits:
            if any(wait.subject == f"{SUBJECT}{state}" for state in (*STANDS, *PERSON)):
                draft.close_wait(wait, "no page shows it any more")
                draft.look_now()
    if not facts.shown:
        return
    if _limited(facts):
        _limit(draft, seen, facts)
    asked = PERSON.get(facts.state)
    subject = f"{SUBJECT}{facts.state}"
    known = [wait for wait in draft.snapshot.waits if (wait.subject or "").startswith(SUBJECT)]
    if asked is not None:
        if all(wait.subject != subject for wait in known):
            draft.wait(WaitKind.PERMISSION, asked, subject=subject)
        return
    if facts.state in ("loading", "unknown"):
        return  # it cannot be told
    for wait in known:
        if wait.subject != subject:
            draft.close_wait(wait, "the page shows it no more")
            draft.look_now()


def _cards(draft: Draft, seen: Seen) -> None:
    """A turn in a page stands before a card: its person is asked, once for each card, and no more once it is gone.

    No rule of ours answers one, since nobody here may press it; what it says stays in the page.
    """
    live = draft.snapshot.live
    if not draft.task.agent.in_page or draft.task.terminal:
        return
    asks = seen.found.cards if live is not None else ()
    if asks is None:
        return  # it cannot be told
    wanted = {f"{CARD}{ask.fingerprint}"[:200]: ask.what for ask in asks}
    known = {wait.subject: wait for wait in draft.snapshot.waits if (wait.subject or "").startswith(CARD)}
    for subject, wait in known.items():
        if subject not in wanted:
            draft.close_wait(wait, "the page shows it no more")
            draft.look_now()
    for subject, what in wanted.items():
        if subject not in known:
            draft.wait(WaitKind.PERMISSION, what[:2000], subject=subject, attempt=live.id if live is not None else None)


def _limited(facts: PageFacts) -> bool:
    """Whether the page says that the account's usage is spent, and means now."""
    return facts.state == "limit" and not facts.stale


def _limit(draft: Draft, seen: Seen, facts: PageFacts) -> None:
    """The account's limit is met, once for as long as it stands: whoever has the account waits for it."""
    if seen.account is None or any(wait.kind is WaitKind.LIMIT for wait in draft.snapshot.waits):
        return
    if limits.holding(draft.snapshot, seen.account, draft.now) is not None:
        return
    when = f", until {facts.resets}" if facts.resets else ""
    held = Hindered(Hindrance.LIMIT, f"its page says that the usage is spent{when}", resets_at=facts.resets_at)
    limits.met(draft, seen.account, held, None)


def refused(draft: Draft, finding: Undone) -> bool:
    """What a refusal of a page leads to beside the turn that was not sent; whether the turn is to be tried again."""
    if finding.why in OVER:
        draft.end_conversation()
        return True
    if finding.why == "limit":
        return True  # the next look at the page says until when
    why = finding.why or ""
    asked = PERSON.get(why)
    if asked is None and why in STANDS:
        asked = f"{STANDS[why]} ({finding.reason})"[:2000]  # it may be our own words that stayed
    if asked is None:
        return False
    subject = f"{SUBJECT}{why}"
    if all(wait.subject != subject for wait in draft.snapshot.waits):
        draft.wait(WaitKind.PERMISSION, asked, subject=subject)
    return True


def named(draft: Draft, finding: Named) -> None:
    """A conversation is called what the outside calls it, as soon as a turn in it has told."""
    talk = draft.snapshot.conversation
    if talk is not None and talk.id == finding.command.conversation_id and talk.identity != finding.identity:
        draft.talk(replace(talk, identity=finding.identity))
