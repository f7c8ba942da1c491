"""Browser, background, tabs and supervisor are killed at random moments; the site's server counts what it accepted.

No command is ever accepted twice, none is believed to have happened that did not, or the other way round. Every task
comes to its end, or what became of its last turn stands in attention.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extension.browsers import until
from tests.extension.chats import Chats, answering, chats
from tests.extension.storm import VICTIMS, Told, storm

SEED = 7
both = pytest.mark.parametrize("kind", ["chromium", "firefox"])


def kept(told: Told) -> None:
    """Every promise was kept. A task that is still on its way when patience ends is slow before it is wrong."""
    print(told)
    assert (told.doubled, told.lost, told.false, told.pressed) == ({}, [], [], [])
    if told.stuck:
        raise TimeoutError(f"not at an end, and in nobody's attention: {told.stuck}")


@pytest.mark.prove
@pytest.mark.timeout(1800)
@both
def test_a_few_kills(kind: str, tmp_path: Path) -> None:
    kept(storm(tmp_path, kind, SEED, dict.fromkeys(VICTIMS, 2), at_once=3, seconds=600))


@pytest.mark.prove
@pytest.mark.timeout(6 * 3600)
@both
def test_a_hundred_kills_of_each(kind: str, tmp_path: Path) -> None:
    told = storm(tmp_path, kind, SEED, dict.fromkeys(VICTIMS, 100), at_once=8, seconds=5 * 3600)
    kept(told)
    assert set(told.kills.values()) == {100}
    assert told.ended["completed"] >= 20, "they are killed, and they come to their ends"


@pytest.mark.prove
@pytest.mark.timeout(2 * 3600)
@both
def test_fifty_conversations_in_one_browser(kind: str, tmp_path: Path) -> None:
    """All of them stand in mid turn at once, and all of them end."""
    with chats(tmp_path, kind, "slots = 60\n") as it:
        it.lab.answers(answering(1))
        it.lab.fault("stall", times=50)
        tasks = [it.begin(f"Chat number {number}.") for number in range(50)]
        it.lab.wait_accepted(50, patience=3600)
        assert len({turn.conversation for turn in it.lab.accepted()}) == 50
        until("the end of all", lambda: over(it, tasks), 1800)
        assert {it.state(task) for task in tasks} == {"completed"}
        assert len(it.judge()) == 50


def over(it: Chats, tasks: list[str]) -> bool:
    """Whether none of them is left; what stands is let go on."""
    it.lab.resume()
    return not {row["id"] for row in it.home.json("tasks", "--unfinished")["tasks"]} & set(tasks)
