"""Real browsers with the real extension drive tasks in a chat site of our own; its server counts what it accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.extension.browsers import until
from tests.extension.chats import Chats, answering, chats
from tests.support.lab import Answer, Past

pytestmark = pytest.mark.timeout(600)


both = pytest.mark.parametrize("world", ["chromium", "firefox"], indirect=True)
either = pytest.mark.parametrize("world", ["chromium", pytest.param("firefox", marks=pytest.mark.prove)], indirect=True)
"""In one family in everyday runs, in both in long ones."""

one = pytest.mark.parametrize("world", ["chromium"], indirect=True)
"""What hangs on the supervisor and the site, and not on the browser's family."""


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chats]:
    with chats(tmp_path_factory.mktemp("chat"), request.param) as world:
        yield world


@pytest.fixture
def it(world: Chats) -> Iterator[Chats]:
    world.lab.reset()
    yield world
    world.judge()
    world.leave_nothing()


@both
def test_a_task_is_driven_to_its_end_in_one_conversation(it: Chats) -> None:
    it.lab.answers(answering(3))
    task = it.run("Do three steps.")
    assert it.ends(task) == "completed"
    turns = it.lab.accepted()
    assert len(turns) == 3
    assert len({turn.conversation for turn in turns}) == 1
    (talk,) = it.shown(task)["conversations"]
    assert talk["identity"] == it.lab.conversation_url(turns[0].conversation)
    assert it.lab.posts() == 3
    until("its page to be closed", lambda: it.commands(task, "page_close"))
    until("the close to be seen", lambda: it.commands(task, "page_close")[0]["state"] == "acknowledged")
    assert not any(turns[0].conversation in tab for tab in it.browser.tabs())


@either
def test_the_background_is_ended_in_mid_turn_and_the_turn_is_seen_to_its_end(it: Chats) -> None:
    it.lab.answers(answering(2, pieces=30, pace=0.1))
    task = it.run("Work while the background is ended.")
    it.lab.wait_accepted(1)
    it.browser.kill_background()
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 2


@either
def test_a_tab_that_is_closed_in_mid_turn_is_shown_again_and_nothing_is_sent_twice(it: Chats) -> None:
    it.lab.answers(answering(2, pieces=40, pace=0.1))
    task = it.run("Work while the tab is closed.")
    (turn,) = it.lab.wait_accepted(1)
    until("the address", lambda: any("/c/" in one["identity"] for one in it.shown(task)["conversations"]))
    assert it.browser.close_tabs(turn.conversation) == 1
    assert it.ends(task) == "completed"


@pytest.mark.prove
@both
def test_a_lost_answer_is_never_sent_again(it: Chats) -> None:
    it.lab.answers(answering(1))
    it.lab.fault("lose_answer")
    task = it.run("The site takes it and does not say so.")
    until(
        "a doubt or an end",
        lambda: it.state(task) == "completed" or any(row["task"] == task for row in it.attention()),
        180,
    )
    assert len(it.accepted_of(task)) == 1


@one
def test_who_is_logged_out_is_asked_and_no_turn_is_spent(it: Chats) -> None:
    it.lab.answers(answering(1))
    it.lab.login(False)
    task = it.run("Nobody is logged in.")
    until(
        "the question", lambda: any(row["task"] == task and "log in" in row["question"] for row in it.attention()), 120
    )
    assert it.lab.posts() == 0
    assert it.shown(task)["task"]["attempts"] == 0
    it.lab.login(True)
    page = it.browser.shown("chatgpt.com")
    page.run("(location.reload(), true)")
    assert it.ends(task) == "completed"


@one
def test_an_adopted_chat_that_is_full_is_left_for_a_fresh_one(it: Chats) -> None:
    words = "You've reached the maximum length for this conversation, but you can keep talking in a new chat."
    identity = it.lab.seed([Past("user", "one"), Past("assistant", "", error=words, button="Start new chat")])
    it.lab.answers(answering(1))
    url = it.lab.conversation_url(identity)
    task = it.home.tenuto("adopt", url, "--cwd", str(it.home.work), "--auto").strip()
    assert it.ends(task) == "completed"
    (turn,) = it.accepted_of(task)
    assert turn.conversation != identity
    assert "Go on with the work" in turn.text


@one
def test_a_chat_that_is_there_is_adopted_and_gone_on_with(it: Chats) -> None:
    identity = it.lab.seed([Past("user", "one"), Past("assistant", "two")])
    it.lab.answers(answering(1))
    task = it.home.tenuto("adopt", it.lab.conversation_url(identity), "--cwd", str(it.home.work)).strip()
    assert it.lab.posts() == 0
    it.home.tenuto("continue", task)
    assert it.ends(task) == "completed"
    (turn,) = it.accepted_of(task)
    assert turn.conversation == identity
    until("the task to rest", lambda: it.shown(task)["task"]["look_at"] is None)
    assert it.commands(task, "page_close") == []  # it is a person's chat, whoever opened its page
    assert any(identity in tab for tab in it.browser.tabs())


@one
def test_the_supervisor_is_killed_in_mid_turn_and_comes_back(it: Chats) -> None:
    it.lab.answers(answering(2, pieces=40, pace=0.1))
    task = it.run("Work while the supervisor is killed.")
    it.lab.wait_accepted(1)
    it.kill_supervisor()
    it.start_supervisor()
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 2


@either
def test_the_browser_is_killed_in_mid_turn_and_begins_again(it: Chats) -> None:
    it.lab.answers(answering(2, pieces=60, pace=0.1))
    task = it.run("Work while the browser is killed.")
    it.lab.wait_accepted(1)
    until("the address", lambda: any("/c/" in one["identity"] for one in it.shown(task)["conversations"]))
    it.browser.kill()
    it.browser.start()
    until("the extension", it.connected)
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 2


@one
def test_words_are_put_into_a_turn_under_way_and_acknowledged_by_it(it: Chats) -> None:
    done = answering(1)
    it.lab.answers(lambda prompt: done(prompt) if "Mind the gap." in prompt else Answer("First I look around. " * 20))
    it.lab.fault("stall")
    task = it.run("Take what is said in between.")
    it.lab.wait_accepted(1)
    until("the turn", lambda: [one["state"] for one in it.commands(task)] == ["acknowledged"])
    it.home.tenuto(
        "message", "send", task, "--policy", "steer_now", "--key", "words-1", "--file", "-", text="Mind the gap."
    )
    turns = it.lab.wait_accepted(2)
    assert [turn.steer for turn in turns] == [False, True]
    assert "Mind the gap." in turns[1].text
    assert turns[0].conversation == turns[1].conversation
    assert it.ends(task) == "completed"
    assert [one["state"] for one in it.commands(task, "steer")] == ["acknowledged"]
    assert len(it.commands(task)) == 1


def stopped(it: Chats, meanwhile: Callable[[], None]) -> None:
    """Stop is pressed once for the turn of a task that was stopped, and nothing else of the site's."""
    it.lab.answers(lambda prompt: Answer("On and on. " * 20))
    it.lab.fault("stall")
    task = it.run("Write until you are stopped.")
    (turn,) = it.lab.wait_accepted(1)
    until("the turn", lambda: [one["state"] for one in it.commands(task)] == ["acknowledged"])
    meanwhile()
    it.home.tenuto("cancel", task)
    until("the stop", lambda: [one["state"] for one in it.commands(task, "interrupt")] == ["acknowledged"])
    assert not it.lab.generating(turn.conversation)
    assert it.lab.stops() == [turn.conversation]
    (attempt,) = until("the turn's end", lambda: [row for row in it.shown(task)["attempts"] if row["state"] == "ended"])
    assert attempt["number"] == 1
    assert it.lab.posts() == 1


@either
def test_a_task_that_is_stopped_has_its_answer_stopped_by_one_press(it: Chats) -> None:
    stopped(it, lambda: None)


@pytest.mark.prove
@both
@pytest.mark.parametrize("victim", ["background", "supervisor"])
def test_an_answer_is_stopped_once_whoever_was_killed_before(it: Chats, victim: str) -> None:
    def killed() -> None:
        if victim == "background":
            it.browser.kill_background()
        else:
            it.kill_supervisor()
            it.start_supervisor()

    stopped(it, killed)


@either
def test_a_run_whose_chat_went_silent_is_asked_about_once_and_looked_after(it: Chats) -> None:
    """The extension sees nothing move any more and asks; the supervisor counts for itself, and wakes its task."""
    it.lab.answers(answering(2))
    bounds = ("dead-man=1", "dead-man-ask=2", "dead-man-after=4", "idle-delay=3600")
    task = it.run("Fall silent after one step.", *(word for one in bounds for word in ("--policy", one)))
    until("the first turn's end", lambda: [row["state"] for row in it.shown(task)["attempts"]] == ["ended"])
    until("the wake for another", lambda: it.shown(task)["wakes"])
    # What is to go on by itself is lost, as by a fault of ours.
    it.home.tenuto("stop")
    it.forget_wakes(task)
    it.home.tenuto("start")
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 2
    told = it.home.json("events", "--limit", "500")["events"]
    run = it.shown(task)["task"]["run"]
    # Asked before the supervisor has counted for itself it says no, as often as that is; it grants once.
    granted = [one["kind"] for one in told if one["run"] == run and one["kind"] == "run.dead_man"]
    assert len(granted) == 1


@one
def test_a_card_in_mid_turn_is_its_persons_and_nothing_is_pressed(it: Chats) -> None:
    it.lab.answers(answering(1))
    it.lab.fault("approval", cards=1)
    task = it.run("Wait for leave.")
    asked = "asks for approval"
    until("the question", lambda: any(row["task"] == task and asked in row["question"] for row in it.attention()))
    assert it.state(task) == "active"
    it.lab.approve()
    assert it.ends(task) == "completed"
    assert not any(row["task"] == task for row in it.attention())
