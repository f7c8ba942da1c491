"""A chat site as it is at its own end: conversations, whose turn it is in them, and who may come in.

It holds the truth that a browser sees only while a page shows it: which turns were taken, what is being answered, what
its person has done there. It knows nothing of supervisors, and tells the laws whatever takes effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tenuto.model.command import Command
from tenuto.model.evidence import Ending
from tenuto.proof.simulation.laws import Laws
from tenuto.proof.simulation.mind import Mind
from tenuto.proof.simulation.virtual import VirtualLoop

SITE = "attic"
OPEN = "https://attic.example/"
ROOM = 9
"""Turns that one conversation takes before it is full."""


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

    `composer` is empty, ours or foreign. `windows` is how many other tabs show it; `tab` that ours does.
    """

    url: str
    tab: bool = True
    windows: int = 0
    composer: str = "empty"
    typing: bool = False
    foreign: int = 0
    gone: bool = False
    turns: list[str] = field(default_factory=list)
    working: Command | None = None
    ended: dict[str, Ending | None] = field(default_factory=dict)
    heard: list[Callable[[], None]] = field(default_factory=list)

    def state(self) -> str:
        """What a page of it shows, apart from what holds for the whole site."""
        if self.gone:
            return "dead"
        if self.working is not None:
            return "generating"
        if self.composer != "empty":
            return "draft"
        return "full" if len(self.turns) >= ROOM else "ready"


class Site:
    """One person's account there; `let_in`, `spent_until` (seconds of the loop) and `resets` hold for all of it."""

    def __init__(self, loop: VirtualLoop, laws: Laws, mind: Mind) -> None:
        self._loop = loop
        self._laws = laws
        self._mind = mind
        self.group: asyncio.TaskGroup
        self.let_in = True
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
            chat.ended[command.marker] = None
            self._laws.gone(command)

    def _finish(self, chat: Chat, command: Command) -> None:
        if chat.working is command:
            self.group.create_task(self._finished(chat, command))

    async def _finished(self, chat: Chat, command: Command) -> None:
        ending = await self._mind.ends(command)
        if chat.working is not command:
            return  # it was stopped meanwhile
        chat.working = None
        chat.ended[command.marker] = None if self.spent else ending
        self._laws.gone(command)
        for hear in chat.heard:
            hear()
