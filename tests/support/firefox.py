"""A real Firefox for tests, driven by WebDriver BiDi alone, behind the door of the chat site; headless unless it is
given the environment of a desktop.

No driver program is needed: the browser itself speaks the protocol. One connection, one thread; every wait is bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.support.lab import Lab
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

PATIENCE = 120.0
_LISTENING = re.compile(r"WebDriver BiDi listening on (ws://127\.0\.0\.1:\d+)")
_T = TypeVar("_T")
QUIET: dict[str, str | int | bool] = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.prefs.recommended": True,
    "toolkit.telemetry.enabled": False,
}


def program() -> str:
    """The browser's path; the names Debian and others give it."""
    for name in ("firefox-esr", "firefox"):
        if found := shutil.which(name):
            return found
    raise AssertionError("no Firefox on this machine; scripts/prepare names the package")


class Firefox:
    """One browser with a profile of its own, that is left when the browser ends."""

    def __init__(self, lab: Lab, extension: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.lab, self.extension, self.environ = lab, extension, environ
        self._place = tempfile.TemporaryDirectory(prefix="firefox-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[bytes]
        self._socket: ClientConnection
        self._held = contextlib.ExitStack()
        self._number = 0

    def __enter__(self) -> Self:
        profile = Path(self._place.name, "profile")
        profile.mkdir()
        preferences = {**QUIET, **self.lab.firefox_preferences}
        (profile / "user.js").write_text(
            "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
        )
        hidden = [] if self.environ else ["--headless"]
        said = Path(self._place.name, "said")
        with said.open("wb") as out:
            self._process = subprocess.Popen(
                [program(), *hidden, "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"],
                stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**(self.environ or os.environ), "HOME": self._place.name},
            )  # fmt: skip
        try:
            address = self._until(
                lambda: _LISTENING.search(said.read_text("utf-8", "replace")), "the browser to listen"
            )
            there = connect(address[1] + "/session", max_size=64 * 1024 * 1024, open_timeout=PATIENCE)
            self._socket = self._held.enter_context(there)
            self.call("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})
            if self.extension is not None:
                self.call("webExtension.install", extensionData={"type": "path", "path": str(self.extension)})
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        """The browser first: its end closes the connection."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        with contextlib.suppress(OSError, ConnectionClosed):
            self._held.close()
        self._place.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol; its result, or AssertionError with the browser's words."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("id") == self._number:
                assert told["type"] == "success", f"{method}: {told.get('error')}: {told.get('message')}"
                result: dict[str, Any] = told["result"]
                return result
        raise TimeoutError(method)

    def open(self, url: str) -> str:
        """A new tab at that address, loaded; its context."""
        context = str(self.call("browsingContext.create", type="tab")["context"])
        self.call("browsingContext.navigate", context=context, url=url, wait="complete")
        return context

    def run(self, context: str, function: str, *arguments: object) -> Any:
        """Call a function in the page's own world, with JSON values; what it comes to."""
        wrapped = f"async (given) => JSON.stringify((await ({function})(...JSON.parse(given))) ?? null)"
        result = self.call(
            "script.callFunction", functionDeclaration=wrapped, target={"context": context}, awaitPromise=True,
            arguments=[{"type": "string", "value": json.dumps(arguments)}],
        )  # fmt: skip
        assert result["type"] == "success", result.get("exceptionDetails", {}).get("text")
        return json.loads(result["result"]["value"])

    def wait(self, context: str, function: str, *arguments: object) -> Any:
        """Call it until it comes to something."""
        return self._until(lambda: self.run(context, function, *arguments), function)

    def _until(self, look: Callable[[], _T | None], what: str) -> _T:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if found := look():
                return found
            time.sleep(0.05)
        raise TimeoutError(f"not in {PATIENCE} s: {what}")
