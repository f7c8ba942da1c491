"""Drift of a site is one sentence for as long as it stands, and none once its pages look as they should."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenuto import sites
from tenuto.transports.canary import Canary

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PROFILE = sites.compiled(sites.load(None)["chatgpt"])


def facts(state: str = "ready", missing: object = (), **drift: int) -> dict[str, object]:
    told = list(missing) if isinstance(missing, tuple) else missing
    return {"shown": True, "state": state, "url_kind": "conversation", "drift": drift, "missing": told}


def test_br_171_many_pages_that_drifted_are_one_item() -> None:
    canary = Canary()
    for _ in range(5):
        canary.seen(PROFILE, facts("unknown", ("composer",)), NOW)
    (said,) = canary.troubles()
    assert "composer is not found" in said
    assert "tenuto site check" in said


def test_it_ends_when_a_page_looks_as_it_should() -> None:
    canary = Canary()
    canary.seen(PROFILE, facts(send=3), NOW)
    assert canary.troubles()
    canary.seen(PROFILE, facts("error"), NOW)
    assert canary.troubles(), "a page that shows an error proves nothing about the profile"
    canary.seen(PROFILE, facts("ready", composer=0), NOW)
    assert canary.troubles() == ()


def test_pages_that_wait_or_load_say_nothing() -> None:
    canary = Canary()
    for state in ("login", "challenge", "loading"):
        canary.seen(PROFILE, facts(state, ("composer", "user_turn")), NOW)
    canary.seen(PROFILE, {"shown": False}, NOW)
    canary.seen(PROFILE, {"shown": True, "state": "unknown", "url_kind": "other", "missing": ["composer"]}, NOW)
    canary.seen(PROFILE, facts("unknown", "composer"), NOW)
    assert canary.troubles() == ()


def test_a_page_that_has_its_composer_and_shows_no_turn_for_long_is_not_loading() -> None:
    canary = Canary()
    shell = facts("loading", ("user_turn", "assistant_turn"))
    canary.seen(PROFILE, shell, NOW)
    canary.seen(PROFILE, shell, NOW + timedelta(seconds=29))
    assert canary.troubles() == ()
    canary.seen(PROFILE, facts("generating"), NOW + timedelta(seconds=30))
    canary.seen(PROFILE, shell, NOW + timedelta(seconds=40))
    assert canary.troubles() == (), "it is counted from when it loads anew"
    for each in range(300):  # of very many pages the oldest are forgotten, and begin again
        canary.seen(PROFILE, {**shell, "conversation": f"https://chat.example/c/{each}"}, NOW + timedelta(seconds=50))
    canary.seen(PROFILE, {**shell, "conversation": "https://chat.example/c/299"}, NOW + timedelta(seconds=80))
    (said,) = canary.troubles()
    assert "user_turn is not found" in said
    canary.seen(PROFILE, facts("ready"), NOW + timedelta(seconds=90))
    assert canary.troubles() == ()


def test_since_when_a_page_loads_is_forgotten_while_it_waits_for_its_person() -> None:
    canary = Canary()
    shell = facts("loading", ("user_turn", "assistant_turn"))
    canary.seen(PROFILE, shell, NOW)
    canary.seen(PROFILE, facts("login"), NOW + timedelta(seconds=5))
    canary.seen(PROFILE, shell, NOW + timedelta(hours=1))
    assert canary.troubles() == ()
