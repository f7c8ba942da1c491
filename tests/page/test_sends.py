"""A turn is put into a real page: written whole, submitted once, seen to be taken, seen to its end."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from tests.page.conftest import Opened
from tests.support.lab import Answer, Lab, Past
from tests.support.page_script import Command, Script

BLOCK = "All done.\n\n```tenuto\nstatus: working\nsummary: one step\n```\n"


@pytest.mark.parametrize(
    "variant,send_when_empty,code",
    [
        ("section", "absent", "editor"),
        ("article", "disabled", "labelled"),
        ("fallback", "absent", "nameless"),
        ("roles", "disabled", "labelled"),
    ],
)
def test_a_turn_goes_through_in_every_markup(
    lab: Lab, opened: Opened, variant: str, send_when_empty: str, code: str
) -> None:
    """DBR-122, DBR-113: with and without Send beside an empty composer; code in editors of its own."""
    lab.look(variant=variant, send_when_empty=send_when_empty, code=code)
    lab.answers(lambda prompt: Answer(BLOCK))
    script, address = opened()
    command = script.send(address, "first line\n\n  second, indented: <b>x</b> & ```code```\nthird")
    assert command.answer == {"taken": True}
    end = command.over()
    assert command.steps() == ["composing", "begun", "accepted", "ended"]
    (turn,) = lab.accepted()
    assert turn.text.startswith(command.marker)
    assert "  second, indented: <b>x</b> & ```code```\nthird" in turn.text
    assert command.wait("accepted")["url"] == address
    assert end["ending"]["stop"] == "complete"
    assert end["ending"]["seen"]
    assert end["ending"]["signals"] == ["status: working\nsummary: one step"]
    assert end["ending"]["signal_count"] == 1
    assert end["facts"]["markers"] == {command.marker: 1}
    assert end["facts"]["state"] == "ready"
    assert lab.pressed() == []


def test_a_new_conversation_is_bound_by_its_lasting_address(lab: Lab, page: Page) -> None:
    page.goto(lab.url())
    page.wait_for_selector("#prompt-textarea[data-ready]")
    script = Script(page)
    assert script.look()["url_kind"] == "new"
    command = script.send(None)
    end = command.over()
    (turn,) = lab.accepted()
    assert end["tell"] == "ended"
    assert end["url"] == lab.conversation_url(turn.conversation)
    bound = [one["facts"]["conversation"] for one in script.told()] + [one.get("url") for one in script.told()]
    assert not [url for url in bound if url and "WEB" in url], "a transient address is never told as one"


@pytest.mark.parametrize(
    "step,answer", [("composing", {"ok": False, "reason": "journal"}), ("begun", {"ok": False, "reason": "away"})]
)
def test_nothing_is_done_without_leave(
    lab: Lab, opened: Opened, page: Page, step: str, answer: dict[str, object]
) -> None:
    script, address = opened()
    script.answer(step, answer)
    command = script.send(address)
    command.wait(step)
    page.wait_for_timeout(400)
    assert command.steps()[-1] == step
    assert lab.posts() == 0
    written = page.locator("#prompt-textarea").inner_text().strip()
    assert bool(written) == (step == "begun"), "before `composing` is answered nothing is written"


def test_the_press_comes_after_the_answer(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    script.answer("begun", {"ok": True, "after": True})
    command = script.send(address)
    command.wait("begun")
    assert lab.posts() == 0
    script.release()
    assert command.over()["tell"] == "ended"
    assert len(lab.accepted()) == 1


def test_the_last_look_forbids_the_press(lab: Lab, opened: Opened, page: Page) -> None:
    script, address = opened()
    script.answer("begun", {"ok": True, "after": True})
    command = script.send(address)
    command.wait("begun")
    lab.show(dialog="Something to be read first")
    page.wait_for_selector("[role=dialog]")
    script.release()
    assert command.over()["why"] == "dialog"
    assert lab.posts() == 0
    assert page.locator("#prompt-textarea").inner_text().strip() == "", "our draft was taken out again"


def test_one_command_writes_at_a_time(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    script.answer("begun", {"ok": True, "after": True})
    first = script.send(address)
    first.wait("begun")
    assert script.send(address).answer["taken"] is False
    script.release()
    first.over()
    assert len(lab.accepted()) == 1


def test_the_same_order_twice_is_one(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    command = script.send(address)
    assert script.order(**command.given) == {"taken": True}
    command.over()
    assert len(lab.accepted()) == 1


def test_an_orphan_falls_silent(lab: Lab, opened: Opened, page: Page) -> None:
    script, address = opened()
    script.answer("begun", {"ok": True, "after": True})
    command = script.send(address)
    command.wait("begun")
    page.evaluate("() => { window.tenuto.orphan = true; }")
    script.release()
    page.wait_for_timeout(300)
    assert lab.posts() == 0
    assert script.order(order="look", markers=[])["taken"] is False


def test_a_long_turn_is_written_whole(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    words = "\n".join(f"{number}: " + "word " * 40 for number in range(200))
    command = script.send(address, words)
    command.over()
    (turn,) = lab.accepted()
    assert turn.text.split() == command.given["text"].split()


def test_what_is_over_the_limit_is_refused_at_once(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    assert script.send(address, "x" * 60_000).over()["why"] == "not_able"
    assert lab.posts() == 0


def test_steering_adds_a_turn_to_the_one_under_way(lab: Lab, opened: Opened) -> None:
    lab.answers(lambda prompt: Answer("x" * 900, pieces=900, pace=0.1) if "aside" not in prompt else Answer(BLOCK))
    script, address = opened()
    first = script.send(address)
    first.wait("accepted")
    order = {**first.given, "order": "steer", "command": "s1", "marker": "[tenuto:aside1]", "turn": first.marker,
             "text": "[tenuto:aside1]\nan aside"}  # fmt: skip
    steer = Command(script, order, script.order(**order))
    assert steer.wait("accepted", "held", "refused")["tell"] == "accepted"
    assert [turn.steer for turn in lab.accepted()] == [False, True]
    end = first.over()
    assert end["ending"]["signal_count"] == 1, "the answer to the aside is part of the turn"
    assert end["facts"]["foreign_turns"] == 0


@pytest.mark.parametrize("steerable", [True, False])
def test_steering_without_send_is_by_enter_once(lab: Lab, opened: Opened, steerable: bool) -> None:
    lab.answers(lambda prompt: Answer("x" * 900, pieces=900, pace=0.1))
    lab.look(steerable=steerable, send_missing=False)
    script, address = opened()
    first = script.send(address)
    first.wait("accepted")
    order = {**first.given, "order": "steer", "command": "s2", "marker": "[tenuto:aside2]", "turn": first.marker,
             "text": "[tenuto:aside2]\nan aside"}  # fmt: skip
    assert Command(script, order, script.order(**order)).wait("accepted", "held", "refused")["tell"] == "accepted"
    assert len(lab.accepted()) == 2


def test_steering_needs_our_own_turn_under_way(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    order = {"order": "steer", "command": "s3", "marker": "[tenuto:aside3]", "turn": "[tenuto:none]",
             "text": "[tenuto:aside3]\nan aside",
             "fence": {"conversation": address, "ours": [], "patience": 500, "acceptance": 500}}  # fmt: skip
    assert Command(script, order, script.order(**order)).over()["why"] == "not_generating"
    assert lab.posts() == 0


def test_stop_is_pressed_once_when_asked(lab: Lab, opened: Opened) -> None:
    lab.answers(lambda prompt: Answer("x" * 900, pieces=900, pace=0.1))
    script, address = opened()
    first = script.send(address)
    first.wait("accepted")
    order = {"order": "stop", "command": "p1", "turn": first.marker, "fence": first.given["fence"]}
    stop = Command(script, order, script.order(**order))
    assert stop.over()["ending"]["stop"] == "stopped"
    assert stop.steps() == ["begun", "ended"]
    assert first.over()["tell"] == "ended"
    assert len(lab.stops()) == 1
    assert lab.pressed() == []


def stopping(script: Script, of: Command) -> Command:
    """The order to press Stop for the turn of that command."""
    order = {"order": "stop", "command": f"stop-{of.name}", "turn": of.marker, "fence": of.given["fence"]}
    return Command(script, order, script.order(**order))


def test_stop_is_pressed_for_our_own_turn_alone(lab: Lab, opened: Opened, page: Page) -> None:
    """A person's turn that came after ours is theirs, and its answer goes on."""
    script, address = opened()
    first = script.send(address)
    first.over()
    lab.answers(lambda prompt: Answer("y" * 90, pieces=90, pace=1.0))
    page.locator("#prompt-textarea").click()
    page.keyboard.type("my own question")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-testid=stop-button]")
    assert stopping(script, first).over()["why"] == "not_generating"
    assert lab.stops() == []


def test_a_stop_that_went_away_meanwhile_is_not_pressed_elsewhere(lab: Lab, opened: Opened, page: Page) -> None:
    """The last look is after leave was given; what was not pressed is told as that, by the script that had leave."""
    lab.fault("stall")
    lab.answers(lambda prompt: Answer("z" * 40))
    script, address = opened()
    first = script.send(address)
    first.wait("accepted")
    script.answer("begun", {"ok": True, "after": True})
    stop = stopping(script, first)
    stop.wait("begun")
    lab.resume()
    page.wait_for_selector("[data-testid=stop-button]", state="detached")
    first.wait("ended")
    script.release()
    assert stop.over()["why"] == "not_generating"
    assert stop.steps() == ["begun", "refused"]
    assert lab.stops() == []
    assert lab.pressed() == []


def test_a_seeded_past_is_no_answer_of_ours(lab: Lab, opened: Opened) -> None:
    """DBR-099: what was there before the turn is never taken for its answer."""
    lab.answers(lambda prompt: Answer("short", pieces=2, pace=0.6))
    script, address = opened([Past("user", "one"), Past("assistant", BLOCK)])
    end = script.send(address).over()
    assert end["ending"]["signal_count"] == 0
    assert end["ending"]["seen"]
