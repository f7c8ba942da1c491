"""Pages that are watched from outside, as a caller meets them: listed, watched, shown, holding a send, let go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import OPERATOR, World, world

from tenuto.config import load
from tenuto.model.evidence import Observation, Rank
from tenuto.model.faults import Mistake
from tenuto.model.tools import Defect, Flaw, ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.surfaces import verbs

S = timedelta(seconds=1)
URL = "https://chat.example/c/1"


@dataclass
class Desk:
    """A witness that says what it is told to say; from its look `from_look` on, `then`."""

    it: World
    said: dict[str, Any] = field(default_factory=dict)
    then: dict[str, Any] = field(default_factory=dict)
    from_look: int = 0
    looks: int = 0

    async def look(self, binding: ToolBinding) -> Observation:
        self.looks += 1
        said = self.then if self.from_look and self.looks >= self.from_look else self.said
        facts = replace(WatchedFacts(binding, shown=True, window="w-1", generating=False), **said)
        return Observation("accessibility", Rank.OUTSIDE, binding.subject, self.it.clock.now(), facts)

    async def shown(self) -> tuple[ShownPage, ...]:
        if self.said.get("shown", True) is None:
            raise Mistake("no browser answers")
        return (ShownPage("desk", "w-1", URL, "browser", 7),)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        made.cycle.witnesses = {"desk": Desk(made)}
        yield made


def desk(it: World) -> Desk:
    found = it.cycle.witnesses["desk"]
    assert isinstance(found, Desk)
    return found


async def call(it: World, name: str, **params: Any) -> Any:
    return await verbs.call(it.desk, OPERATOR, name, params, None)


async def test_a_page_that_generates_holds_a_send_and_lets_it_go(it: World) -> None:
    desk(it).said = {"generating": True}
    task = await it.create()
    await call(it, "page.watch", task=task, url=URL, by="desk", window="w-1")
    rest = await it.settle(task)
    assert rest is not None
    assert rest.because is not None
    assert rest.because.rung == "page"
    assert not it.executor.turns
    told = await call(it, "observe.list", task=task)
    (page,) = told["pages"]
    assert (page["by"], page["url"], page["window"], page["generating"]) == ("desk", URL, "w-1", True)
    assert (await call(it, "task.show", task=task))["task"]["pages"] == [{"by": "desk", "url": URL, "window": "w-1"}]
    assert any(row["source"] == "accessibility" and row["rank"] == 3 for row in told["observations"])
    desk(it).said = {"generating": False}
    planned = await call(it, "dispatch.plan", task=task)
    assert planned["because"] is None
    assert any(member.startswith("watched ") for member in planned["members"])


async def test_a_page_that_begins_between_the_commit_and_the_hand_over_stops_the_hand_over(it: World) -> None:
    task = await it.create()
    await call(it, "page.watch", task=task, url=URL, by="desk")
    watcher = desk(it)
    for look in range(2, 12):
        watcher.looks, watcher.from_look, watcher.then = 0, look, {"generating": True}
        await it.settle(task)
        if it.desk.commands(task_id=task):
            break
        it.clock.move(60 * S)
    (command,) = it.desk.commands(task_id=task)
    assert command.state == "failed", "proven that nothing happened"
    assert not it.executor.turns
    (attempt,) = it.desk.attempts(task)
    assert attempt.outcome == "unsent"


async def test_what_cannot_be_seen_is_said_and_holds(it: World) -> None:
    desk(it).said = {"shown": None, "defects": (Defect(Flaw.UNREADABLE, "no browser answers"),)}
    task = await it.create()
    await call(it, "page.watch", task=task, url=URL, by="desk")
    await it.settle(task)
    explained = await call(it, "task.explain", task=task)
    assert "no browser answers" in explained["because"]["sentence"]
    listed = await call(it, "page.list")
    assert listed["pages"] == []
    assert listed["unasked"] == ["desk: no browser answers"]
    await call(it, "page.unwatch", task=task, url=URL, by="desk")
    planned = await call(it, "dispatch.plan", task=task)
    assert planned["because"] is None


async def test_only_what_there_is_can_be_watched(it: World) -> None:
    task = await it.create()
    with pytest.raises(Mistake, match="no page witness is called web"):
        await call(it, "page.watch", task=task, url=URL, by="web")
    for wrong in ({"url": "file:///etc/passwd"}, {"url": "https://a b"}, {"url": URL, "window": "a window"}):
        with pytest.raises(Mistake):
            await call(it, "page.watch", task=task, by="desk", **wrong)
    for secret in (
        "https://sam:hush@chat.example/c/1",
        "http://sam@chat.example",
        "https:///sam:hush@chat.example?a=1",
    ):
        with pytest.raises(Mistake, match="leave out") as told:
            await call(it, "page.watch", task=task, by="desk", url=secret)
        assert (told.value.field, "hush" in str(told.value)) == ("url", False)
    for plain in ("https://chat.example/@sam", "https://chat.example/c/1?to=sam@example.org", "https://chat.example#@"):
        await call(it, "page.watch", task=task, by="desk", url=plain)
    await call(it, "page.unwatch", task=task)
    with pytest.raises(Mistake, match="its witness"):
        await call(it, "page.unwatch", task=task, url=URL)
    listed = await call(it, "page.list")
    assert listed["pages"] == [{"by": "desk", "window": "w-1", "url": URL, "program": "browser", "pid": 7}]


@pytest.mark.parametrize(
    ("given", "good"),
    [
        ("accessibility", True),
        ("accessibility:unix:path=/run/user/1000/bus", True),
        ("accessibility:unix:abstract=/tmp/.bus:0", True),
        ("accessibility:tcp:host=example.org", False),
        ("accessibility:unix:path=/run/bus,guid=0", False),
        ("accessibility:unix:path=/run/bus,unix:path=/run/other", False),
        ("accessibility:unix:path=/run=bus", False),
        ("accessibility:unix:path=", False),
        ("devtools:127.0.0.1:9222", True),
        ("devtools:localhost:9222", True),
        ("devtools:[::1]:65535", True),
        ("devtools:127.0.0.1:65536", False),
        ("devtools:127.0.0.1:99999", False),
        ("devtools:127.0.0.1:0", False),
        ("devtools:example.org:9222", False),
        ("devtools", False),
        ("browser", False),
        ("", False),
    ],
)
def test_a_witness_is_on_this_machine(tmp_path: Path, given: str, good: bool) -> None:
    (tmp_path / "config.toml").write_text(f'[page_witnesses]\ndesk = "{given}"\n')
    environ = {"TENUTO_HOME": str(tmp_path)}
    if good:
        assert load(environ).page_witnesses["desk"].kind in ("accessibility", "devtools")
        return
    with pytest.raises(Mistake) as told:
        load(environ)
    assert told.value.field == "page_witnesses.desk"
