"""A real Local Shell MCP server of a given version, in a virtual environment of its own, driven over MCP.

The environments are made once and kept in the cache directory, so that only the first run on a machine installs
anything. A server and everything it started is ended by who started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT = 60.0


def cache() -> Path:
    """Where the environments are kept between runs."""
    base = os.environ.get("TENUTO_TEST_CACHE") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tenuto-tests"


def installed(version: str) -> Path:
    """The program of this version; made if it is not there, by one process at a time."""
    home = cache() / f"local-shell-mcp-{version}-py{sys.version_info[0]}.{sys.version_info[1]}"
    program, done = home / "bin" / "local-shell-mcp", home / "whole"
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True, timeout=300)
            ask = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", f"local-shell-mcp=={version}"]
            subprocess.run(
                ask,
                check=True,
                capture_output=True,
                timeout=600,
                env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            )
            done.touch()
    return program


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(what: str, holds: Callable[[], Any], limit: float = LIMIT) -> Any:
    """Look again and again until it holds; fails naming it."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.02)
    raise TimeoutError(f"it did not come about: {what}")


class Refused(Exception):
    """The server answered a tool call with an error; its words are the message."""


@dataclass
class Shell:
    """One server over one state directory."""

    version: str
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    _session: str | None = None
    _number: int = 0
    #: A short name of its own: the sockets of tmux have no room for the folder's.
    tmux: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tn-")))

    def __post_init__(self) -> None:
        (self.folder / "work").mkdir(parents=True, exist_ok=True)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "USER") if name in os.environ}
        return kept | {
            "HOME": str(self.folder),
            "TMUX_TMPDIR": str(self.tmux),
            "LOCAL_SHELL_MCP_WORKSPACE_ROOT": str(self.folder / "work"),
            "LOCAL_SHELL_MCP_STATE_DIR": str(self.state),
            "LOCAL_SHELL_MCP_HOST": "127.0.0.1",
            "LOCAL_SHELL_MCP_PORT": str(self.port),
            "LOCAL_SHELL_MCP_AUTH_MODE": "none",
            "LOCAL_SHELL_MCP_REMOTE_ENABLED": "false",
            "LOCAL_SHELL_MCP_UI_ENABLED": "false",
        }

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(installed(self.version)), "--mode", "mcp", "--no-remote"],
                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

        def answers() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            try:
                self._hello()
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return False
            return True

        until("the server answers", answers)

    def kill(self) -> None:
        """End the server as a crash would, and nothing that it started."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT)

    def stop(self) -> None:
        """End the server as an operator would, and if it does not end, as a crash would."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(LIMIT)

    def close(self) -> None:
        """End everything of it."""
        self.stop()
        for each in self.tmux.glob("tmux-*/*"):
            subprocess.run(["tmux", "-S", str(each), "kill-server"], check=False, capture_output=True, timeout=30)
        shutil.rmtree(self.tmux, ignore_errors=True)
        import psutil

        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("LOCAL_SHELL_MCP_STATE_DIR") == str(self.state):
                    process.kill()

    # -- MCP, as much of it as is needed

    def _hello(self) -> None:
        self._session = None
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self._ask("initialize", about, limit=5)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, 10)

    def _ask(self, method: str, params: dict[str, Any], limit: float = LIMIT) -> dict[str, Any]:
        self._number += 1
        body = self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, limit)
        lines = [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]
        for line in lines:
            answer = json.loads(line)
            if "result" in answer:
                return dict(answer["result"])
            if "error" in answer:
                raise Refused(str(answer["error"]))
        raise AssertionError(f"no answer in {body[:500]}")

    def _post(self, message: dict[str, Any], limit: float) -> str:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/mcp", json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request, timeout=limit) as answer:
            self._session = answer.headers.get("Mcp-Session-Id") or self._session
            return str(answer.read().decode())

    def tools(self) -> dict[str, tuple[str, ...]]:
        """Every tool that is offered, with the names of what it takes."""
        listed = self._ask("tools/list", {})["tools"]
        return {tool["name"]: tuple(tool["inputSchema"].get("properties", {})) for tool in listed}

    def tool(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; its data. Raises Refused."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        told = result.get("structuredContent") or {}
        if result.get("isError") or told.get("ok") is False:
            raise Refused(json.dumps(told) if told else str(result.get("content"))[:500])
        return dict(told.get("data") or {})

    # -- the same acts in the words of either version

    @property
    def old(self) -> bool:
        return self.version.startswith("4.0")

    def again(self) -> Shell:
        """Another connection to the same server: one client's new session detaches the run of its last one."""
        other = Shell(self.version, self.folder, self.port)
        other._hello()
        return other

    def begin(self, label: str) -> Session:
        client = self.again()
        data = client.tool("session_manage", action="start", label=label, objective="a moment to be judged",
                         **({"session_run_id": None} if self.old else {}))  # fmt: skip
        return Session(client, data["session_id"], (data.get("active_run") or {}).get("run_id"))


@dataclass
class Session:
    """A logical session, by which its tools are called."""

    shell: Shell
    id: str
    run: str | None

    def _me(self, ordinary: bool = True) -> dict[str, Any]:
        if self.shell.old:
            return {"session_run_id": self.run}
        return {"logical_session_id": self.id} if ordinary else {"session_id": self.id}

    def manage(self, action: str, **more: Any) -> dict[str, Any]:
        me = {"session_id": self.id} | ({"session_run_id": self.run} if self.shell.old else {})
        return self.shell.tool("session_manage", action=action, **me | more)

    def plan(self, action: str, **more: Any) -> dict[str, Any]:
        return self.shell.tool("plan_manage", action=action, **self._me(ordinary=False), **more)

    def call(self, tool: str, /, **more: Any) -> dict[str, Any]:
        return self.shell.tool(tool, **self._me(), **more)

    def job(self, command: str, name: str) -> str:
        return str(self.call("job_start", command=command, name=name)["job_id"])

    @contextlib.contextmanager
    def calling(self, command: str) -> Iterator[threading.Thread]:
        """A shell command under way; who leaves the block waits for its end, however it ends."""

        def go() -> None:
            with contextlib.suppress(Refused, OSError, AssertionError, ValueError, http.client.HTTPException):
                other.tool("run_shell", command=command, **self._me())

        other = self.shell.again()
        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield thread
        finally:
            thread.join(LIMIT)
