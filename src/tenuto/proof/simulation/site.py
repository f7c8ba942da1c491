"""A chat site as it is at its own end: conversations, whose turn it is in them, and who may come in.

It holds the truth that a browser sees only while a page shows it: which turns were taken, what is being answered, what
its person has done there. It knows nothing of supervisors, and tells the laws whatever takes effect.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tenuto.model.command import Command
from tenuto.model.evidence import Asking, Ending
from tenuto.proof.simulation.laws import Laws
from tenuto.proof.simulation.mind import Mind
from tenuto.proof.simulation.virtual import VirtualLoop

SITE = "attic"
OPEN = "https://attic.example/"
ROOM = 9
"""Turns that one conversation takes before it is full."""
CARD_LOOK = 30.0
"""Seconds within which a turn goes on whose card was pressed."""


def profile(name: str) -> dict[str, object] | None:
    """The compiled profile of the one site there is, as far as a supervisor reads it."""
    if name != SITE:
        return None
    kept = {"regex": r"^https://attic\.example/c/(\w+)$", "kind": "conversation", "identity": 1, "canonical": None}
    send = {"patience_ms": 20_000, "acceptance_ms": 60_000}
    return {"id": SITE, "version": "1", "new_chat": OPEN, "urls": [kept], "send": send}


@dataclass(eq=False)
class Chat:
    """One conversation. `heard` is whoever watches a page of it; the rest is what stands in it.

    `composer` is empty, ours or foreign. `windows` is how many other tabs show it; `tab` that ours does. `card` is what
    a turn that is being answered stands before.
    """

    url: str
    tab: bool = True
    windows: int = 0
    composer: str = "empty"
    typing: bool = False
    foreign: int = 0
    gone: bool = False
    card: Asking | None = None
    turns: list[str] = field(default_factory=list)
    working: Command | None = None
    ended: dict[str, Ending | None] = field(default_factory=dict)
    heard: list[Callable[[], None]] = field(default_factory=list)

    def state(self) -> str:
        """What a page of it shows, apart from what holds for the whole site."""
        if self.gone:
            return "dead"
        if self.working is not None:
            return "approval" if self.card is not None else "generating"
        if self.composer != "empty":
            return "draft"
        return "full" if len(self.turns) >= ROOM else "ready"


class Site:
    """One person's account there; `let_in`, `challenged`, `spent_until` and `resets` hold for all of it."""

    def __init__(self, loop: VirtualLoop, laws: Laws, mind: Mind) -> None:
        self._loop = loop
        self._laws = laws
        self._mind = mind
        self.group: asyncio.TaskGroup
        self.let_in = True
        self.challenged = False
        self._cards = itertools.count(1)
        self.spent_until = 0.0
        self.resets: str | None = None
        self.chats: dict[str, Chat] = {}

    @property
    def spent(self) -> bool:
        return self._loop.time() < self.spent_until

    def state(self, chat: Chat | None) -> str:
        """What its page shows; a fresh one where there is no conversation yet."""
        if not self.let_in:
            return "login"
        if self.challenged:
            return "challenge"
        if self.spent:
            return "limit"
        return chat.state() if chat is not None else "ready"

    def taken(self, command: Command, chat: Chat | None, words: str) -> Chat:
        """The words are sent: from here on the turn stands in the conversation, whoever saw it."""
        if chat is None:
            url = f"{OPEN}c/{len(self.chats) + 1:05d}"
            chat = self.chats[url] = Chat(url)
        self._laws.page_turn(command, chat.url)
        self._laws.effect(command, words)
        chat.composer, chat.foreign = "empty", 0
        chat.turns.append(command.marker)
        chat.working = command
        self._loop.call_later(self._mind.lasts(command), self._finish, chat, command)
        return chat

    def stopped(self, chat: Chat) -> None:
        """What is being answered is ended from outside."""
        if chat.working is not None:
            command, chat.working = chat.working, None
            chat.ended[command.marker], chat.card = None, None
            self._laws.gone(command)

    def _finish(self, chat: Chat, command: Command) -> None:
        if chat.working is not command:
            return
        if chat.card is not None:
            self._loop.call_later(CARD_LOOK, self._finish, chat, command)  # it goes on when its person has pressed it
            return
        self.group.create_task(self._finished(chat, command))

    def card(self, chance: Random) -> None:
        """One of the turns under way asks its person for leave."""
        chats = [chat for chat in self.chats.values() if chat.working is not None and chat.card is None]
        if chats:
            chat, number = chance.choice(chats), str(next(self._cards))
            what = "the page asks for leave to use a tool of the attic"
            chat.card = Asking(number, "attic", what, hashlib.sha256(f"{chat.url} {number}".encode()).hexdigest())

    def pressed(self, subject: str) -> bool:
        """Its person does in the browser what was asked, by what the wait on it is about; whether it stood there."""
        if subject == "page:challenge":
            there, self.challenged = self.challenged, False
            return there
        for chat in self.chats.values():
            if chat.card is not None and subject == f"page:approval:{chat.card.fingerprint}"[:200]:
                chat.card = None
                return True
        return False

    async def _finished(self, chat: Chat, command: Command) -> None:
        ending = await self._mind.ends(command)
        if chat.working is not command:
            return  # it was stopped meanwhile
        chat.working = None
        chat.ended[command.marker] = None if self.spent else ending
        self._laws.gone(command)
        for hear in chat.heard:
            hear()
