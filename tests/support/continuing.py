"""A Local Shell MCP's own code for continuing a plan: one act at a time, each at the moment that it is told.

No tool of any version makes a claim to continue; the server's live workspace does, after a quarter of an hour. So this
runs the manager of sessions of an installed version over its state directory, under a clock that the test sets. It is
run by that version's own interpreter, and knows nothing of ours.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.localshell import Shell, installed

LIMIT = 60.0
PROGRAM = """
import json, sys, pathlib
from local_shell_mcp import session_runtime as runtime

class Clock:
    now = 0.0
    def time(self):
        return self.now

runtime.time = clock = Clock()
manager = runtime.SessionRuntimeManager(pathlib.Path(sys.argv[1]))
for line in sys.stdin:
    asked = json.loads(line)
    clock.now = asked["at"]
    try:
        said = getattr(manager, asked["act"] + "_plan_continuation")(*asked["given"], **asked["more"])
        told = {"said": said}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told, default=str), flush=True)
"""


class Continuer:
    """What continues the plans of a server, under a clock of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def does(self, act: str, at: float, *given: Any, **more: Any) -> Any:
        """Claim, validate, report or abandon a continuation; its answer. Raises RuntimeError for what it refuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"act": act, "at": at, "given": given, "more": more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended with {self._process.wait(LIMIT)}")
        told = json.loads(line)
        if "error" in told:
            raise RuntimeError(told["error"])
        return told["said"]


@contextmanager
def continuing(shell: Shell) -> Iterator[Continuer]:
    """Run it beside a server while this lasts."""
    python = installed(shell.version).with_name("python")
    with subprocess.Popen(
        [str(python), "-c", PROGRAM, str(Path(shell.state))],
        env=shell.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield Continuer(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
