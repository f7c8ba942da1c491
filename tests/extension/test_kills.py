"""Browser, background, tab and supervisor are killed at random moments; the site's server counts what it accepted.

No command is ever accepted twice. A task comes to its end, or what became of its last turn stands in attention.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.extension.browsers import until
from tests.extension.chats import OVER, Chats, answering, chats

pytestmark = pytest.mark.timeout(600)
VICTIMS = ("background", "tab", "supervisor", "browser")


def kill(it: Chats, victim: str) -> None:
    """End one of them as a crash does, and let it begin again where somebody has to begin it."""
    match victim:
        case "background":
            it.browser.kill_background()
        case "tab":
            it.browser.close_tabs("chatgpt.com/")
        case "supervisor":
            it.kill_supervisor()
            it.start_supervisor()
        case _:
            it.browser.kill()
            it.browser.start()
            until("the extension", it.connected)


def killed(it: Chats, victim: str, chance: random.Random) -> bool:
    """One task with one kill in it; whether it came to its end by itself."""
    it.lab.reset()
    it.lab.answers(answering(2, pieces=10, pace=0.1))
    task = it.run(f"Two steps, and the {victim} is killed.")
    if chance.random() < 0.7:
        it.lab.wait_accepted(1)
    time.sleep(chance.random() * 3)
    kill(it, victim)

    def settled() -> bool:
        if it.state(task) in OVER:
            return True
        mine = [row for row in it.attention() if row["task"] == task]
        return bool(mine)

    until(f"an end or a question after {victim} was killed", settled, 300)
    it.judge()
    taken = it.accepted_of(task)
    if it.state(task) == "completed":
        assert len(taken) >= 1
        return True
    # It is a person's: what is doubtful is named, and nothing more was sent.
    assert len(taken) <= 2
    it.home.tenuto("cancel", task)
    return False


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_a_few_kills(kind: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    with chats(tmp_path, kind) as it:
        for victim in ("background", "tab"):
            killed(it, victim, chance)


@pytest.mark.prove
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("kind", ["chromium", "firefox"])
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_hundred_kills(kind: str, victim: str, tmp_path: Path) -> None:
    chance = random.Random(f"{kind} {victim}")
    with chats(tmp_path, kind) as it:
        ended = sum(killed(it, victim, chance) for _ in range(100))
    assert ended >= 50, f"only {ended} of 100 came to their end by themselves"


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["chromium"])
def test_fifty_conversations_in_one_browser(kind: str, tmp_path: Path) -> None:
    with chats(tmp_path, kind) as it:
        it.lab.answers(answering(1))
        tasks = [it.run(f"Chat number {number}.") for number in range(50)]
        for task in tasks:
            assert it.ends(task, 1800) == "completed"
        counted = it.judge()
        assert len(counted) == 50
        assert len({turn.conversation for turn in it.lab.accepted()}) == 50
