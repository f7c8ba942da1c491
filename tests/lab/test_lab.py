"""The chat site that tests use, seen through a real browser: it does what it is told, and its count is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page
from tests.support.chromium import Chromium
from tests.support.lab import Answer, Lab, Past


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.start() as lab:
        yield lab


@pytest.fixture(scope="module")
def chromium(lab: Lab) -> Iterator[Chromium]:
    with Chromium(lab) as chromium:
        yield chromium


@pytest.fixture
def page(lab: Lab, chromium: Chromium) -> Iterator[Page]:
    lab.reset()
    page = chromium.open()
    yield page
    page.close()


def send(page: Page, text: str) -> None:
    """As a person does it: write, and press Send."""
    page.locator("#prompt-textarea[data-ready]").click()
    page.keyboard.insert_text(text)
    page.locator("[data-testid=send-button]").click()


def test_a_turn_is_taken_once_answered_and_has_a_lasting_address(lab: Lab, page: Page) -> None:
    page.goto(lab.url())
    assert page.locator("#prompt-textarea[data-ready]").count() or page.wait_for_selector(
        "#prompt-textarea[data-ready]"
    )
    assert page.locator("[data-testid=send-button]").count() == 0, "an empty composer has no Send here"
    send(page, "hello")
    page.wait_for_url(lambda url: "/c/WEB:" in url)
    page.wait_for_selector("[data-turn=assistant] [data-testid=copy-turn-action-button]")
    (turn,) = lab.accepted()
    assert turn.text == "hello"
    assert page.url == lab.conversation_url(turn.conversation)
    assert not turn.steer
    assert lab.pressed() == []


def test_the_same_conversation_in_each_markup(lab: Lab, page: Page) -> None:
    """Open pages follow at once."""
    lab.look(send_when_empty="disabled")
    identity = lab.seed([Past("user", "one"), Past("assistant", "two")])
    page.goto(lab.conversation_url(identity))
    for variant, seen in (
        ("section", "section[data-turn=user]"),
        ("article", "article[data-turn=user]"),
        ("fallback", "[data-content-search-unit-key$=':user']"),
        ("roles", "[data-user-message-bubble]"),
        ("unknown", "x-message[kind=q]"),
    ):
        lab.look(variant=variant)
        page.wait_for_selector(seen)
        assert page.locator(seen).count() == 1
    assert page.locator("[data-testid=send-button]").is_disabled()


def test_refused_is_not_taken_and_lost_is(lab: Lab, page: Page) -> None:
    identity = lab.seed([Past("user", "one"), Past("assistant", "two")])
    page.goto(lab.conversation_url(identity))
    lab.fault("refuse")
    lab.fault("lose_answer")
    send(page, "first")
    page.wait_for_selector("[data-testid=toast-error]")
    assert lab.accepted() == []
    assert page.locator("#prompt-textarea").inner_text().strip() == "first", "the draft came back"
    page.locator("[data-testid=send-button]").click()
    lab.wait_accepted(1)
    lab.wait_quiet(identity)
    assert page.locator("section[data-turn=user]").count() == 1, "this document never shows the turn"
    page.reload()
    page.wait_for_selector("[data-turn=assistant] >> nth=1")
    assert page.locator("section[data-turn=user]").count() == 2
    assert lab.posts() == 2


def test_time_out_keeps_the_turn_and_late_hides_it(lab: Lab, page: Page) -> None:
    identity = lab.seed([])
    page.goto(lab.conversation_url(identity))
    lab.fault("accept_then_time_out")
    send(page, "first")
    page.wait_for_selector("[data-testid=regenerate-thread-error-button]")
    lab.fault("accept_late", seconds=1.0)
    send(page, "second")
    lab.wait_accepted(2)
    page.wait_for_selector("[data-turn-id^=placeholder]")
    page.wait_for_selector("section[data-turn=user]:not([data-turn-id^=placeholder]) >> nth=1")
    assert len(lab.accepted()) == 2


def test_mid_stream_a_second_turn_is_a_steer_and_stop_stops(lab: Lab, page: Page) -> None:
    lab.answers(lambda prompt: Answer("x" * 900, pieces=900, pace=0.1))
    identity = lab.seed([])
    page.goto(lab.conversation_url(identity))
    send(page, "first")
    page.wait_for_selector("[data-testid=stop-button]")
    send(page, "aside")
    assert [turn.steer for turn in lab.wait_accepted(2)] == [False, True]
    page.wait_for_selector("[data-testid=stop-button]")
    page.locator("[data-testid=stop-button]").click()
    lab.wait_quiet(identity)


def test_cards_come_one_after_another_and_presses_are_counted(lab: Lab, page: Page) -> None:
    identity = lab.seed([])
    page.goto(lab.conversation_url(identity))
    lab.fault("approval", cards=2)
    send(page, "first")
    page.wait_for_selector("text=(1)")
    page.get_by_text("Deny").click()
    lab.approve()
    page.wait_for_selector("text=(2)")
    lab.approve()
    page.wait_for_selector("[data-turn=assistant] [data-testid=copy-turn-action-button]")
    assert lab.pressed() == ["Deny"]


def test_a_list_that_mounts_few_turns_leaves_shells(lab: Lab, page: Page) -> None:
    lab.look(mounted=2, first_mounted=1, churn=20)
    identity = lab.seed([Past("user" if n % 2 else "assistant", str(n)) for n in range(1, 9)])
    page.goto(lab.conversation_url(identity))
    page.wait_for_selector("[data-testid=conversation-turn-8]")
    numbers = page.locator("section").evaluate_all("all => all.map(one => one.dataset.testid)")
    assert numbers == ["conversation-turn-1", "conversation-turn-7", "conversation-turn-8"]
    assert page.locator("[data-turn-id-container=client-created-root]").count() == 1


def test_nothing_else_is_reached_through_its_door(lab: Lab, page: Page) -> None:
    with pytest.raises(Exception, match="net::ERR"):
        page.goto("https://elsewhere.invalid/")
    assert "elsewhere.invalid" in lab.refused
