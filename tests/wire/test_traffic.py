"""The clock of traffic, as it comes over the wire: when something came from a program or a page, never what."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.support import builders as b
from tests.wire.frames import EXAMPLES
from tests.wire.pair import NAME, End, paired, until
from tests.wire.test_bridge import frame, hello, ready

from tenuto.model.command import Command
from tenuto.model.evidence import CommandFacts, Mark, PageFacts, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.transports import wire
from tenuto.transports.executor_side.carrying import Carrying, Doing
from tenuto.transports.pages import PageExecutor
from tenuto.transports.remote import heard

pytestmark = pytest.mark.anyio

PAGE = "https://chat.example/c/1"


async def test_what_a_host_hears_of_its_program_moves_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet: list[float | None] = [None]
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        assert isinstance(it.executor.carrying, Carrying)
        monkeypatch.setattr(it.executor.carrying, "_doing", lambda command: Doing(quiet=quiet[0]))
        await it.joined()
        task_id = await it.create()
        await it.cycle.serve(task_id)
        await until(lambda: bool(it.turns.going))
        assert (await it.desk.explain(task_id)).clocks.network is None, "nobody heard anything yet"
        for told in (900.0, 7.0):
            quiet[0] = told
            clocks = (await it.desk.explain(task_id)).clocks
            assert clocks.network is not None
            late = it.clock.now() - timedelta(seconds=told) - clocks.network
            assert timedelta(0) <= late < timedelta(seconds=60), "how long the look took is no silence"
            assert clocks.progressed is None, "traffic is no progress"
        sightings = it.ledger.sightings(task_id, 100)
        await it.cycle.serve(task_id)
        assert it.ledger.sightings(task_id, 100) == sightings, "that something stirred is never a row"


def test_a_silence_without_measure_says_nothing() -> None:
    facts = CommandFacts(CommandId("c-1"), None, Mark.ACCEPTED, Presence.ALIVE, Presence.ALIVE)
    assert heard(facts, None, b.NOW).heard_at is None
    assert heard(facts, -1.0, b.NOW).heard_at is None
    assert heard(facts, 1e9, b.NOW).heard_at is None
    assert heard(facts, 3.0, b.NOW).heard_at == b.NOW - 3 * b.S


def shown(digest: str, generating: str, age: float) -> wire.Observation:
    made = EXAMPLES["observation"]
    assert isinstance(made, wire.Observation)
    facts = {"type": "page", "shown": True, "state": "generating", "generating": generating}
    return replace(made, subject=PAGE, age=age, rank=Rank.PAGE, query=None, command=None, facts=facts, digest=digest)


async def asked(end: End, page: PageExecutor, command: Command, accepted: datetime) -> datetime | None:
    """What a look at a command says of its traffic, where its extension says when it was accepted."""
    looking = asyncio.create_task(page.look(command))
    query = await frame(end)
    assert isinstance(query, wire.Inquire)
    told = wire.CommandSeen(Mark.ACCEPTED, Presence.ALIVE, Presence.ALIVE, marked_at=accepted)
    answer = replace(shown("", "yes", 0.0), subject=command.id, query=query.query, command=told, facts={}, digest=None)
    await end.send(wire.dump(answer))
    facts = (await looking).facts
    assert isinstance(facts, CommandFacts)
    return facts.heard_at


async def test_a_page_that_grows_while_it_generates_moves_the_clock_of_its_turn(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        end = await ready(it, hello(it))
        page = PageExecutor(it.bridge, NAME, lambda site: None)
        for digest, age in (("one", 30.0), ("two", 20.0), ("two", 5.0)):
            await end.send(wire.dump(shown(digest, "yes", age)))
        stirring = it.bridge.known(NAME).stirring
        grew = it.clock.now() - timedelta(seconds=20)
        await until(lambda: stirring.of(PAGE).grew_at == grew)
        command = replace(b.SEND, scopes=(f"conversation:{PAGE}",), conversation_id=b.TALK.id, place=None)
        assert await asked(end, page, command, grew - b.S) == grew
        assert await asked(end, page, command, grew + b.S) is None, "that was before the turn"
        other = replace(command, scopes=("conversation:https://chat.example/c/2",))
        assert await asked(end, page, other, grew - b.S) is None, "that was another page"
        looking = asyncio.create_task(page.page(replace(b.TALK, identity=PAGE)))
        query = await frame(end)
        assert isinstance(query, wire.Inquire)
        await end.send(wire.dump(replace(shown("three", "no", 0.0), query=query.query)))
        facts = (await looking).facts
        assert isinstance(facts, PageFacts)
        assert (facts.changed_at, facts.grew_at) == (it.clock.now(), it.clock.now())
