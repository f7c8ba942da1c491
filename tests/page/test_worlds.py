"""The page's script as an extension loads it, in a world of its own, in real Chromium and real Firefox.

A content script has other views of the page's objects than the page itself; what a browser does not let it do shows
only here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.support.chromium import Chromium
from tests.support.firefox import Firefox
from tests.support.lab import Answer, Lab, Past
from tests.support.page_script import QUICK

HERE = Path(__file__).parents[1]
HEAR = """() => { window.heard = []; window.addEventListener('message', (event) => {
  for (const kind of ['told', 'answer']) {
    if (event.data?.[kind]) window.heard.push([kind, JSON.parse(event.data[kind])]);
  }
  if (event.data?.broken) window.heard.push(['broken', event.data.broken]);
}); }"""
ORDER = "(order) => { window.postMessage({ order: JSON.stringify(order) }, '*'); }"
HEARD = """(tells) => window.heard.find(([kind, what]) =>
  kind === 'broken' || (kind === 'told' && tells.includes(what.tell))
  || (tells.includes('answer') && kind === 'answer')) ?? null"""


class Tab(Protocol):
    """One page of either browser."""

    def run(self, function: str, *arguments: object) -> Any: ...
    def wait(self, function: str, *arguments: object) -> Any: ...


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("extension") / "alone"
    shutil.copytree(HERE / "data" / "page-extension", place)
    shutil.copytree(HERE.parent / "extension" / "page", place / "page")
    return place


class ChromiumTab:
    def __init__(self, browser: Chromium, url: str) -> None:
        self.page = browser.open()
        self.page.goto(url)

    def run(self, function: str, *arguments: object) -> Any:
        return self.page.evaluate(f"(given) => ({function})(...given)", list(arguments))

    def wait(self, function: str, *arguments: object) -> Any:
        return self.page.wait_for_function(f"(given) => ({function})(...given)", arg=list(arguments)).json_value()


class FirefoxTab:
    def __init__(self, browser: Firefox, url: str) -> None:
        self.browser, self.context = browser, browser.open(url)

    def run(self, function: str, *arguments: object) -> Any:
        return self.browser.run(self.context, function, *arguments)

    def wait(self, function: str, *arguments: object) -> Any:
        return self.browser.wait(self.context, function, *arguments)


@contextmanager
def tab(browser: str, lab: Lab, extension: Path, url: str) -> Iterator[Tab]:
    if browser == "chromium":
        with Chromium(lab, extension) as chromium:
            yield ChromiumTab(chromium, url)
    else:
        with Firefox(lab, extension) as firefox:
            yield FirefoxTab(firefox, url)


@pytest.mark.prove  # tests/extension shows the same with everything around it
@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_turn_goes_through_from_a_content_script(site: Lab, lab: Lab, extension: Path, browser: str) -> None:
    lab.answers(lambda prompt: Answer("Work.\n\n```tenuto\nstatus: working\n```\n"))
    address = lab.conversation_url(lab.seed([Past("user", "one"), Past("assistant", "two")]))
    with tab(browser, lab, extension, address) as page:
        page.run(HEAR)
        page.wait("() => document.querySelector('#prompt-textarea[data-ready]') !== null")
        page.run(ORDER, {"order": "look", "profile": QUICK, "markers": []})
        kind, answer = page.wait(HEARD, ["answer"])
        assert kind == "answer", answer
        assert answer["facts"]["state"] == "ready"
        marker = f"[tenuto:{browser}]"
        page.run(
            ORDER,
            {
                "order": "send", "profile": QUICK, "command": "c1", "marker": marker,
                "text": f"{marker}\n\nfirst\n  second\nthird",
                "fence": {"conversation": address, "ours": [], "patience": 10_000, "acceptance": 10_000},
            },
        )  # fmt: skip
        kind, end = page.wait(HEARD, ["ended", "refused", "held"])
        assert end["tell"] == "ended", json.dumps(end)
        assert end["ending"]["signals"] == ["status: working"]
        (turn,) = lab.accepted(marker)
        assert "first\n  second\nthird" in turn.text
