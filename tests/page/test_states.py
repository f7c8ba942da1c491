"""What the sensor says of pages it is shown: a state, counts and errors for each; what is not known fails closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.support.chromium import Chromium
from tests.support.lab import Lab
from tests.support.page_script import PROFILE

PAGES = Path(__file__).parents[1] / "data" / "pages"
ADDRESS = "https://chatgpt.com/c/11111111-1111-4111-8111-111111111111"
LOOK = """async ([profile, html, address]) => {
  const { Sensor } = await import('/__extension__/page/sensor.js');
  const { prepare } = await import('/__extension__/page/prepared.js');
  document.open(); document.write(html); document.close();
  const sensor = new Sensor(document, () => address, () => false);
  return sensor.look(prepare(profile), { markers: [], ours: [], baseline: null }).facts;
}"""

EXPECTED: dict[str, tuple[str, str, int, int]] = {
    # page: state, generating, user turns, assistant turns
    "idle": ("ready", "no", 1, 1),
    "idle-start-voice": ("ready", "no", 1, 1),
    "streaming": ("generating", "yes", 1, 1),
    "stop-gone": ("settling", "no", 1, 1),
    "stop-decoys": ("ready", "no", 1, 1),
    "user-copy-only": ("settling", "no", 2, 1),
    "timed-out": ("error", "no", 1, 1),
    "timed-out-stale": ("ready", "no", 2, 2),
    "full": ("full", "no", 1, 1),
    "unknown-card": ("error", "no", 1, 1),
    "too-many-requests": ("limit", "no", 1, 1),
    "words-in-draft": ("draft", "no", 1, 1),
    "usage-limit": ("limit", "no", 1, 1),
    "interrupted": ("generating", "yes", 1, 1),
    "interrupted-zh": ("generating", "yes", 1, 1),
    "card": ("approval", "no", 1, 1),
    "two-cards": ("approval", "no", 1, 1),
    "card-of-unknown-make": ("approval", "no", 1, 1),
    "shell": ("loading", "unknown", 0, 0),
    "signed-out": ("login", "unknown", 0, 0),
    "challenge": ("challenge", "unknown", 0, 0),
    "challenge-script-on-a-healthy-page": ("ready", "no", 1, 1),
    "two-composers": ("unknown", "no", 1, 1),
    "fallback": ("ready", "no", 1, 1),
    "fallback-user-copy-only": ("settling", "no", 1, 1),
    "articles": ("ready", "no", 1, 1),
    "gaps": ("ready", "no", 2, 2),
    "role-less-turn": ("ready", "no", 1, 1),
    "several-messages-in-a-turn": ("ready", "no", 1, 1),
    "other-site": ("loading", "unknown", 0, 0),
}
ERRORS = {
    "timed-out": ("delivery_timeout", False, None),
    "full": ("conversation_full", False, None),
    "unknown-card": ("unknown_error", False, None),
    "too-many-requests": ("rate_limited", False, "5 minutes"),
    "usage-limit": ("usage_limit", False, "4:30 PM"),
    "interrupted": ("network_interrupted", True, None),
    "interrupted-zh": ("network_interrupted", True, None),
}
CARDS = {"card": 1, "two-cards": 2, "card-of-unknown-make": 1}


@pytest.fixture(scope="module")
def blank(site: Lab, chromium: Chromium) -> Iterator[Page]:
    page = chromium.open()
    yield page
    page.close()


@pytest.fixture
def seen(site: Lab, blank: Page, request: pytest.FixtureRequest) -> dict[str, Any]:
    name = request.node.callspec.params["name"]
    blank.goto(site.url("/__blank__"))
    facts: dict[str, Any] = blank.evaluate(LOOK, [PROFILE, (PAGES / f"{name}.html").read_text("utf-8"), ADDRESS])
    return facts


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_page_is_seen_as_it_is(seen: dict[str, Any], name: str) -> None:
    """DBR-014, DBR-027, DBR-043, DBR-045, DBR-046: and what else these pages were made for."""
    turns = seen["turns"]
    assert (seen["state"], seen["generating"], turns["users"], turns["assistants"]) == EXPECTED[name]
    error = seen["error"]
    assert (error and (error["class"], error["stale"], error["resets"])) == ERRORS.get(name)
    assert (seen["approval"] or {"count": 0})["count"] == {"card": 1, "two-cards": 2, "card-of-unknown-make": 1}.get(
        name, 0
    )
    assert turns["virtual"] == (name == "gaps")


def test_every_page_has_its_line() -> None:
    assert {path.stem for path in PAGES.glob("*.html")} == set(EXPECTED)


@pytest.mark.parametrize("url,kind,conversation", [
    (ADDRESS, "conversation", ADDRESS),
    (ADDRESS + "?model=x#y", "conversation", ADDRESS),
    ("https://chat.openai.com/c/11111111-1111-4111-8111-111111111111", "conversation", ADDRESS),
    ("https://chatgpt.com/c/WEB:11111111-1111-4111-8111-111111111111", "transient", None),
    ("https://chatgpt.com/c/WEB%3A11111111-1111-4111-8111-111111111111", "transient", None),
    ("https://chatgpt.com/g/g-p-abc/c/11111111-1111-4111-8111-111111111111/", "conversation",
     "https://chatgpt.com/g/g-p-abc/c/11111111-1111-4111-8111-111111111111"),
    ("https://chatgpt.com/g/g-p-abc/c/WEB:1", "transient", None),
    ("https://chatgpt.com/", "new", None),
    ("https://chatgpt.com/?model=x", "new", None),
    ("https://chatgpt.com/?temporary-chat=true", "other", None),
    ("https://chatgpt.com/share/11111111-1111-4111-8111-111111111111", "other", None),
    ("https://chatgpt.com/auth/login", "login", None),
    ("https://elsewhere.example/c/11111111-1111-4111-8111-111111111111", "other", None),
])  # fmt: skip
def test_addresses(site: Lab, blank: Page, url: str, kind: str, conversation: str | None) -> None:
    """DBR-004: a transient address is never a conversation's."""
    if "/__blank__" not in blank.url:
        blank.goto(site.url("/__blank__"))
    found = blank.evaluate(
        """async ([profile, url]) => {
          const { identify } = await import('/__extension__/page/sensor.js');
          const { prepare } = await import('/__extension__/page/prepared.js');
          return identify(prepare(profile), url);
        }""",
        [PROFILE, url],
    )
    assert found == {"kind": kind, "conversation": conversation}


def test_every_selector_and_pattern_is_one_to_a_browser(site: Lab, blank: Page) -> None:
    blank.goto(site.url("/__blank__"))
    wrong = blank.evaluate(
        """(profile) => {
          const wrong = [];
          const test = (what, work) => { try { work(); } catch (fault) { wrong.push(`${what}: ${fault}`); } };
          for (const [role, candidates] of Object.entries(profile.roles)) {
            for (const { css, around } of candidates) {
              for (const one of [css, around]) if (one) test(role, () => document.querySelector(one));
            }
          }
          for (const error of profile.errors) {
            for (const one of [...error.regex, error.resets]) if (one) test(error.id, () => new RegExp(one, 'i'));
          }
          for (const url of profile.urls) test(url.kind, () => new RegExp(url.regex, 'i'));
          return wrong;
        }""",
        PROFILE,
    )
    assert wrong == []


def test_a_profile_of_another_schema_is_refused(site: Lab, blank: Page) -> None:
    blank.goto(site.url("/__blank__"))
    told = blank.evaluate(
        """async (profile) => {
          const { start } = await import('/__extension__/page/main.js');
          let take;
          const tell = async () => ({ ok: true });
          start({ epoch: 'x', orphaned: () => false, tell, hear: (handler) => { take = handler; } });
          return take({ order: 'look', profile, markers: [] });
        }""",
        {**PROFILE, "schema": "tenuto-site/2", "digest": "other"},
    )
    assert told["taken"] is False
    assert "tenuto-site/2" in told["reason"]
