"""Drift of a site is one sentence for as long as it stands, and none once its pages look as they should."""

from __future__ import annotations

from tenuto import sites
from tenuto.transports.canary import Canary

PROFILE = sites.compiled(sites.load(None)["chatgpt"])


def facts(state: str = "ready", missing: object = (), **drift: int) -> dict[str, object]:
    told = list(missing) if isinstance(missing, tuple) else missing
    return {"shown": True, "state": state, "url_kind": "conversation", "drift": drift, "missing": told}


def test_br_171_many_pages_that_drifted_are_one_item() -> None:
    canary = Canary()
    for _ in range(5):
        canary.seen(PROFILE, facts("unknown", ("composer",)))
    (said,) = canary.troubles()
    assert "composer is not found" in said
    assert "tenuto site check" in said


def test_it_ends_when_a_page_looks_as_it_should() -> None:
    canary = Canary()
    canary.seen(PROFILE, facts(send=3))
    assert canary.troubles()
    canary.seen(PROFILE, facts("error"))
    assert canary.troubles(), "a page that shows an error proves nothing about the profile"
    canary.seen(PROFILE, facts("ready", composer=0))
    assert canary.troubles() == ()


def test_pages_that_wait_or_load_say_nothing() -> None:
    canary = Canary()
    for state in ("login", "challenge", "loading"):
        canary.seen(PROFILE, facts(state, ("composer", "user_turn")))
    canary.seen(PROFILE, {"shown": False})
    canary.seen(PROFILE, {"shown": True, "state": "unknown", "url_kind": "other", "missing": ["composer"]})
    canary.seen(PROFILE, facts("unknown", "composer"))
    assert canary.troubles() == ()
