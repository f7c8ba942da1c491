"""A browser with our extension in it: the executor at the other end of the real wire, with its journal and its pages.

Whatever crosses to a supervisor is a frame of the wire, written and read as text. The journal has one place per command
and marks that never go back, and outlives the background that writes it; pages are closed, shown twice, typed into and
logged out of; and what is not seen is not known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from tenuto.model.command import Command, CommandKind
from tenuto.model.evidence import Asking, Cut, Ending, How, Mark, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.proof.simulation.laws import Laws
from tenuto.proof.simulation.site import OPEN, SITE, Chat, Site
from tenuto.proof.simulation.virtual import VirtualClock, VirtualLoop
from tenuto.transports import wire

BROWSER: Final = "ext:attic"
UNTENDED: Final = 30.0
AGAIN: Final = 30.0
OVER: Final = frozenset({Mark.ENDED, Mark.FAILED, Mark.REVOKED})
PERSONAL: Final = frozenset({"login", "challenge"})
#: What befalls a turn on its way into a page, and how often of a hundred times.
FATES: Final = {
    "well": 70,
    "late": 6,
    "not hydrated": 3,
    "draft left": 4,
    "reloaded": 3,
    "unmade": 4,
    "unsent": 2,
    "unseen": 4,
    "script gone": 4,
}


@dataclass(eq=False)
class Place:
    """One command's place in the extension's journal."""

    command: CommandId
    mark: Mark
    kind: str = ""
    task: str = ""
    epoch: int = 0
    conversation: str = ""
    marker: str = ""
    at: datetime | None = None
    since: float = 0.0
    target: str = ""
    reason: str | None = None
    mendable: bool = False
    held: str | None = None
    ending: Ending | None = None
    proof: dict[str, str] = field(default_factory=dict)
    chat: Chat | None = None
    opened: bool = False


class Link:
    """Implements `transports.line.Socket`: what the supervisor's end says is heard by the browser a moment later."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._frames: asyncio.Queue[str | None] = asyncio.Queue()
        self.open = True
        self.ready = False
        self.epoch = 0

    async def send(self, text: str) -> None:
        if not self.open:
            raise ConnectionError("it is closed")
        self._browser.loop.call_later(0.02, self._browser.hear, self, text)

    async def receive(self) -> str | None:
        return await self._frames.get() if self.open or not self._frames.empty() else None

    async def close(self, code: int, reason: str) -> None:
        self.cut()

    def say(self, frame: wire.FromExecutor) -> None:
        """Say a frame; into nothing when it is closed."""
        if self.open:
            self._frames.put_nowait(wire.dump(frame))

    def cut(self) -> None:
        """It is over at both ends."""
        if self.open:
            self.open = False
            self._frames.put_nowait(None)


class Browser:
    """One browser. `known` finds the row of a command; `say` keeps the transcript."""

    def __init__(
        self,
        loop: VirtualLoop,
        clock: VirtualClock,
        laws: Laws,
        site: Site,
        chance: Callable[[Command], Random],
        say: Callable[[str], None],
        *,
        mishaps: bool,
    ) -> None:
        self.loop = loop
        self._clock = clock
        self._laws = laws
        self.site = site
        self._chance = chance
        self._say = say
        self.mishaps = mishaps
        self.group: asyncio.TaskGroup
        self.journal: dict[CommandId, Place] = {}
        self._registry: str | None = None
        self._epoch = 0
        self._life = 1
        self._began = clock.now()
        self.link: Link | None = None
        self._in_hand: set[CommandId] = set()
        self._brought: dict[CommandId, float] = {}

    # -- connecting

    def connect(self) -> Link:
        """Knock at a supervisor: the greeting is said, and its answer is awaited."""
        if self.link is not None:
            self.link.cut()
        link = self.link = Link(self)
        entries = tuple(
            wire.Entry(one.command, one.mark, one.epoch, one.kind or None, _there(one))
            for one in list(self.journal.values())[-50:]
            if one.epoch
        )
        link.say(
            wire.Hello(
                protocol=wire.protocol(),
                kind=wire.ExecutorKind.EXTENSION,
                name=BROWSER.partition(":")[2],
                instance=f"life-{self._life}",
                began_at=self._began,
                incarnation="an-attic-of-its-own",
                boot="boot",
                epoch=self._epoch,
                registry=self._registry,
                capabilities=("send", "steer", "interrupt", "page", "close"),
                journal=entries,
            )
        )
        return link

    @property
    def talking(self) -> bool:
        """Whether a supervisor is at the other end."""
        return self.link is not None and self.link.open and self.link.ready

    def background_ends(self) -> None:
        """The extension's background is ended by its browser; what it had in hand is in nobody's now."""
        self._say("the background of the extension ends")
        self._life += 1
        self._began = self._clock.now()
        self._in_hand.clear()
        if self.link is not None:
            self.link.cut()
        for place in self.journal.values():
            if place.chat is not None:
                place.chat.heard.clear()

    def hear(self, link: Link, text: str) -> None:
        """A frame of a supervisor has arrived."""
        frame = wire.parse(text)
        match frame:
            case wire.Welcome():
                if frame.epoch < self._epoch:
                    link.say(wire.Bye(wire.Farewell.EPOCH, f"epoch {self._epoch} was served before"))
                    return
                self._registry, self._epoch = frame.registry, frame.epoch
                link.epoch, link.ready = frame.epoch, True
                link.say(wire.Ready(frame.epoch))
            case wire.Ping(n):
                link.say(wire.Pong(n))
            case wire.Command():
                self._carry(link, frame)
            case wire.Revoke():
                self._revoke(link, frame)
            case wire.Inquire():
                for subject in frame.subjects:
                    link.say(self._answer(frame.query, subject))
                for page in frame.pages:
                    link.say(self._answer_page(frame.query, page))
            case wire.Bye():
                link.cut()
            case wire.Forget(commands):
                for command in commands:
                    self.journal.pop(command, None)
            case _:
                pass

    def _tell(self, place: Place, frame: wire.FromExecutor) -> None:
        """Tell what has become of a command: once, twice, late, or into nothing."""
        link = self.link
        fate = self._chance(self._row(place)).random() if self.mishaps else 1.0
        if link is None or fate < 0.04:
            return
        if fate < 0.08:
            self.loop.call_later(40.0, link.say, frame)
            return
        link.say(frame)
        if fate < 0.12:
            self.loop.call_later(3.0, link.say, frame)

    def _row(self, place: Place) -> Command:
        return self._laws.commands[place.command]

    # -- marks

    def _mark(self, place: Place, mark: Mark) -> None:
        place.mark, place.at, place.since = mark, self._clock.now(), self.loop.time()
        self._say(f"the extension's journal of {place.command}: {mark}")

    def _fail(self, place: Place, why: str, reason: str, *, mendable: bool = False) -> None:
        """It did not begin and cannot any more, or the very script that had leave did not use it."""
        if place.mark not in (Mark.CLAIMED, Mark.BEGUN) or place.held is not None:
            return
        place.reason, place.mendable = reason, mendable
        place.proof["why"] = why
        self._mark(place, Mark.FAILED)
        self._tell(place, wire.Failed(place.command, self._clock.now(), reason, True, mendable))

    def _hold(self, place: Place, reason: str) -> None:
        if place.mark is Mark.BEGUN:
            place.held = reason
            self._say(f"what became of {place.command} was not seen")
            self._tell(place, wire.Unknown(place.command, reason))

    def _begin(self, place: Place) -> bool:
        """Whether the step may be made now: the supervisor that armed it is there, and its mark is taken."""
        link = self.link
        if link is None or not link.open or link.epoch != place.epoch:
            self._fail(place, "busy", "no supervisor is connected that has armed it")
            return False
        if place.mark is not Mark.CLAIMED:
            return False
        self._mark(place, Mark.BEGUN)
        self._tell(place, wire.Begun(place.command, self._clock.now()))
        return True

    def _accept(self, place: Place, turn: str) -> None:
        if place.mark is not Mark.BEGUN:
            return
        place.held = None
        place.proof["turn"] = turn
        if place.kind == CommandKind.SEND and place.chat is not None:
            place.proof["session"] = place.chat.url
        self._mark(place, Mark.ACCEPTED)
        self._tell(place, wire.Accepted(place.command, self._clock.now(), dict(place.proof)))

    def _end(self, place: Place, ending: Ending) -> None:
        if place.mark is Mark.ACCEPTED:
            place.ending = ending
            self._mark(place, Mark.ENDED)
            self._tell(place, wire.Ended(place.command, self._clock.now(), ending, dict(place.proof)))

    # -- orders

    def _carry(self, link: Link, frame: wire.Command) -> None:
        if frame.epoch != link.epoch or link is not self.link:
            link.say(wire.Unknown(frame.command, f"it was armed by epoch {frame.epoch}"))
            return
        if frame.command in self.journal:
            self._already(link, self.journal[frame.command])
            return
        identity = frame.conversation.identity if frame.conversation is not None else ""
        place = self.journal[frame.command] = Place(
            frame.command,
            Mark.CLAIMED,
            frame.kind,
            frame.task,
            frame.epoch,
            identity,
            frame.marker,
            self._clock.now(),
            self.loop.time(),
            str(frame.payload.get("target", "")),
            chat=self.site.chats.get(identity),
        )
        link.say(wire.Received(frame.command))
        self._in_hand.add(place.command)
        self.group.create_task(self._carried(place, frame))

    def _already(self, link: Link, place: Place) -> None:
        if place.mark in (Mark.FAILED, Mark.REVOKED):
            link.say(wire.Failed(place.command, self._clock.now(), place.reason or "revoked", True, place.mendable))
        elif place.mark is Mark.ACCEPTED:
            link.say(wire.Accepted(place.command, self._clock.now(), dict(place.proof)))
        else:
            link.say(wire.Unknown(place.command, f"it is {place.mark} already"))

    async def _carried(self, place: Place, frame: wire.Command) -> None:
        life, chance = self._life, self._chance(self._row(place))
        await asyncio.sleep(chance.uniform(0.1, 1.5))
        if life != self._life:
            return
        payload = frame.payload
        match payload.get("type"):
            case "page":
                await self._turn(place, str(payload["text"]), chance)
            case "steer":
                await self._steer(place, str(payload["text"]), chance)
            case "halt":
                self._stop(place)
            case "close":
                self._close(place, str(payload["identity"]))
            case other:
                self._fail(place, "not_able", f"this executor does not do {other}", mendable=True)
        if life == self._life:
            self._in_hand.discard(place.command)

    def _objection(self, place: Place) -> tuple[str, str, bool] | None:
        """Why the page takes no turn now."""
        chat = place.chat
        if chat is not None and chat.windows and not chat.tab:
            return "wrong_page", "several tabs show that conversation", True
        state = self.site.state(chat)
        if chat is not None and chat.typing:
            return "person", "somebody is typing there", False
        if state == "draft" and chat is not None and chat.composer == "ours":
            return None
        return None if state == "ready" else (state, f"its page is {state}", state in PERSONAL)

    async def _turn(self, place: Place, words: str, chance: Random) -> None:
        life, chat = self._life, place.chat
        if chat is not None and not chat.tab and not chat.windows:
            chat.tab, place.opened = True, True
        if (objection := self._objection(place)) is not None:
            self._fail(place, objection[0], objection[1], mendable=objection[2])
            return
        fate = chance.choices(list(FATES), list(FATES.values()))[0] if self.mishaps else "well"
        self._say(f"turn {place.command} in its page: {fate}")
        if fate == "not hydrated":
            self._fail(place, "not_hydrated", "the page did not come up")
            return
        if chat is not None:
            chat.composer = "ours"
        await asyncio.sleep(chance.uniform(0.2, 4.0))
        if fate == "draft left":
            self._fail(place, "not_verified", "the composer holds something else by now")
            return
        if fate == "reloaded":
            self.background_ends()
        if life != self._life or not self._begin(place):
            return
        if fate == "unmade" or (chat is not None and self._objection(place) is not None):
            self._fail(place, "not_verified", "Send was not pressed")
            return
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        if fate == "unsent":  # the script is gone with its leave, and pressed nothing
            self._hold(place, "its page was closed before it was seen whether the words were taken")
            return
        place.chat = chat = self.site.taken(self._row(place), chat, words)
        if life != self._life:
            return
        if fate == "unseen":
            chat.tab = False
            self._hold(place, "its page was closed before it was seen whether the words were taken")
            return
        await asyncio.sleep(chance.uniform(15.0, 200.0) if fate == "late" else chance.uniform(0.2, 3.0))
        if life != self._life:
            return
        self._accept(place, place.marker)
        if fate == "script gone":
            chat.tab = False
            return
        self._watch(place)

    async def _steer(self, place: Place, words: str, chance: Random) -> None:
        life, sent = self._life, self.journal.get(CommandId(place.target))
        chat = sent.chat if sent is not None else None
        if sent is None or chat is None or sent.mark is not Mark.ACCEPTED or not chat.tab:
            self._fail(place, "not_generating", "that turn is over, or not seen")
            return
        place.chat = chat
        fate = chance.choices(["well", "unmade", "unseen", "unsent", "late"], [76, 6, 6, 6, 6])[0]
        fate = fate if self.mishaps else "well"
        if not self._begin(place):
            return
        await asyncio.sleep(chance.uniform(0.1, 3.0))
        if life != self._life:
            return
        if fate == "unmade" or chat.working is None or chat.working.marker != sent.marker:
            self._fail(place, "not_generating", "no turn is under way")
            return
        if fate != "unsent":
            self._laws.told(self._row(place), words)
        if fate in ("unsent", "unseen"):
            self._hold(place, "its page went away before it was seen whether the words were taken")
            return
        if fate == "late":
            await asyncio.sleep(chance.uniform(12.0, 200.0))
        if life == self._life:
            self._accept(place, sent.marker)
            self._end(place, Ending(None, None, None, how=How.PAGE))

    def _stop(self, place: Place) -> None:
        sent = self.journal.get(CommandId(place.target))
        if sent is not None and sent.mark is Mark.CLAIMED:
            self._fail(sent, "busy", "it was stopped before it began")
        if sent is None or sent.mark in OVER or sent.chat is None or not sent.chat.tab:
            self._fail(place, "not_generating", "that turn is over, or not seen")
            return
        if self._begin(place):
            working = sent.chat.working
            if working is not None and working.id == sent.command:
                self.site.stopped(sent.chat)
                self._accept(sent, sent.marker)
                self._end(sent, Ending(None, None, Cut.INTERRUPT, how=How.PAGE, stop="stopped"))
            self._accept(place, sent.marker)
            self._end(place, Ending(None, None, None, how=How.PAGE))

    def _close(self, place: Place, identity: str) -> None:
        chat = self.site.chats.get(identity)
        if chat is None or not self._closable(chat):
            self._fail(place, "not_able", "no page of ours shows that conversation")
            return
        place.chat = chat
        if chat.working is not None or chat.typing or chat.composer != "empty" or chat.foreign:
            self._fail(place, "busy", "somebody or something is at work in that page")
        elif self._begin(place):
            self._laws.page_closed(chat.url)
            chat.tab = False
            self._accept(place, "")
            self._end(place, Ending(None, None, None, how=How.PAGE))

    def _closable(self, chat: Chat) -> bool:
        busy = any(one.chat is chat and one.mark not in OVER and one.kind == CommandKind.SEND for one in self._newest())
        return chat.tab and not chat.windows and not busy

    def _newest(self) -> list[Place]:
        return list(self.journal.values())

    def _revoke(self, link: Link, frame: wire.Revoke) -> None:
        if frame.epoch != link.epoch or link is not self.link:
            link.say(wire.Unknown(frame.command, f"epoch {link.epoch} leads"))
            return
        place = self.journal.get(frame.command)
        if place is not None:
            link.say(wire.TooLate(frame.command, place.mark))
            return
        place = self.journal[frame.command] = Place(frame.command, Mark.NONE, reason=frame.reason, epoch=frame.epoch)
        self._mark(place, Mark.REVOKED)
        link.say(wire.Revoked(frame.command))

    # -- watching

    def _watch(self, place: Place) -> None:
        """A script in its page sees how the turn ends."""
        chat = place.chat
        if chat is None:
            return
        if place.marker in chat.ended:
            self._saw_end(place, seen=False)
            return
        chat.heard.append(lambda: self._hears_end(place))

    def _hears_end(self, place: Place) -> None:
        self.loop.call_later(0.5, self._heard_end, place)

    def _heard_end(self, place: Place) -> None:
        if place.chat is not None and place.chat.tab:
            self._saw_end(place, seen=True)

    def _saw_end(self, place: Place, *, seen: bool) -> None:
        chat = place.chat
        if chat is None or place.mark is not Mark.ACCEPTED or place.marker not in chat.ended:
            return
        told = chat.ended[place.marker]
        signals, count = (told.signals, told.signal_count) if told is not None else ((), 0)
        hindered = told.hindered if told is not None else None
        broken = told is None or told.cut is not None or hindered is not None
        cut = Cut.VANISHED if broken or (not seen and count == 0) else None
        stop = "complete" if seen else "complete, not seen"
        self._end(place, Ending(None, None, cut, signals, count, how=How.PAGE, stop=stop))

    def _bring(self, place: Place) -> None:
        """Show the conversation of a turn under way again, to see how it goes on."""
        if self.loop.time() - self._brought.get(place.command, -AGAIN) < AGAIN:
            return
        self._brought[place.command] = self.loop.time()
        if place.chat is None:
            if place.held is None and place.mark is Mark.BEGUN:
                self._hold(place, "its page was closed before it was seen whether the words were taken")
            return
        self.loop.call_later(4.0, self._brought_back, place)

    def _brought_back(self, place: Place) -> None:
        chat = place.chat
        if chat is None or place.mark in OVER or not self.site.let_in or self.site.challenged:
            return
        chat.tab = True
        if place.mark is Mark.BEGUN:
            if place.marker not in chat.turns:
                self._hold(place, "its turn does not appear in its page")
                return
            self._accept(place, place.marker)
        self._watch(place)

    def _attended(self, place: Place) -> bool:
        if place.chat is not None and place.chat.tab and place.chat.heard and place.held is None:
            return True
        if place.mark is Mark.CLAIMED or place.kind != CommandKind.SEND:
            return False
        self._bring(place)
        return False

    # -- looking

    def _answer(self, query: int, subject: wire.Subject) -> wire.Observation:
        seen = self._look(subject.command)
        now = self._clock.now()
        return wire.Observation(subject.command, now, 0.0, Rank.PAGE, query, seen)

    def _look(self, command: CommandId) -> wire.CommandSeen:
        gone = Presence.GONE
        place = self.journal.get(command)
        if place is None:
            return wire.CommandSeen(Mark.NONE, gone, gone)
        in_hand = command in self._in_hand
        if place.mark is Mark.CLAIMED and not in_hand and self.loop.time() - place.since > UNTENDED:
            self._fail(place, "reloaded", "the browser ended it before it began")
        told = dict(place.proof)
        if place.mark in OVER:
            return wire.CommandSeen(
                place.mark, gone, gone, place.reason, place.mendable, place.ending, place.at, told, in_hand
            )
        attended = self._attended(place)
        performer = Presence.ALIVE if in_hand or attended else Presence.UNKNOWN
        working = attended and place.chat is not None and place.chat.working is not None
        agent = Presence.ALIVE if working else Presence.UNKNOWN
        mark, reason = place.mark, place.reason
        asks: tuple[Asking, ...] | None = None
        if working and place.chat is not None:
            asks = (place.chat.card,) if place.chat.card is not None else ()
        if place.mark is Mark.BEGUN and place.held is not None:
            mark, reason, performer = Mark.DAMAGED, place.held, Presence.UNKNOWN
        return wire.CommandSeen(mark, performer, agent, reason, False, None, place.at, told, in_hand, asks)

    def _answer_page(self, query: int, page: wire.Target) -> wire.Observation:
        facts = self._page_facts(page.identity)
        return wire.Observation(page.identity, self._clock.now(), 0.0, Rank.PAGE, query, facts=facts)

    def _page_facts(self, identity: str) -> dict[str, object]:
        chat = self.site.chats.get(identity)
        if chat is None:
            return {"type": "page", "shown": False}
        if chat.windows and not chat.tab:
            return {"type": "page", "shown": True, "several": True}
        if not chat.tab:
            return {"type": "page", "shown": False}
        state = self.site.state(chat)
        return {
            "type": "page",
            "shown": True,
            "site": SITE,
            "state": state,
            "generating": "yes" if chat.working is not None else "no",
            "composer": chat.composer,
            "typing": chat.typing,
            "resets": self.site.resets if state == "limit" else None,
            "foreign_turns": chat.foreign,
            "users": len(chat.turns),
            "ours": self._closable(chat),
        }

    # -- its person

    def befall(self, what: str, seconds: float, chance: Random) -> None:
        """Something happens in the browser that no supervisor has ordered."""
        chats = list(self.site.chats.values())[-12:]
        if not chats:
            return
        chat, later = chance.choice(chats), self.loop.call_later
        match what:
            case "tab closed":
                chat.tab = False
                chat.heard.clear()
            case "windows":
                chat.windows, chat.tab = 2, False
                chat.heard.clear()
                later(seconds, _shut, chat)
            case "draft":
                if chat.working is None and chat.composer == "empty":
                    chat.composer, chat.typing = "foreign", True
                    later(seconds / 2, setattr, chat, "typing", False)
                    later(seconds, _cleared, chat)
            case "own turn":
                chat.foreign += 1
            case "conversation gone":
                if chat.working is None:
                    chat.gone = True
            case _:
                raise AssertionError(what)


def _shut(chat: Chat) -> None:
    chat.windows = 0


def _cleared(chat: Chat) -> None:
    chat.typing = False
    if chat.composer == "foreign":
        chat.composer = "empty"


def _there(place: Place) -> str | None:
    return place.chat.url if place.chat is not None else place.conversation or None


__all__ = ["BROWSER", "OPEN", "Browser", "Link"]
