"""What the chat site holds: conversations, their turns, and what it was told to do wrong.

Here it is decided what a user turn becomes: accepted, refused, or accepted in a way the page does not hear of. No
sockets and no clock of its own; times come from the loop it is served by.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Fault = Literal[
    "accept_late",  # accepted at once, the page hears of it after `seconds`
    "accept_then_time_out",  # accepted; the answer is a card: delivery timed out, with Retry
    "accept_then_error",  # accepted; the answer is a card: something went wrong, with Retry
    "lose_answer",  # accepted; the connection breaks and this document never shows the turn
    "refuse",  # not accepted; a toast, and the draft comes back
    "double_render",  # accepted once, drawn twice under two keys
    "draft_kept",  # accepted and drawn, and the text stays in the composer
    "rate_dialog",  # not accepted; a dialog, and the draft comes back
    "usage_limit",  # not accepted; a banner with the time of the reset (`reset`), and the draft comes back
    "max_length",  # not accepted; the turn's answer is the card that the conversation is full
    "shorten",  # the site shortens the text to `characters` before it takes it
    "approval",  # `cards` approval cards, one after another, before the answer goes on
    "reload_mid_stream",  # the page reloads itself when half of the answer is there
    "interrupted",  # in mid answer: connection interrupted, waiting for the answer; with `stalls` until `resume`
    "stall",  # the answer stops half way until `resume`
    "silent",  # the turn ends with no prose: a finished turn with an empty text
    "logs_out",  # not accepted: the session has expired, the page becomes the one of somebody unknown
]
FAULTS: frozenset[str] = frozenset(get_args(Fault))


@dataclass
class Look:
    """How the site draws itself. Changing one is seen by every open page at once."""

    variant: Literal["section", "article", "fallback", "roles", "unknown"] = "section"
    send_when_empty: Literal["absent", "disabled"] = "absent"
    locale: str = "en"
    mounted: int = 0  # how many of the last turns are mounted; 0: all
    first_mounted: int = 0  # with `mounted`: how many of the first are
    churn: int = 0  # how many times a second every turn is made anew
    optimistic: bool = True  # the user's turn is drawn under a placeholder before it is accepted
    transient: bool = True  # a new conversation has a client-made address first
    deaf_while_hidden: bool = False  # submitting does nothing while the document is hidden
    never_hydrates: bool = False  # the shell of the page comes, its turns never do
    stop_gap_ms: int = 60  # between the end of the stream, when Stop leaves, and the finished turn's own buttons
    steerable: bool = True  # while generating, the composer takes another turn
    swallow: bool = False  # a click on Send does nothing at all; the text stays
    code: Literal["labelled", "editor", "nameless"] = "labelled"  # how fenced code is drawn
    stale_marks: bool = False  # streaming marks stay on finished turns
    box: Literal["whole", "doubles", "shortens", "deaf"] = "whole"  # what the composer makes of text; deaf: to pastes
    send_missing: bool = False  # no Send button even with text in the composer


@dataclass(frozen=True)
class Answer:
    """What the assistant will say: its text, in how many pieces, and how many seconds between two."""

    text: str
    pieces: int = 4
    pace: float = 0.05


@dataclass(frozen=True)
class Past:
    """A turn that a conversation has from before. `error` is the sentence of a card in its place."""

    role: Literal["user", "assistant"]
    text: str
    error: str | None = None
    button: str | None = None


@dataclass(frozen=True)
class Accepted:
    """A user turn that the server took: the only truth there is about sends."""

    number: int
    conversation: str
    text: str
    at: float
    steer: bool
    host: str


@dataclass
class Turn:
    """One turn of a conversation as the server has it."""

    id: str
    number: int
    role: str
    text: str = ""
    state: str = "done"  # streaming | done | error
    error: str | None = None
    button: str | None = None
    cards: list[str] = field(default_factory=list)
    notice: str | None = None
    doubled: bool = False
    unseen_by: str | None = None


@dataclass
class Conversation:
    """Turns, and whether something is being generated."""

    id: str
    turns: list[Turn] = field(default_factory=list)
    answering: asyncio.Task[None] | None = None
    reload: int = 0

    @property
    def generating(self) -> bool:
        return self.answering is not None and not self.answering.done()


@dataclass
class Shown:
    """What stands on every page beside the conversation."""

    dialog: str | None = None
    banner: str | None = None
    toast: str | None = None


def echo(prompt: str) -> Answer:
    """What is said when nobody set another answer."""
    return Answer(f"Done with {len(prompt)} characters.")


class Site:
    """The whole state; to be touched only on the loop that serves it."""

    def __init__(self) -> None:
        self.version = 0
        self.conversations: dict[str, Conversation] = {}
        self._news = asyncio.Event()
        self.reset()

    def reset(self) -> None:
        """Honest, empty, signed in: as after the start."""
        for conversation in self.conversations.values():
            if conversation.answering is not None:
                conversation.answering.cancel()
        self.look = Look()
        self.shown = Shown()
        self.logged_in = True
        self.challenge = False
        self.accepted: list[Accepted] = []
        self.pressed: list[str] = []
        self.stops: list[str] = []
        self.posts = 0
        self.faults: list[tuple[str, dict[str, Any]]] = []
        self.conversations = {}
        self.answer: Callable[[str], Answer] = echo
        self.approved = asyncio.Event()
        self.resumed = asyncio.Event()

    # -- change ------------------------------------------------------------------

    def touch(self) -> None:
        """Something is different: every page is told."""
        self.version += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def after(self, version: int, patience: float) -> None:
        """Return when there is something newer than `version`, or when `patience` seconds have passed."""
        end = asyncio.get_running_loop().time() + patience
        while self.version <= version:
            try:
                await asyncio.wait_for(self._news.wait(), end - asyncio.get_running_loop().time())
            except TimeoutError:
                return

    # -- what pages ask ----------------------------------------------------------

    def seed(self, past: list[Past], identity: str | None = None) -> str:
        """Make a conversation with a past; its id."""
        identity = identity or str(uuid.uuid4())
        turns = [
            Turn(str(uuid.uuid4()), number, was.role, was.text, "error" if was.error else "done", was.error, was.button)
            for number, was in enumerate(past, 1)
        ]
        self.conversations[identity] = Conversation(identity, turns)
        self.touch()
        return identity

    def snapshot(self, identity: str | None, document: str) -> dict[str, Any]:
        """What one document may see now."""
        conversation = self.conversations.get(identity or "")
        turns = conversation.turns if conversation else []
        seen = [asdict(turn) for turn in turns if turn.unseen_by != document]
        return {
            "version": self.version,
            "conversation": identity if conversation else None,
            "missing": bool(identity) and conversation is None and not str(identity).startswith("WEB:"),
            "look": asdict(self.look),
            "shown": asdict(self.shown),
            "logged_in": self.logged_in,
            "generating": bool(conversation and conversation.generating),
            "reload": conversation.reload if conversation else 0,
            "turns": seen,
        }

    async def take(self, identity: str | None, text: str, document: str, host: str) -> dict[str, Any] | None:
        """A user turn arrives. None: the connection is to be broken without a word."""
        self.posts += 1
        fault, told = self.faults.pop(0) if self.faults else ("", {})
        if fault == "refuse":
            return {"verdict": "refused", "toast": "Something went wrong"}
        if fault == "rate_dialog":
            self.shown.dialog = "rate"
            self.touch()
            return {"verdict": "refused"}
        if fault == "usage_limit":
            self.shown.banner = f"You've hit your limit. Your access resets at {told.get('reset', '3:45 PM')}."
            self.touch()
            return {"verdict": "refused"}
        if fault == "logs_out":
            self.logged_in = False
            self.touch()
            return {"verdict": "refused"}
        conversation = self.conversations.get(identity or "")
        if conversation is None:
            conversation = Conversation(str(uuid.uuid4()))
            self.conversations[conversation.id] = conversation
        if fault == "max_length":
            words = "You've reached the maximum length for this conversation, but you can keep talking in a new chat."
            self._add(conversation, "assistant", state="error", error=words, button="Start new chat")
            self.touch()
            return {"verdict": "refused", "conversation": conversation.id}
        if fault == "shorten":
            text = text[: int(told.get("characters", 40))]
        steer = conversation.generating
        if steer and conversation.answering is not None:
            conversation.answering.cancel()
            for turn in conversation.turns:
                turn.state = "done" if turn.state == "streaming" else turn.state
        user = self._add(conversation, "user", text)
        user.doubled = fault == "double_render"
        self.accepted.append(Accepted(len(self.accepted) + 1, conversation.id, text, time.monotonic(), steer, host))
        if fault == "lose_answer":
            user.unseen_by = document
        if fault == "accept_late":
            user.unseen_by = document
            self._begin(conversation, text, fault, told, document)
            await asyncio.sleep(float(told.get("seconds", 2.0)))
            self._reveal(conversation, document)
            return {"verdict": "accepted", "conversation": conversation.id}
        self._begin(conversation, text, fault, told, document if fault == "lose_answer" else None)
        if fault == "lose_answer":
            return None
        return {"verdict": "accepted", "conversation": conversation.id, "keep_draft": fault == "draft_kept"}

    def _reveal(self, conversation: Conversation, document: str) -> None:
        for turn in conversation.turns:
            if turn.unseen_by == document:
                turn.unseen_by = None
        self.touch()

    def _add(self, conversation: Conversation, role: str, text: str = "", **more: Any) -> Turn:
        number = conversation.turns[-1].number + 1 if conversation.turns else 1
        turn = Turn(str(uuid.uuid4()), number, role, text, **more)
        conversation.turns.append(turn)
        return turn

    def _begin(
        self, conversation: Conversation, prompt: str, fault: str, told: dict[str, Any], unseen: str | None
    ) -> None:
        loop = asyncio.get_running_loop()
        conversation.answering = loop.create_task(self._say(conversation, prompt, fault, told, unseen))
        self.touch()

    async def _say(
        self, conversation: Conversation, prompt: str, fault: str, told: dict[str, Any], unseen: str | None
    ) -> None:
        """Write the answer, piece by piece."""
        turn = self._add(conversation, "assistant", state="streaming", unseen_by=unseen)
        self.touch()
        if fault in ("accept_then_time_out", "accept_then_error"):
            turn.state, turn.button = "error", "Retry"
            turn.error = (
                "Message delivery timed out. Please try again."
                if fault == "accept_then_time_out"
                else "Something went wrong while generating the response."
            )
            self.touch()
            return
        answer = self.answer(prompt)
        for card in range(int(told.get("cards", 1)) if fault == "approval" else 0):
            self.approved.clear()
            turn.cards = [f"Allow ChatGPT to use the tool? ({card + 1})"]
            self.touch()
            await self.approved.wait()
            turn.cards = []
            self.touch()
        whole = "" if fault == "silent" else answer.text
        for piece in range(1, answer.pieces + 1):
            await asyncio.sleep(answer.pace)
            turn.text = whole[: len(whole) * piece // answer.pieces]
            half = piece == max(1, answer.pieces // 2)
            if half and fault == "reload_mid_stream":
                conversation.reload += 1
            if fault == "interrupted":
                turn.notice = "Connection interrupted. Waiting for the complete answer" if half else turn.notice
                turn.notice = None if piece == answer.pieces else turn.notice
            if half and (fault == "stall" or told.get("stalls")):
                self.resumed.clear()
                self.touch()
                await self.resumed.wait()
            self.touch()
        turn.state = "done"
        conversation.answering = None
        self.touch()

    def stop(self, identity: str) -> None:
        """The Stop button was pressed."""
        self.stops.append(identity)
        conversation = self.conversations.get(identity)
        if conversation is None or conversation.answering is None:
            return
        conversation.answering.cancel()
        conversation.answering = None
        for turn in conversation.turns:
            if turn.state == "streaming":
                turn.state = "done"
        self.touch()
