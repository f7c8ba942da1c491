"""The page's own script without an extension around it: orders go in, everything it tells is kept.

The background is played here: every telling is answered `ok` unless a test says otherwise, so a test can refuse a step,
let the answer be lost, or look at what stood on the page when leave was asked.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from playwright.sync_api import Page

from tenuto.sites import compiled, load

PROFILE: dict[str, Any] = compiled(load(None)["chatgpt"])
PATIENCE = 90_000
_commands = itertools.count(1)

QUICK: dict[str, Any] = {
    **PROFILE,
    "digest": "quick",
    "completion": {**PROFILE["completion"], "stable_ms": 300, "short_stable_ms": 400, "watched_stable_ms": 600},
}
"""The same with less standing still, so that tests need not wait for what they do not look at."""

BEGIN = """async () => {
  // A driver's own calls count as a person's; here nobody is at the keyboard unless a test plays one.
  Object.defineProperty(navigator, 'userActivation', { value: { isActive: false } });
  const { start } = await import('/__extension__/page/main.js');
  const world = window.tenuto = { told: [], answers: {}, orphan: false, handler: null, waiting: null };
  start({
    epoch: 'test',
    orphaned: () => world.orphan,
    hear: (handler) => { world.handler = handler; },
    tell: async (what) => {
      world.told.push({ ...what, at: performance.now() });
      await window.tenutoKeep?.(what.command ?? '', what.tell); // a journal outside the page, where a test has one
      const answer = world.answers[what.tell] ?? { ok: true };
      if (answer.after) await new Promise((resolve) => { world.waiting = resolve; });
      return answer;
    },
  });
}"""


class Script:
    """One content script in one page."""

    def __init__(self, page: Page, profile: dict[str, Any] | None = None) -> None:
        self.page, self.profile = page, profile or QUICK
        page.evaluate(BEGIN)

    def order(self, **order: Any) -> dict[str, Any]:
        """Give an order; its answer."""
        answer: dict[str, Any] = self.page.evaluate(
            "(order) => window.tenuto.handler(order)", {"profile": self.profile, **order}
        )
        return answer

    def look(self, *markers: str) -> dict[str, Any]:
        """The facts of now."""
        facts: dict[str, Any] = self.order(order="look", markers=list(markers))["facts"]
        return facts

    def send(self, conversation: str | None, words: str = "do it", **more: Any) -> Command:
        """Order a turn into the conversation of that address (None: a new one)."""
        number = next(_commands)
        marker = f"[tenuto:cmd{number:04d}]"
        text = f"{marker}\n\n{words}"
        fence = {
            "conversation": conversation, "ours": more.pop("ours", []),
            "patience": more.pop("patience", 5_000), "acceptance": more.pop("acceptance", 5_000),
        }  # fmt: skip
        order = {"order": "send", "command": f"c{number}", "marker": marker, "text": text, "fence": fence, **more}
        return Command(self, order, self.order(**order))

    def answer(self, tell: str, answer: dict[str, Any]) -> None:
        """From now on that telling is answered so."""
        self.page.evaluate("([tell, answer]) => { window.tenuto.answers[tell] = answer; }", [tell, answer])

    def release(self) -> None:
        """Let the answer that was held back be given."""
        self.page.wait_for_function("() => window.tenuto.waiting !== null", timeout=PATIENCE)
        self.page.evaluate("() => window.tenuto.waiting()")

    def told(self) -> list[dict[str, Any]]:
        """Everything that was told, oldest first."""
        told: list[dict[str, Any]] = self.page.evaluate("() => window.tenuto.told")
        return told


class Command:
    """One order as the background follows it."""

    def __init__(self, script: Script, order: dict[str, Any], answer: dict[str, Any]) -> None:
        self.script, self.given, self.answer = script, order, answer
        self.name, self.marker = order["command"], order.get("marker", "")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.given["text"].encode()).hexdigest()

    def steps(self) -> list[str]:
        """The steps it told, by name."""
        told = self.script.told()
        return [one["tell"] for one in told if one.get("command") == self.name and one["tell"] != "facts"]

    def wait(self, *tells: str) -> dict[str, Any]:
        """Wait for one of these steps; what was told."""
        handle = self.script.page.wait_for_function(
            """([command, tells]) =>
                 window.tenuto.told.find((one) => one.command === command && tells.includes(one.tell))""",
            arg=[self.name, list(tells)], timeout=PATIENCE,
        )  # fmt: skip
        told: dict[str, Any] = handle.json_value()
        return told

    def over(self) -> dict[str, Any]:
        """Wait for what it comes to: ended, refused or held."""
        return self.wait("ended", "refused", "held")
