"""The site lies, a turn at a time: never two accepted for one command, and nothing doubtful is called done."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page
from tests.page.conftest import Opened
from tests.support.lab import Answer, Lab, Past
from tests.support.page_script import PATIENCE, Command, Script

BLOCK = "Work.\n\n```tenuto\nstatus: working\nsummary: more\n```\n"
CARD = "Message delivery timed out. Please try again."


def watching(script: Script, of: Command, since: str, **fence: object) -> Command:
    """The order that follows a reload: go on seeing what became of that command."""
    order = {
        "order": "watch", "command": of.name, "marker": of.marker, "since": since, "text_digest": of.digest,
        "fence": {**of.given["fence"], **fence}, "text": of.given["text"],
    }  # fmt: skip
    return Command(script, order, script.order(**order))


def test_accepted_late_is_accepted(lab: Lab, opened: Opened) -> None:
    """BR-026: what is not drawn yet has not failed."""
    lab.fault("accept_late", seconds=1.5)
    script, address = opened()
    command = script.send(address)
    assert command.over()["tell"] == "ended"
    assert command.steps() == ["composing", "begun", "accepted", "ended"]
    assert len(lab.accepted()) == 1


def test_a_placeholder_is_not_a_turn(lab: Lab, opened: Opened) -> None:
    """A turn drawn before the site took it proves nothing: too late is held, and never sent again."""
    lab.fault("accept_late", seconds=12)
    script, address = opened()
    command = script.send(address, acceptance=1_000)
    assert command.over()["why"] == "not_seen"
    assert command.steps() == ["composing", "begun", "held"]
    assert lab.posts() == 1


@pytest.mark.parametrize(
    "fault,kind", [("accept_then_time_out", "delivery_timeout"), ("accept_then_error", "generation_error")]
)
def test_an_error_after_acceptance_ends_the_turn_and_is_not_retried(
    lab: Lab, opened: Opened, fault: str, kind: str
) -> None:
    """DBR-069, DBR-070, DBR-085: the card's Retry is never pressed, the turn never sent again."""
    lab.fault(fault)  # type: ignore[arg-type]
    script, address = opened()
    end = script.send(address).over()
    assert end["ending"]["stop"] == "error"
    assert end["facts"]["error"] == {"class": kind, "stale": False, "resets": None}
    assert end["facts"]["state"] == "error"
    assert len(lab.accepted()) == 1
    assert lab.pressed() == []


def test_a_lost_answer_is_held_and_found_after_a_reload(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-003, BR-048: what cannot be told is held; the next document finds the turn, and nothing is sent again."""
    lab.fault("lose_answer")
    script, address = opened()
    command = script.send(address, acceptance=1_200)
    held = command.over()
    assert (held["tell"], held["why"]) == ("held", "not_seen")
    lab.wait_accepted(1)
    page.reload()
    page.wait_for_selector("#prompt-textarea[data-ready]")
    again = watching(Script(page), command, "begun")
    end = again.over()
    assert again.steps() == ["accepted", "ended"]
    assert end["ending"]["seen"] is False, "an end that was not seen happening is not called seen"
    assert len(lab.accepted()) == 1


LATER = """() => {
  const now = performance.now.bind(performance);
  window.asked = 0;
  performance.now = () => { window.asked += 1; return now() + 120_000; };
}"""


def test_a_page_that_is_slow_to_load_does_not_say_that_the_turn_is_not_there(
    lab: Lab, opened: Opened, page: Page
) -> None:
    """Nothing is held for a person before the conversation was there to be read, unless it never comes."""
    lab.fault("lose_answer")
    script, address = opened()
    command = script.send(address, acceptance=1_200)
    assert command.over()["tell"] == "held"
    lab.look(never_hydrates=True)
    page.reload()
    page.wait_for_selector("#prompt-textarea[data-ready]")
    slow = Script(page)
    patient = watching(slow, command, "begun", acceptance=60_000)
    page.evaluate(LATER)
    page.wait_for_function("() => window.asked > 50", timeout=PATIENCE)
    assert patient.steps() == [], "two minutes later it has looked again and again, and said nothing"
    lab.look(never_hydrates=False)
    patient.over()
    assert patient.steps() == ["accepted", "ended"]


@pytest.mark.parametrize(
    "fault,why", [("refuse", "draft_left"), ("rate_dialog", "draft_left"), ("usage_limit", "draft_left")]
)
def test_a_draft_left_after_the_press_is_held(lab: Lab, opened: Opened, page: Page, fault: str, why: str) -> None:
    """DBR-073, BR-040: the text stands in the composer again; nobody can tell, and it is not sent again."""
    lab.fault(fault)  # type: ignore[arg-type]
    script, address = opened()
    command = script.send(address, acceptance=2_000)
    held = command.over()
    assert (held["tell"], held["why"]) == ("held", "draft_left")
    assert lab.accepted() == []
    assert lab.posts() == 1
    assert lab.pressed() == []
    assert command.marker in page.locator("#prompt-textarea").inner_text(), "it is left for a person to see"


@pytest.mark.parametrize("box", ["doubles", "shortens"])
def test_text_that_is_not_taken_whole_is_not_sent(lab: Lab, opened: Opened, page: Page, box: str) -> None:
    """DBR-118, DBR-119, BR-046: every character is compared before anything is submitted."""
    lab.look(box=box)
    script, address = opened()
    command = script.send(address, "more than the box takes " * 3)
    refused = command.over()
    assert (refused["tell"], refused["why"]) == ("refused", "not_verified")
    assert command.steps() == ["composing", "refused"]
    assert page.locator("#prompt-textarea").inner_text().strip() == "", "what was typed was taken out again"
    assert lab.posts() == 0


def test_another_way_to_write_where_the_first_is_not_taken(lab: Lab, opened: Opened) -> None:
    lab.look(box="deaf")
    script, address = opened()
    assert script.send(address, "one line").over()["tell"] == "ended"
    assert len(lab.accepted()) == 1


def test_two_sends_are_none(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-120, BR-174: where it is not certain which button sends, none is pressed."""
    script, address = opened()
    page.evaluate("""() => {
      const second = document.createElement('button');
      second.type = 'button';
      second.dataset.testid = 'send-button';
      document.querySelector('form').append(second);
    }""")
    refused = script.send(address, patience=500).over()
    assert refused["why"] == "unknown_page"
    assert lab.posts() == 0


def test_limits_are_told_with_their_end(lab: Lab, opened: Opened, page: Page) -> None:
    script, address = opened()
    lab.show(banner="You've hit your limit. Your access resets at 3:45 PM.")
    page.wait_for_selector("[role=alert]")
    facts = script.look()
    assert facts["state"] == "limit"
    assert facts["error"] == {"class": "usage_limit", "stale": False, "resets": "3:45 PM"}
    assert script.send(address).over()["why"] == "limit"
    assert lab.posts() == 0


def test_a_swallowed_click_is_held(lab: Lab, opened: Opened) -> None:
    lab.look(swallow=True)
    script, address = opened()
    assert script.send(address, acceptance=800).over()["why"] == "draft_left"
    assert lab.posts() == 0


def test_a_turn_drawn_twice_is_a_persons(lab: Lab, opened: Opened) -> None:
    """The marker found twice proves nothing."""
    lab.fault("double_render")
    script, address = opened()
    command = script.send(address)
    held = command.over()
    assert (held["tell"], held["why"]) == ("held", "twice")
    assert len(lab.accepted()) == 1


def test_a_kept_draft_does_not_hide_an_accepted_turn(lab: Lab, opened: Opened) -> None:
    lab.fault("draft_kept")
    script, address = opened()
    command = script.send(address)
    assert command.over()["tell"] == "ended"
    assert len(lab.accepted()) == 1
    assert script.look()["composer"] == "ours"


def test_a_full_conversation_is_said(lab: Lab, opened: Opened) -> None:
    """DBR-095: nothing is typed into a conversation that is full."""
    lab.fault("max_length")
    script, address = opened()
    first = script.send(address, acceptance=2_000).over()
    assert first["tell"] == "held"
    assert first["facts"]["state"] == "full"
    assert lab.pressed() == []


def test_nobody_signed_in_is_for_a_person(lab: Lab, opened: Opened, page: Page) -> None:
    script, address = opened()
    lab.login(False)
    page.wait_for_selector("[data-testid=login-button]")
    assert script.look()["state"] == "login"
    refused = script.send(address, patience=300).over()
    assert (refused["why"], refused["mendable"]) == ("login", True)
    assert lab.pressed() == []
    assert lab.posts() == 0


def test_a_challenge_is_for_a_person(lab: Lab, page: Page) -> None:
    """DBR-015, DBR-105: nothing is attempted, nothing closed."""
    lab.challenge(True)
    address = lab.conversation_url(lab.seed([]))
    page.goto(address)
    script = Script(page)
    assert script.look()["state"] == "challenge"
    assert script.send(address, patience=300).over()["why"] == "challenge"


def test_cards_are_told_one_after_another_and_pressed_by_nobody(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-080, DBR-081: a card blocks, is told by its fingerprint, and waits for a person."""
    lab.fault("approval", cards=2)
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    page.wait_for_selector("text=(1)")
    first = script.look()["approval"]
    assert script.look()["state"] == "approval"
    assert script.send(address, patience=200).over()["why"] == "approval"
    lab.approve()
    page.wait_for_selector("text=(2)")
    second = script.look()["approval"]
    assert first["count"] == second["count"] == 1
    assert first["fingerprint"] != second["fingerprint"]
    lab.approve()
    assert command.over()["ending"]["stop"] == "complete"
    assert lab.pressed() == []


def test_a_reload_in_mid_stream_is_watched_to_the_end(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-076: what an earlier document saw is not inherited; the end is told as not seen."""
    lab.answers(lambda prompt: Answer(BLOCK))
    lab.fault("stall")
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    page.reload()
    page.wait_for_selector("#prompt-textarea[data-ready]")
    again = watching(Script(page), command, "accepted")
    lab.resume()
    end = again.over()
    assert again.steps() == ["ended"]
    assert end["ending"]["stop"] == "complete"
    assert end["ending"]["signal_count"] == 1
    assert not end["ending"]["seen"]
    assert len(lab.accepted()) == 1


def test_an_interruption_that_is_overcome_is_stale(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-115: an error seen together with generation is nothing afterwards."""
    lab.answers(lambda prompt: Answer(BLOCK))
    lab.fault("interrupted", stalls=True)
    script, address = opened()
    command = script.send(address)
    page.wait_for_function("() => window.tenuto.told.some((one) => one.facts.error !== null)")
    lab.resume()
    end = command.over()
    assert end["ending"]["stop"] == "complete"
    seen = [one["facts"]["error"] for one in script.told() if one["facts"]["error"]]
    assert {"class": "network_interrupted", "stale": True, "resets": None} in seen
    assert all(one["stale"] for one in seen)


def test_a_stalled_answer_is_not_over(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-026, DBR-075: silence is not an end."""
    lab.answers(lambda prompt: Answer("x" * 90))
    lab.fault("stall")
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    page.wait_for_timeout(1_500)
    assert command.steps()[-1] == "accepted"
    assert script.look()["generating"] == "yes"
    lab.resume()
    assert command.over()["ending"]["size"] >= 90


def test_stop_gone_is_not_the_end(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-031, DBR-075, DBR-100: while a turn settles nothing is over and nothing is sent."""
    lab.look(stop_gap_ms=600_000)
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    page.wait_for_function(
        "() => window.tenuto.told.some((one) => one.tell === 'facts' && one.facts.state === 'settling')"
    )
    refused = script.send(address, patience=100).over()
    assert refused["why"] == "generating"
    assert command.steps()[-1] == "accepted"
    lab.look(stop_gap_ms=0)
    end = command.over()
    assert end["ending"]["stop"] == "complete"
    assert len(lab.accepted()) == 1


def test_an_answer_without_words_ends(lab: Lab, opened: Opened) -> None:
    """DBR-023, DBR-102: finished and empty is an end; nothing else is put in its place."""
    lab.fault("silent")
    script, address = opened()
    end = script.send(address).over()
    assert end["ending"]["stop"] == "complete"
    assert end["ending"]["signals"] == []


def test_two_blocks_are_two(lab: Lab, opened: Opened) -> None:
    lab.answers(lambda prompt: Answer(BLOCK + BLOCK + "````markdown\n" + BLOCK + "````\n"))
    script, address = opened()
    end = script.send(address).over()
    assert end["ending"]["signal_count"] == 2, "and one that is quoted is none"


def test_shortened_by_the_site_is_not_our_turn(lab: Lab, opened: Opened) -> None:
    """DBR-119: what the site cut short bears no whole marker and is held."""
    lab.fault("shorten", characters=5)
    script, address = opened()
    assert script.send(address, acceptance=800).over()["why"] == "not_seen"


def test_a_persons_own_turn_is_counted_as_theirs(lab: Lab, opened: Opened, page: Page) -> None:
    """BR-174, BR-177: a turn of somebody else is never ours, and its answer is not read."""
    lab.answers(lambda prompt: Answer(BLOCK * 9, 900, 0.1) if "tenuto" in prompt else Answer(BLOCK + BLOCK))
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    page.locator("#prompt-textarea").click()
    page.keyboard.insert_text("my own question")
    page.locator("[data-testid=send-button]").click()
    end = command.over()
    assert end["facts"]["foreign_turns"] == 1
    assert end["ending"]["signal_count"] <= 1


def test_an_unknown_markup_is_never_written_to(lab: Lab, opened: Opened) -> None:
    """BR-171: a page that changed fails closed."""
    lab.look(variant="unknown")
    script, address = opened()
    refused = script.send(address, patience=300).over()
    assert refused["why"] == "not_hydrated"
    assert refused["facts"]["missing"] == ["user_turn", "assistant_turn"]
    assert lab.posts() == 0


def test_a_markup_that_changes_under_us_is_held(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    lab.fault("accept_late", seconds=2.5)
    command = script.send(address, acceptance=3_500)
    lab.wait_accepted(1)
    lab.look(variant="unknown")
    assert command.over()["tell"] == "held"
    assert len(lab.accepted()) == 1
    assert lab.posts() == 1


def test_a_shell_without_turns_is_not_an_empty_conversation(lab: Lab, opened: Opened) -> None:
    """DBR-077."""
    lab.look(never_hydrates=True)
    script, address = opened()
    assert script.look()["state"] == "loading"
    assert script.send(address, patience=300).over()["why"] == "not_hydrated"
    assert lab.posts() == 0


def test_a_list_that_mounts_few_turns_hides_nothing(lab: Lab, opened: Opened) -> None:
    """DBR-038, DBR-040, DBR-042, DBR-044, DBR-087: what is not mounted is not absent."""
    lab.look(mounted=1, first_mounted=1)
    past = [Past("user" if number % 2 else "assistant", f"turn {number}") for number in range(1, 9)]
    script, address = opened(past)
    assert script.look()["turns"] == {"users": 1, "assistants": 1, "virtual": True}
    lab.look(mounted=2)
    command = script.send(address)
    command.wait("accepted")
    lab.look(mounted=1)
    end = command.over()
    assert end["ending"]["stop"] == "complete"
    assert end["ending"]["seen"]


def test_nodes_made_anew_all_the_time(lab: Lab, opened: Opened) -> None:
    """DBR-047, DBR-097: a turn is known by its key, not by its node."""
    lab.look(churn=30)
    script, address = opened()
    command = script.send(address)
    assert command.over()["ending"]["stop"] == "complete"
    assert command.steps() == ["composing", "begun", "accepted", "ended"]
    assert len(lab.accepted()) == 1


def test_in_every_language(lab: Lab, opened: Opened) -> None:
    """DBR-035, DBR-036, BR-170, BR-173: structure first, words in all languages."""
    script, address = opened()
    for locale in ("de", "ja", "zh-Hans"):
        lab.look(locale=locale)
        assert script.send(address).over()["ending"]["stop"] == "complete"
    assert len(lab.accepted()) == 3


def test_the_language_changes_in_mid_turn(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    lab.look(locale="ja")
    assert command.over()["ending"]["stop"] == "complete"


def test_old_errors_and_decoys_are_none(lab: Lab, opened: Opened) -> None:
    """DBR-013, DBR-025, DBR-096, DBR-123: a card above newer turns, words in a side bar, other Stops and Copies."""
    script, address = opened(
        [
            Past("user", "a"),
            Past("assistant", "", CARD, "Retry"),
            Past("user", "b"),
            Past("assistant", "Too many requests"),
        ]
    )
    facts = script.look()
    assert (facts["state"], facts["error"], facts["generating"]) == ("ready", None, "no")
    assert script.send(address).over()["tell"] == "ended"


def test_a_fresh_card_of_unknown_words_is_an_error(lab: Lab, opened: Opened) -> None:
    """DBR-083: what is not known is said, not passed over."""
    script, address = opened([Past("user", "a"), Past("assistant", "", "Der Server ist müde.", "Nochmal")])
    assert script.look()["error"] == {"class": "unknown_error", "stale": False, "resets": None}
    assert script.send(address, patience=200).over()["why"] == "error"


def test_streaming_marks_that_stay_do_not_hide_an_end(lab: Lab, opened: Opened) -> None:
    """DBR-086, DBR-121."""
    lab.look(stale_marks=True)
    script, address = opened()
    assert script.look()["state"] == "ready"
    assert script.send(address).over()["ending"]["stop"] == "complete"


def test_words_of_errors_in_a_draft_are_a_draft(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-074, DBR-020, BR-043, BR-049, BR-174: a person's draft is never read for errors, never touched."""
    script, address = opened()
    page.locator("#prompt-textarea").click()
    page.keyboard.insert_text("Too many requests. " + CARD)
    page.wait_for_timeout(100)
    facts = script.look()
    assert (facts["state"], facts["composer"], facts["error"]) == ("draft", "foreign", None)
    refused = script.send(address, patience=200).over()
    assert refused["why"] == "draft"
    assert refused["mendable"]
    assert page.locator("#prompt-textarea").inner_text().strip() == "Too many requests. " + CARD
    assert lab.posts() == 0


def test_a_draft_of_ours_that_never_began_is_replaced(lab: Lab, opened: Opened, page: Page) -> None:
    script, address = opened()
    page.locator("#prompt-textarea").click()
    page.keyboard.insert_text("[tenuto:before] what was typed before a crash")
    command = script.send(address, ours=["[tenuto:before]"])
    assert command.over()["tell"] == "ended"
    (turn,) = lab.accepted()
    assert "[tenuto:before]" not in turn.text


def test_somebody_at_the_keyboard_is_not_talked_over(lab: Lab, opened: Opened, page: Page) -> None:
    script, address = opened()
    script.look()
    page.keyboard.press("Shift")
    assert script.send(address, patience=300).over()["why"] == "typing"
    assert lab.posts() == 0


def test_another_conversation_is_not_written_to(lab: Lab, opened: Opened) -> None:
    """DBR-017, DBR-021, DBR-104."""
    script, _ = opened()
    other = lab.conversation_url(lab.seed([]))
    assert script.send(other).over()["why"] == "wrong_page"
    assert script.send(None).over()["why"] == "wrong_page"
    assert lab.posts() == 0


def test_what_another_conversation_shows_is_not_our_end(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-017: the tab is led elsewhere in mid turn, and back; the end is that of our own turn."""
    lab.answers(lambda prompt: Answer(BLOCK))
    lab.fault("stall")
    script, address = opened()
    other = lab.seed([Past("user", "theirs"), Past("assistant", BLOCK + BLOCK)])
    command = script.send(address)
    command.wait("accepted")
    lead = "(path) => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
    page.evaluate(lead, f"/c/{other}")
    page.wait_for_function("() => document.querySelectorAll('pre').length === 2")
    page.wait_for_timeout(1_000)
    assert command.steps()[-1] == "accepted"
    page.evaluate(lead, address.removeprefix("https://chatgpt.com"))
    lab.resume()
    end = command.over()
    assert end["ending"]["signal_count"] == 1
    assert end["url"] == address


def test_a_conversation_that_cannot_be_loaded_is_dead(lab: Lab, page: Page) -> None:
    address = lab.conversation_url("99999999-9999-4999-8999-999999999999")
    page.goto(address)
    page.wait_for_selector("[role=alert]")
    script = Script(page)
    assert script.look()["state"] == "dead"
    assert script.send(address).over()["why"] == "dead"


def test_a_hidden_page_takes_nothing_and_is_given_nothing(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-002, BR-162: hidden is found out before anything is written."""
    script, address = opened()
    page.evaluate("() => Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })")
    assert script.look()["visible"] is False
    refused = script.send(address, patience=300).over()
    assert refused["why"] == "hidden"
    assert page.locator("#prompt-textarea").inner_text().strip() == ""


def test_a_window_that_is_not_drawn_is_hidden_whatever_it_says(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-002, DBR-068."""
    script, address = opened()
    page.evaluate("() => { window.requestAnimationFrame = () => 0; }")
    assert script.send(address).over()["why"] == "hidden"
    assert lab.posts() == 0


def test_a_submit_that_is_ignored_while_hidden_is_held(lab: Lab, opened: Opened, page: Page) -> None:
    lab.look(deaf_while_hidden=True)
    script, address = opened()
    script.answer("begun", {"ok": True, "after": True})
    command = script.send(address, acceptance=800)
    command.wait("begun")
    page.evaluate("""() => { Object.defineProperty(document, 'visibilityState', { configurable: true,
        get: () => (new Error().stack.includes('sensor') ? 'visible' : 'hidden') }); }""")
    script.release()
    assert command.over()["why"] == "draft_left"
    assert lab.posts() == 0


def test_nobody_waits_any_more(lab: Lab, opened: Opened, page: Page) -> None:
    lab.fault("stall")
    script, address = opened()
    command = script.send(address)
    command.wait("accepted")
    assert script.order(order="forget", command=command.name) == {"taken": True}
    lab.resume()
    page.wait_for_timeout(1_200)
    assert command.steps()[-1] == "accepted"


def test_no_sentence_of_the_page_is_told(lab: Lab, opened: Opened) -> None:
    """Facts are states, counts and digests; the words of both sides stay where they are."""
    lab.answers(lambda prompt: Answer("a very secret answer that nobody may keep\n\n" + BLOCK))
    script, address = opened([Past("user", "an old secret"), Past("assistant", "another secret")])
    script.send(address, "a secret order").over()
    told = json.dumps(script.told())
    assert "secret" not in told
    assert "status: working" in told, "the one output block is told"
