"""A registry in a directory of its own with a real supervisor, on its socket and on a loopback port.

For tests in which real programs meet the product as it is installed: commands are processes, and nothing of the
machine's own user is read.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.programs import path

PATIENCE = 120.0


class Home:
    """One registry below `folder`; its programs work in `folder/work`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.environment = {
            "PATH": path(),
            "HOME": str(folder),
            "TENUTO_HOME": str(folder / "home"),
            "TENUTO_PORT": str(self.port),
        }
        if "PYTHONPATH" in os.environ:  # a copy of the tree is tried with its own code
            self.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]

    def tenuto(self, *arguments: str, text: str = "") -> str:
        """What one command prints; it must succeed."""
        said = subprocess.run(
            [sys.executable, "-m", "tenuto", *arguments],
            input=text, capture_output=True, text=True, timeout=60, check=False, cwd=self.work, env=self.environment,
        )  # fmt: skip
        assert said.returncode == 0, (arguments, said.stdout, said.stderr)
        return said.stdout

    def json(self, *arguments: str, text: str = "") -> dict[str, Any]:
        """What one command prints as JSON."""
        return dict(json.loads(self.tenuto(*arguments, "--json", text=text)))

    def until(self, what: str, holds: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait until something holds, for at most `patience` seconds."""
        end = time.monotonic() + patience
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not come within {patience} s")
            time.sleep(0.1)
