"""The panel as a person meets it, in both browsers: what it shows is the supervisor's, what is pressed is one request.

Screenshots lie in the folder that TENUTO_SHOTS names, where it names one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.extension.chats import Chats, chats

pytestmark = pytest.mark.timeout(600)
AXE = Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def it(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chats]:
    with chats(tmp_path_factory.mktemp("panel"), request.param) as world:
        yield world


def test_the_panel_says_what_the_supervisor_says_and_carries_one_request(it: Chats) -> None:
    # A program that waits for a person, and one that is manual.
    asked = it.home.tenuto(
        "run", "--program", "sh -c 'echo'", "--objective-file", "-", "--detach", "--title", "Asks something",
        text="Ask.",
    ).strip()  # fmt: skip
    it.home.tenuto(
        "run", "--program", "true", "--objective-file", "-", "--detach", "--manual", "--title", "Waits to be asked",
        text="Wait.",
    )  # fmt: skip
    panel = it.browser.page(it.browser.panel_url())
    panel.until("the question", "document.querySelectorAll('#needs li').length > 0")
    said = panel.run("document.getElementById('needs').textContent")
    assert "signal block" in said or "answer" in said, said
    assert "Asks something" in panel.run("document.getElementById('tasks').textContent")
    if (folder := os.environ.get("TENUTO_SHOTS")) is not None:
        Path(folder, f"panel-{it.browser.name}.png").write_bytes(panel.shot())
    pause = "[...document.querySelectorAll('#tasks button')].find((it) => it.ariaLabel === 'Pause: Asks something')"
    panel.run(f"({pause}.click(), true)")
    panel.until("the pause", "document.getElementById('tasks').textContent.includes('Resume')")
    assert it.shown(asked)["task"]["paused_at"] is not None
    assert it.shown(asked)["task"]["paused_by"] == "panel of browser"
    panel.run(f"(() => {{ {AXE.read_text('utf-8')}; return true }})()")
    found = json.loads(panel.run("axe.run(document).then((it) => JSON.stringify(it.violations))"))
    assert found == [], json.dumps(found, indent=1)[:4000]
    panel.run("(document.getElementById('hold').click(), true)")
    panel.until("the hold", "document.getElementById('standing').textContent.includes('held')")
    assert it.home.json("status")["held"]["by"] == "panel of browser"
    it.home.tenuto("unhold")
    panel.close()
