"""A supervisor as a process of its own, which may be killed, and always is in the end.

It is what `tenuto start` runs, in a session of its own, with a registry that was filled before.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.world import NotMeasured, clean_environment, until

#: What a supervisor loads at its start and with its first visitors.
LOADED = (
    "tenuto.wiring.resident",
    "tenuto.wiring.daemon",
    "tenuto.surfaces.http.app",
    "tenuto.surfaces.mcp.mounted",
    "tenuto.surfaces.mcp.exchange",
    "tenuto.surfaces.mcp.server",
)


def warmed(folder: Path, bytecode: Path) -> None:
    """Have all that compiled, as it is where it was installed: what compiles is larger for as long as it lives."""
    subprocess.run(
        [sys.executable, "-c", f"import {', '.join(LOADED)}"],
        env=clean_environment(folder, bytecode),
        check=True,
        capture_output=True,
        timeout=300,
    )


class Detached:
    """One supervisor process at a time for the registry in `folder`."""

    def __init__(self, folder: Path, bytecode: Path) -> None:
        self._environment = clean_environment(folder, bytecode)
        self._log = folder / "bench.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """Start one; its pid. Does not wait until it leads."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tenuto.wiring.resident"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL, and reaped."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """Ask it to stop, and wait; killed when it does not."""
        if self.process is None or self.process.poll() is not None:
            return
        os.kill(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill()

    def until(self, what: str, come: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait for something; NotMeasured when it does not come or the supervisor ends by itself."""

        def looked() -> bool:
            if self.process is not None and self.process.poll() is not None:
                tail = self._log.read_text("utf-8", "replace")[-300:]
                raise NotMeasured(f"the supervisor ended with {self.process.returncode} before {what}: {tail}")
            return come()

        until(what, looked, seconds)


@contextmanager
def supervisor_of(folder: Path, bytecode: Path) -> Iterator[Detached]:
    """A supervisor process that is stopped in the end."""
    one = Detached(folder, bytecode)
    try:
        yield one
    finally:
        one.stop()
