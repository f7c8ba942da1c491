"""Which addresses a conversation may be bound under, as the supervisor decides it for a person who adopts one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest

from tenuto.sites import compiled, load
from tenuto.transports.bridge import Bridge
from tenuto.transports.canary import Canary
from tenuto.transports.pages import PageExecutor

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PROFILES = {name: compiled(profile) for name, profile in load(None).items()}
IDENTITY = "68f0c1de-0000-4000-8000-0123456789ab"


def pages(canary: Canary | None = None) -> PageExecutor:
    """Nobody is asked anything here, so there is nobody."""
    return PageExecutor(cast(Bridge, None), "ext:browser", PROFILES.get, canary, sites=lambda: PROFILES)


@pytest.mark.parametrize(
    "url,bound",
    [
        (f"https://chatgpt.com/c/{IDENTITY}", f"https://chatgpt.com/c/{IDENTITY}"),
        (f"https://chatgpt.com/c/{IDENTITY}?model=x#end", f"https://chatgpt.com/c/{IDENTITY}"),
        (f"https://chat.openai.com/c/{IDENTITY}/", f"https://chatgpt.com/c/{IDENTITY}"),
        (f"https://chatgpt.com/g/g-abc/c/{IDENTITY}", f"https://chatgpt.com/g/g-abc/c/{IDENTITY}"),
        (f"https://chatgpt.com/c/WEB:{IDENTITY}", None),
        (f"https://chatgpt.com/c/WEB%3A{IDENTITY}", None),
        ("https://chatgpt.com/?temporary-chat=true", None),
        ("https://chatgpt.com/", None),
        ("https://chatgpt.com/auth/login", None),
        (f"https://chatgpt.example/c/{IDENTITY}", None),
    ],
)
def test_only_a_lasting_address_is_bound(url: str, bound: str | None) -> None:
    assert pages().addressed(url) == (("chatgpt", bound) if bound is not None else None)


def test_what_a_page_says_of_its_profile_is_one_item_until_it_is_as_known() -> None:
    canary = Canary()
    it = pages(canary)
    page = {"type": "page", "shown": True, "site": "chatgpt", "url_kind": "conversation", "state": "unknown"}
    for role in ("composer", "user_turn"):
        it._heed({**page, "missing": [role]}, NOW)
    (said,) = canary.troubles()
    assert "chatgpt" in said
    it._heed({**page, "state": "ready", "missing": [], "drift": {}}, NOW)
    assert canary.troubles() == ()
