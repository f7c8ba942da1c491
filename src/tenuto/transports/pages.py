"""Chat pages as executors: the extension of one browser, and what it is ordered for a turn in a conversation there.

A page is given the words and its site's profile, and nothing else: no token, no environment, no path. Which site an
order is for is its adapter's name. What a page says of itself is facts of its own sort; they hold a turn back and never
authorise one. The words of a page are not among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tenuto.core import resets
from tenuto.model.command import Command
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import CommandFacts, Mark, Observation, PageFacts, Rank
from tenuto.model.faults import Mistake
from tenuto.model.work import Agent
from tenuto.ports import Order, Turn
from tenuto.transports import ordered, wire
from tenuto.transports.agents.hindering import zone_named
from tenuto.transports.bridge import Bridge
from tenuto.transports.canary import Canary
from tenuto.transports.line import moment_of, rank_of
from tenuto.transports.remote import LOOK, RemoteExecutor, target_of

Profiles = Callable[[str], Mapping[str, Any] | None]
"""The compiled profile of a site by its name; None for a site that nobody knows. Raises Mistake for a broken one."""


class PageExecutor(RemoteExecutor):
    """Implements `ports.Executor` and `ports.Paging` for the pages of one browser."""

    def __init__(
        self,
        bridge: Bridge,
        name: str,
        profiles: Profiles,
        canary: Canary | None = None,
        *,
        sites: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        super().__init__(bridge, name)
        self._profiles = profiles
        self._sites = sites
        self._canary = canary or Canary()

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """A site that is not known, or whose profile does not fit."""
        try:
            found = self._profiles(agent.adapter)
        except Mistake as mistake:
            return "agent", str(mistake)
        if found is None:
            return "agent", f"no chat site is called {agent.adapter[:60]!r}; tenuto site check tells which are known"
        return None

    def account(self, agent: Agent) -> str | None:
        """One account a site in one browser, as far as can be told from here."""
        return f"{agent.adapter}@{self.name}"

    def addressed(self, url: str) -> tuple[str, str] | None:
        """The site of a conversation's address, and the address that it is bound under."""
        bare = re.split(r"[?#]", url, maxsplit=1)[0]
        for site in self._sites():
            profile = self._profiles(site)
            if profile is not None and (identity := _bound(profile, bare)) is not None:
                return site, identity
        return None

    def _frame(self, command: Command, order: Order) -> wire.Command:
        if not isinstance(order, Turn):
            return super()._frame(command, order)
        profile = self._profile(order.adapter)
        payload: dict[str, object] = {
            "type": "page",
            "site": order.adapter,
            "text": order.prompt,
            "profile": profile,
            "open": profile["new_chat"],
            "limit": order.limit.total_seconds(),
            "patience": profile["send"]["patience_ms"] / 1000,
            "acceptance": profile["send"]["acceptance_ms"] / 1000,
        }
        if order.watched is not None:
            run, after = order.watched
            payload["dead_man"] = {"run": run, "after": after.total_seconds()}
        steps = ("compose", "submit")
        held = ("exact_conversation", "own_composer", "no_approval", "no_dialog", "not_generating")
        bare = replace(order, prompt="", argv=(), env=(), given={})
        return replace(super()._frame(command, bare), payload=payload, steps=steps, preconditions=held)

    def _profile(self, site: str) -> Mapping[str, Any]:
        try:
            found = self._profiles(site)
        except Mistake as mistake:
            raise ordered.NotAnOrder(str(mistake)) from None
        if found is None:
            raise ordered.NotAnOrder(f"no chat site is called {site[:60]!r}")
        return found

    async def page(self, talk: Conversation) -> Observation:
        """What the page of a conversation shows now; that nothing is known, where it is not shown or not reached."""
        now = self._bridge.clock.now
        line = self._line()
        answer = await line.inquire_page(wire.Target(talk.id, talk.identity), LOOK) if line is not None else None
        if line is None or answer is None or answer.subject != talk.identity:
            return Observation(self.name, Rank.PAGE, talk.identity, now(), PageFacts(shown=None))
        self._heed(answer.facts, now())
        return Observation(
            self.name,
            rank_of(answer.rank, line.hello.kind),
            talk.identity,
            moment_of(answer, now()),
            self._stirred(_dated(facts_of(answer.facts), now()), talk.identity),
        )

    async def look(self, command: Command) -> Observation:
        """As everywhere, and when its page was last seen to grow since the turn began."""
        seen, about = await super().look(command), target_of(command)
        facts, known = seen.facts, self._known.stirring
        if not isinstance(facts, CommandFacts) or facts.mark is not Mark.ACCEPTED or facts.unreachable or about is None:
            return seen
        grew = known.of(about.identity).grew_at
        if grew is None or facts.marked_at is None or grew < facts.marked_at:
            return seen
        return replace(seen, facts=replace(facts, heard_at=grew))

    def _stirred(self, facts: PageFacts, identity: str) -> PageFacts:
        stirred = self._known.stirring.of(identity)
        return replace(facts, changed_at=stirred.changed_at, grew_at=stirred.grew_at)

    def _heed(self, facts: Mapping[str, object], at: datetime) -> None:
        """Let the canary see it; a profile that cannot be read is told of where a turn is ordered."""
        try:
            profile = self._profiles(str(facts.get("site", "")))
        except Mistake:
            return
        if profile is not None:
            self._canary.seen(profile, facts, at)


def _dated(facts: PageFacts, now: datetime) -> PageFacts:
    """With the moment that the page's own words for a reset mean here, where they mean one."""
    here = now.astimezone().tzinfo
    if facts.resets is None or here is None:
        return facts
    return replace(facts, resets_at=resets.read(f"resets at {facts.resets}", now, here, zone_named))


def _bound(profile: Mapping[str, Any], url: str) -> str | None:
    """What the first pattern of a profile that fits makes of an address; None for what is no lasting conversation."""
    for each in profile["urls"]:
        found = re.match(each["regex"], url, re.IGNORECASE)
        if found is None:
            continue
        if each["kind"] != "conversation":
            return None
        canonical = each["canonical"]
        return str(canonical).replace("{}", found[each["identity"]]) if canonical else url.rstrip("/")
    return None


def facts_of(told: Mapping[str, object]) -> PageFacts:
    """What an extension says of a page, checked and bounded; what is not there or of another sort says nothing."""
    if told.get("type") == "page" and told.get("shown", False) is None:
        return PageFacts(shown=None)  # a page is there, and cannot be read now
    if told.get("type") != "page" or told.get("shown") is not True:
        return PageFacts(shown=False)
    if told.get("several") is True:
        return PageFacts(shown=True, several=True)
    return PageFacts(
        shown=True,
        state=_word(told, "state") or "unknown",
        composer=_word(told, "composer") or "unknown",
        generating=_word(told, "generating") or "unknown",
        typing=told.get("typing") is True,
        approval=_word(told, "approval"),
        error=_word(told, "error"),
        stale=told.get("stale") is True,
        resets=_word(told, "resets"),
        foreign_turns=_count(told, "foreign_turns"),
        users=_count(told, "users"),
        missing=_words(told.get("missing")),
        ours=told.get("ours") is True,
        digest=_word(told, "digest"),
    )


def _word(told: Mapping[str, object], name: str) -> str | None:
    held = told.get(name)
    return held[:200] if isinstance(held, str) and held.isprintable() else None


def _words(held: object) -> tuple[str, ...]:
    if not isinstance(held, list):
        return ()
    return tuple(each[:64] for each in held[:32] if isinstance(each, str) and each.isprintable())


def _count(told: Mapping[str, object], name: str) -> int:
    held = told.get(name)
    return held if isinstance(held, int) and not isinstance(held, bool) and 0 <= held < 10**6 else 0
