"""Pages of a real Chromium on a desktop of its own, watched by its accessibility trees and by its DevTools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Page
from tests.support.chromium import Chromium
from tests.support.desktop import desktop
from tests.support.firefox import Firefox
from tests.support.lab import Answer, Lab, Past

from tenuto import sites
from tenuto.model.evidence import Observation
from tenuto.model.tools import Flaw, ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.ports import PageWitness
from tenuto.transports.watched.accessibility import AccessibilityWitness
from tenuto.transports.watched.atspi import AtSpi
from tenuto.transports.watched.devtools import DevToolsWitness
from tenuto.wiring.extension import source

PATIENCE = 120.0
SECRET = "the launch code is 0000"
SITE = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
_T = TypeVar("_T")

FOCUSED = """() => {
  const composer = document.querySelector('#prompt-textarea[data-ready]');
  composer?.focus();
  return composer !== null && document.activeElement === composer;
}"""
SENT = """() => {
  const button = document.querySelector('[data-testid=send-button]:not([disabled])');
  button?.click();
  return button !== null;
}"""

pytestmark = pytest.mark.timeout(600)


class Now:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return datetime.now(UTC).timestamp()


def profile_of(url: str) -> Mapping[str, Any] | None:
    return SITE if "chatgpt.com" in url else None


@dataclass
class Place:
    """The site, a browser that shows it, and the two witnesses of it by their names."""

    lab: Lab
    browser: Chromium
    witnesses: Mapping[str, PageWitness]
    loop: asyncio.AbstractEventLoop

    def do(self, what: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(PATIENCE)

    def look(self, by: str, url: str, window: str | None = None) -> WatchedFacts:
        session = url if window is None else f"{url} in {window}"
        told: Observation = self.do(self.witnesses[by].look(ToolBinding(by, session)))
        assert isinstance(told.facts, WatchedFacts)
        assert SECRET not in repr(told)
        return told.facts

    def until(
        self,
        by: str,
        url: str,
        good: Callable[[WatchedFacts], bool],
        window: str | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> WatchedFacts:
        """Look until it is so; `meanwhile` is done before each look but the first."""
        facts = self.look(by, url, window)
        for _ in range(int(PATIENCE / 0.2)):
            if good(facts):
                return facts
            meanwhile()
            self.do(asyncio.sleep(0.2))
            facts = self.look(by, url, window)
        raise TimeoutError(f"not seen by {by}: {facts}")

    def listed(self, by: str, url: str) -> list[ShownPage]:
        return [page for page in self.do(self.witnesses[by].shown()) if page.url == url]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    import threading

    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join(PATIENCE)
    made.close()


@pytest.fixture(scope="module")
def place(loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    more = [
        "--force-renderer-accessibility",
        "--remote-debugging-port=0",
        "--remote-allow-origins=http://nobody.invalid",
    ]
    with desktop() as environ, Lab.start() as lab:
        with Chromium(lab, headless=False, more=more, environ=environ) as browser:
            told = Path(browser.profile, "DevToolsActivePort").read_text().split()[0]
            trees = AccessibilityWitness("desk", AtSpi(environ["DBUS_SESSION_BUS_ADDRESS"]), Now(), profile_of)
            tabs = DevToolsWitness("web", f"127.0.0.1:{told}", Now(), profile_of, source() / "page")
            made = Place(lab, browser, {"desk": trees, "web": tabs}, loop)
            yield made
            made.do(tabs.close())


@pytest.fixture
def page(place: Place) -> Iterator[Page]:
    place.lab.reset()
    made = place.browser.open()
    yield made
    made.close()


def opened(place: Place, page: Page) -> str:
    identity = place.lab.seed([Past("user", "one"), Past("assistant", SECRET)])
    url = place.lab.conversation_url(identity)
    page.goto(url)
    page.wait_for_selector("#prompt-textarea[data-ready]")
    return url


@pytest.mark.parametrize("by", ["desk", "web"])
def test_a_turn_is_seen_from_outside_while_it_is_written_and_no_word_of_it_is_kept(
    place: Place, page: Page, by: str
) -> None:
    url = opened(place, page)
    first = place.until(by, url, lambda facts: facts.shown is True)
    assert not first.generating
    assert not first.defects
    assert first.window is not None
    assert (first.requests, first.streams) == (None, None), "what was under way before nobody saw"
    if by == "web":
        page.reload()
        page.wait_for_selector("#prompt-textarea[data-ready]")
        place.until(by, url, lambda facts: facts.requests is not None and facts.streams is not None)
    place.lab.answers(lambda _prompt: Answer(SECRET))
    place.lab.fault("stall")
    page.locator("#prompt-textarea[data-ready]").click()
    page.keyboard.insert_text(SECRET)
    # A tree tells that Send could be pressed; the sensor knows besides that what stands there is somebody's draft.
    drafted = place.until(by, url, lambda facts: facts.send_ready is (by == "desk"))
    assert not drafted.generating
    page.locator("[data-testid=send-button]").click()
    busy = place.until(by, url, lambda facts: facts.generating is True)
    assert busy.window == first.window
    assert busy.changed_at is not None
    if by == "web":
        assert busy.requests, "its answer is under way"
        assert place.until(by, url, lambda facts: facts.heard_at is not None).heard_at is not None
    place.until(by, url, lambda facts: not facts.generating, meanwhile=place.lab.resume)


def test_several_windows_of_one_address_are_refused_until_one_is_named(place: Place, page: Page) -> None:
    url = opened(place, page)
    with page.expect_popup() as second:
        page.evaluate("url => { window.open(url, '_blank', 'popup,width=700,height=600'); }", url)
    other = second.value
    other.wait_for_selector("#prompt-textarea[data-ready]")
    for by in ("desk", "web"):
        several = place.until(by, url, lambda facts: bool(facts.defects))
        assert several.defects[0].flaw is Flaw.DUPLICATED
        assert several.generating is None
        one, two = sorted(each.window for each in place.listed(by, url))
        assert {one, two} <= set(several.defects[0].why.replace(",", "").split())
        seen = {place.look(by, url, name).window for name in (one, two)}
        assert seen == {one, two}
    names = {by: sorted(each.window for each in place.listed(by, url)) for by in ("desk", "web")}
    other.close()
    for by in ("desk", "web"):
        left = place.until(by, url, lambda facts: facts.shown is True and not facts.defects).window
        (closed,) = set(names[by]) - {left}
        gone = place.until(by, url, lambda facts: facts.shown is False, closed)
        assert not gone.defects, "that a window is closed is a state"


def test_another_page_in_the_window_is_not_taken_for_it(place: Place, page: Page) -> None:
    url = opened(place, page)
    for by in ("desk", "web"):
        place.until(by, url, lambda facts: facts.shown is True)
    elsewhere = opened(place, page)
    for by in ("desk", "web"):
        assert place.until(by, url, lambda facts: facts.shown is False).window is None
        assert place.until(by, elsewhere, lambda facts: facts.shown is True).window is not None


@pytest.mark.prove
def test_a_page_of_firefox_is_seen_by_its_tree(loop: asyncio.AbstractEventLoop) -> None:
    with desktop() as environ, Lab.start() as lab:
        seen = AccessibilityWitness("desk", AtSpi(environ["DBUS_SESSION_BUS_ADDRESS"]), Now(), profile_of)
        url = lab.conversation_url(lab.seed([Past("user", "one"), Past("assistant", SECRET)]))
        with Firefox(lab, environ={**environ, "GNOME_ACCESSIBILITY": "1"}) as browser:
            context = browser.open(url)
            place = Place(lab, None, {"desk": seen}, loop)  # type: ignore[arg-type]
            first = place.until("desk", url, lambda facts: facts.shown is True)
            assert not first.generating
            lab.fault("stall")
            browser.wait(context, FOCUSED)
            browser.run(context, "() => document.execCommand('insertText', false, 'go on')")
            place.until("desk", url, lambda facts: facts.send_ready is True)
            browser.wait(context, SENT)
            place.until("desk", url, lambda facts: facts.generating is True)
            place.until("desk", url, lambda facts: not facts.generating, meanwhile=lab.resume)
