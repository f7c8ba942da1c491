"""Real browsers with the real extension: a Chromium and a Firefox that can be killed and begun again as they were.

Each is a process of its own, spoken to by its own protocol (DevTools, WebDriver BiDi) over a websocket, so that nothing
but the product keeps the extension alive. `page` opens an address and runs small scripts in it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

from tests.support.chromium import QUIET, program
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

PATIENCE: Final = 150.0
GECKO_ID: Final = "extension@tenuto.invalid"
GECKO_PLACE: Final = "5a4f0c4e-7c1d-4e1b-9a68-1f6d3f0e7a11"
SAFE: Final = None if os.geteuid() else ["--no-sandbox"]


def until(what: str, holds: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """What `holds` gives once it gives something; fails with `what` when it never does."""
    end = time.monotonic() + patience
    while True:
        with contextlib.suppress(ConnectionClosed, OSError, Wrong):
            if found := holds():
                return found
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {patience} s")
        time.sleep(0.1)


class Wrong(Exception):
    """The browser answered with an error."""


class Talk:
    """One websocket to a browser: calls with numbers, and events that nobody asked for are passed over."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._held = contextlib.ExitStack()
        opening = connect(
            url, max_size=None, open_timeout=30, proxy=None, additional_headers=headers, ping_interval=None
        )
        self._socket: ClientConnection = self._held.enter_context(opening)
        self._number = 0

    def call(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """The result of one call; Wrong when the browser says no."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params or {}, **more}))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("id") != self._number:
                continue
            if "error" in told:
                raise Wrong(f"{method}: {told['error']} {told.get('message', '')}")
            return dict(told.get("result", {}))
        raise Wrong(f"{method}: no answer")

    def close(self) -> None:
        """Let go of it."""
        self._held.close()


class Page:
    """A tab: `run` evaluates an expression, awaited, to a JSON value."""

    def __init__(
        self,
        run: Callable[[str], Any],
        shot: Callable[[], bytes],
        close: Callable[[], None],
        front: Callable[[], None],
    ) -> None:
        self.run = run
        self.shot = shot
        self.close = close
        self.front = front

    def until(self, what: str, expression: str, patience: float = PATIENCE) -> Any:
        """The expression's value once it is true."""
        return until(what, lambda: self.run(expression), patience)


class Browser:
    """What both have in common. `proxy` leads to the chat site; None: nothing but loopback is reached."""

    name = ""

    def __init__(self, folder: Path, lab: Any = None) -> None:
        self.folder = folder
        self.lab = lab
        self._profile = tempfile.TemporaryDirectory(prefix=f"{self.name}-", ignore_cleanup_errors=True)
        self.profile = Path(self._profile.name)
        self.process: subprocess.Popen[bytes] | None = None
        self.talk: Talk | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._profile.cleanup()

    def start(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """End it as a crash does: everything at once, nothing is said good-bye to."""
        if self.talk is not None:
            with contextlib.suppress(Exception):
                self.talk.close()
            self.talk = None
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
            self.process = None

    def page(self, url: str) -> Page:
        raise NotImplementedError

    def shown(self, part: str) -> Page:
        """The tab whose address has `part`."""
        raise NotImplementedError

    def every(self, part: str) -> list[Page]:
        """Every tab whose address has `part`."""
        raise NotImplementedError

    def panel_url(self) -> str:
        raise NotImplementedError

    def kill_background(self) -> bool:
        """End the extension's background, as the browser does when it likes; false when it is not running."""
        raise NotImplementedError

    def tabs(self) -> list[str]:
        """The addresses of all tabs."""
        raise NotImplementedError

    def close_tabs(self, part: str) -> int:
        """Close every tab whose address has `part`; how many."""
        raise NotImplementedError

    def inside(self, script: str) -> Any:
        """What the body of a function comes to in a page of the extension's own; `api` is the browser's interface."""
        page = self.page(self.panel_url())
        try:
            return page.run(f"(async (api) => {{ {script} }})(globalThis.browser ?? chrome)")
        finally:
            page.close()

    def discard(self, part: str) -> None:
        """Have the browser let go of what is loaded in the tab whose address has `part`, as it does to save memory."""
        gone = self.inside(
            f"const tab = (await api.tabs.query({{}})).find((one) => one.url?.includes({json.dumps(part)}));"
            " await api.tabs.create({ windowId: tab.windowId, active: true, url: 'about:blank' });"
            " await api.tabs.discard(tab.id);"
            " return (await api.tabs.query({ discarded: true })).length;"
        )
        assert gone == 1

    def forget(self) -> None:
        """Take from the extension what the browser keeps for it while it runs, and end its background."""
        self.inside("await api.storage.session.clear(); return true")
        self.kill_background()

    def pair(self, code: str) -> None:
        """Pair the extension by its own panel."""
        panel = self.page(self.panel_url())
        panel.until("the panel's form", "document.getElementById('pair')?.hidden === false")
        panel.run(
            f"(() => {{ document.getElementById('code').value = {json.dumps(code)};"
            " document.querySelector('#pair button').click(); return true })()"
        )
        panel.until("being connected", "document.getElementById('standing').textContent.startsWith('Connected')")
        panel.close()


def there(page: Page, url: str) -> bool:
    """Whether a new tab shows its address already, and has what the extension's own pages are given."""
    own = "chrome.runtime" if url.startswith("chrome-extension:") else "true"
    with contextlib.suppress(Wrong):  # the document before it goes away while it is asked
        return bool(page.run(f"location.href !== 'about:blank' && document.readyState === 'complete' && !!{own}"))
    return False


class Chromium(Browser):
    """Debian's Chromium, headless."""

    name = "chromium"

    def start(self) -> None:
        """Begin, or begin again with the same profile."""
        with contextlib.suppress(FileNotFoundError):
            (self.profile / "DevToolsActivePort").unlink()
        argv = [
            program(), "--headless=new", *(SAFE or []), *QUIET,
            f"--user-data-dir={self.profile}", "--remote-debugging-port=0",
            f"--disable-extensions-except={self.folder}", f"--load-extension={self.folder}",
            "--password-store=basic", "--hide-crash-restore-bubble",
            *(self.lab.chromium_arguments if self.lab is not None else ["--proxy-server=http://127.0.0.1:9"]),
            "about:blank",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        place = self.profile / "DevToolsActivePort"
        told = until("the browser's port", lambda: place.exists() and re.match(r"(\d+)\n(/\S{20,})", place.read_text()))
        self.talk = until("the browser", lambda: Talk(f"ws://127.0.0.1:{told[1]}{told[2]}"))

    def _targets(self) -> list[dict[str, Any]]:
        assert self.talk is not None
        filters = [{"type": kind, "exclude": False} for kind in ("page", "service_worker")]
        return list(self.talk.call("Target.getTargets", {"filter": filters})["targetInfos"])

    def page(self, url: str) -> Page:
        """A new tab."""
        assert self.talk is not None
        target = self.talk.call("Target.createTarget", {"url": url})["targetId"]
        page = self._attached(target)
        until(f"the page at {url}", lambda: there(page, url))
        return page

    def _attached(self, target: str) -> Page:
        talk = self.talk
        assert talk is not None
        session = talk.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

        def run(expression: str) -> Any:
            params = {"expression": expression, "awaitPromise": True, "returnByValue": True}
            told = talk.call("Runtime.evaluate", params, sessionId=session)
            if "exceptionDetails" in told:
                raise Wrong(str(told["exceptionDetails"])[:500])
            return told["result"].get("value")

        def shot() -> bytes:
            return base64.b64decode(talk.call("Page.captureScreenshot", {}, sessionId=session)["data"])

        return Page(
            run,
            shot,
            lambda: (talk.call("Target.closeTarget", {"targetId": target}), None)[1],
            lambda: (talk.call("Target.activateTarget", {"targetId": target}), None)[1],
        )

    def shown(self, part: str) -> Page:
        """The tab whose address has `part`."""
        target = until(
            f"a tab at {part}", lambda: [t for t in self._targets() if t["type"] == "page" and part in t["url"]]
        )
        return self._attached(target[0]["targetId"])

    def every(self, part: str) -> list[Page]:
        """Every tab whose address has `part`."""
        found = [each for each in self._targets() if each["type"] == "page" and part in each["url"]]
        return [self._attached(each["targetId"]) for each in found]

    def panel_url(self) -> str:
        """Where the panel lies."""
        worker = until(
            "the extension's worker",
            lambda: [
                t for t in self._targets() if t["url"].startswith("chrome-extension://") and "background" in t["url"]
            ],
        )
        return str(worker[0]["url"]).replace("background/main.js", "panel/panel.html")

    def kill_background(self) -> bool:
        """Close the worker's target; the browser begins another when something asks for it."""
        assert self.talk is not None
        closed = False
        for target in self._targets():
            if target["type"] == "service_worker" and target["url"].startswith("chrome-extension://"):
                with contextlib.suppress(Wrong):
                    closed |= self.talk.call("Target.closeTarget", {"targetId": target["targetId"]})["success"] is True
        return closed

    def tabs(self) -> list[str]:
        """The addresses of all tabs."""
        return [target["url"] for target in self._targets() if target["type"] == "page"]

    def close_tabs(self, part: str) -> int:
        """Close every tab whose address has `part`."""
        assert self.talk is not None
        found = [target for target in self._targets() if target["type"] == "page" and part in target["url"]]
        for target in found:
            self.talk.call("Target.closeTarget", {"targetId": target["targetId"]})
        return len(found)


PREFERENCES: Final = {
    "xpinstall.signatures.required": False,
    "extensions.autoDisableScopes": 0,
    "extensions.enabledScopes": 15,
    "extensions.webextensions.uuids": json.dumps({GECKO_ID: GECKO_PLACE}),
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.sessionstore.resume_from_crash": False,
    "browser.aboutwelcome.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.websocket.delay-failed-reconnects": False,
    "services.settings.server": "data:,",
    "dom.disable_open_during_load": False,
    "browser.tabs.unloadOnLowMemory": False,
}


class Firefox(Browser):
    """Firefox ESR, headless; the extension lies in its profile, as one that was installed."""

    name = "firefox"

    def start(self) -> None:
        """Begin, or begin again with the same profile."""
        packed = self.profile / "extensions" / f"{GECKO_ID}.xpi"
        packed.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bundle:
            for path in sorted(self.folder.rglob("*")):
                if path.is_file() and not path.name.startswith("."):
                    bundle.write(path, path.relative_to(self.folder))
        more = self.lab.firefox_preferences if self.lab is not None else {}
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in {**PREFERENCES, **more}.items()
        ]
        (self.profile / "user.js").write_text("\n".join(lines) + "\n", "utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        browser = shutil.which("firefox-esr") or shutil.which("firefox")
        assert browser is not None, "no Firefox on this machine; scripts/prepare names the package"
        argv = [
            browser, "--headless", "--no-remote", "--profile", str(self.profile),
            "--remote-debugging-port", str(port), "--remote-allow-system-access",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, "HOME": str(self.profile), "MOZ_CRASHREPORTER_DISABLE": "1"},
        )  # fmt: skip
        self.talk = until("the browser", lambda: Talk(f"ws://127.0.0.1:{port}/session"))
        self.talk.call("session.new", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": True}}})

    def page(self, url: str) -> Page:
        """A new tab."""
        assert self.talk is not None
        context = self.talk.call("browsingContext.create", {"type": "tab"})["context"]
        self.talk.call("browsingContext.navigate", {"context": context, "url": url, "wait": "complete"})
        return self._attached(context)

    def _attached(self, context: str) -> Page:
        talk = self.talk
        assert talk is not None

        def run(expression: str) -> Any:
            told = talk.call(
                "script.evaluate",
                {
                    "expression": f"Promise.resolve({expression}).then((it) => JSON.stringify(it ?? null))",
                    "target": {"context": context},
                    "awaitPromise": True,
                },
            )
            if told.get("type") == "exception":
                raise Wrong(str(told["exceptionDetails"])[:500])
            return json.loads(told["result"]["value"])

        def shot() -> bytes:
            return base64.b64decode(talk.call("browsingContext.captureScreenshot", {"context": context})["data"])

        return Page(
            run,
            shot,
            lambda: (talk.call("browsingContext.close", {"context": context}), None)[1],
            lambda: (talk.call("browsingContext.activate", {"context": context}), None)[1],
        )

    def _contexts(self) -> list[dict[str, Any]]:
        assert self.talk is not None
        return list(self.talk.call("browsingContext.getTree", {"maxDepth": 0})["contexts"])

    def shown(self, part: str) -> Page:
        """The tab whose address has `part`."""
        found = until(f"a tab at {part}", lambda: [each for each in self._contexts() if part in each["url"]])
        return self._attached(found[0]["context"])

    def every(self, part: str) -> list[Page]:
        """Every tab whose address has `part`."""
        return [self._attached(each["context"]) for each in self._contexts() if part in each["url"]]

    def panel_url(self) -> str:
        """Where the panel lies: this profile was told which name the extension has in it."""
        return f"moz-extension://{GECKO_PLACE}/panel/panel.html"

    def _chrome(self, script: str) -> Any:
        """Run a script where the browser's own code runs."""
        assert self.talk is not None
        tree = self.talk.call("browsingContext.getTree", {"moz:scope": "chrome", "maxDepth": 0})
        told = self.talk.call(
            "script.evaluate",
            {
                "expression": f"(async () => {{ {script} }})().then((it) => JSON.stringify(it ?? null))",
                "target": {"context": tree["contexts"][0]["context"]},
                "awaitPromise": True,
            },
        )
        if told.get("type") == "exception":
            raise Wrong(str(told["exceptionDetails"])[:500])
        return json.loads(told["result"]["value"])

    def kill_background(self) -> bool:
        """End the extension's background page, as the browser does when it has been idle."""
        return bool(
            self._chrome(
                f"const policy = WebExtensionPolicy.getByID({json.dumps(GECKO_ID)});"
                " const running = policy?.extension?.backgroundState === 'running';"
                " await policy?.extension?.terminateBackground("
                "{ ignoreDevToolsAttached: true, disableResetIdleForTest: true });"
                " return running;"
            )
        )

    def reload_extension(self) -> None:
        """Load the extension anew in open pages, as an update does."""
        self._chrome(
            "const { AddonManager } = ChromeUtils.importESModule('resource://gre/modules/AddonManager.sys.mjs');"
            f" const mine = await AddonManager.getAddonByID({json.dumps(GECKO_ID)}); await mine.reload(); return true;"
        )

    def tabs(self) -> list[str]:
        """The addresses of all tabs."""
        return [each["url"] for each in self._contexts()]

    def close_tabs(self, part: str) -> int:
        """Close every tab whose address has `part`."""
        assert self.talk is not None
        found = [each for each in self._contexts() if part in each["url"]]
        for each in found:
            self.talk.call("browsingContext.close", {"context": each["context"]})
        return len(found)


BROWSERS: Final = {"chromium": Chromium, "firefox": Firefox}


@contextlib.contextmanager
def browser(kind: str, folder: Path, lab: Any = None) -> Iterator[Browser]:
    """A browser of that kind, begun, and ended afterwards whatever happened."""
    with BROWSERS[kind](folder, lab) as begun:
        yield begun
