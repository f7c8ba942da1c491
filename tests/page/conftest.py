"""One chat site and one real Chromium for the tests of a file; while it is open no other event loop can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page
from tests.support.chromium import Chromium
from tests.support.lab import Lab, Past
from tests.support.page_script import Script


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    with Lab.start() as lab:
        yield lab


@pytest.fixture(scope="module")
def chromium(site: Lab) -> Iterator[Chromium]:
    with Chromium(site) as chromium:
        yield chromium


@pytest.fixture
def lab(site: Lab) -> Lab:
    """Honest and empty."""
    site.reset()
    return site


@pytest.fixture(scope="module")
def tab(chromium: Chromium) -> Page:
    return chromium.open()


@pytest.fixture
def page(lab: Lab, tab: Page) -> Page:
    """The one tab; what an earlier test had in it is gone with its document."""
    tab.goto("about:blank")
    return tab


Opened = Callable[..., tuple[Script, str]]


@pytest.fixture
def opened(lab: Lab, page: Page) -> Opened:
    """Open a conversation of two turns (or as given) with the script in it; the script and the address."""

    def there(past: list[Past] | None = None) -> tuple[Script, str]:
        identity = lab.seed([Past("user", "one"), Past("assistant", "two")] if past is None else past)
        address = lab.conversation_url(identity)
        page.goto(address)
        page.wait_for_selector("#prompt-textarea[data-ready]")
        return Script(page), address

    return there
