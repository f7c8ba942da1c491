"""A real Chromium for tests, behind the door of the chat site: no network but the site's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright
from tests.support.lab import Lab

QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-features=Translate,MediaRouter,OptimizationHints",
]


def program() -> str:
    """The browser's path; the names Debian and others give it."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise AssertionError("no Chromium on this machine; scripts/prepare names the package")


class Chromium:
    """One browser with a profile of its own. `extension` is loaded unpacked; as root there is no sandbox."""

    def __init__(
        self,
        lab: Lab,
        extension: Path | None = None,
        headless: bool = True,
        more: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.lab, self.extension, self.headless, self.more = lab, extension, headless, more
        self.environ = environ
        self.context: BrowserContext
        self.profile: str
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._playwright: Playwright

    def __enter__(self) -> Self:
        self._playwright = sync_playwright().start()
        self.profile = self._profile.name
        more = list(self.more)
        if self.extension is not None:
            more += [f"--disable-extensions-except={self.extension}", f"--load-extension={self.extension}"]
        self.context = self._playwright.chromium.launch_persistent_context(
            self._profile.name,
            executable_path=program(),
            headless=self.headless,
            chromium_sandbox=os.geteuid() != 0,
            ignore_https_errors=True,
            env={**self.environ} if self.environ is not None else None,
            args=[*QUIET, *self.lab.chromium_arguments, *more],
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.context.close()
        self._playwright.stop()
        self._profile.cleanup()

    def open(self) -> Page:
        """A new tab."""
        page = self.context.new_page()
        page.set_default_timeout(30_000)
        return page
