"""The protocol's own judge on our transport: every scenario that a version requires, foreign hosts and origins too.

A server with the fixtures that the judge wants stands behind our guard. It is judged as the product serves, each
request by itself, and once more with sessions kept, which is what the older versions need for a server that asks.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.programs import installed, path

HERE = Path(__file__).parent
KNOWN = HERE / "mcp_expected_failures.yml"
TOTAL = re.compile(r"Total: (\d+) passed, (\d+) failed")


@contextmanager
def fixtures(mode: str) -> Iterator[str]:
    """The address of a server with fixtures."""
    program = [sys.executable, str(HERE / "mcp_fixtures.py"), mode]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def judged(url: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """What the judge says of a server."""
    judge = installed("@modelcontextprotocol/conformance/dist/index.js")
    return subprocess.run(
        ["node", str(judge), "server", "--url", url, "-o", str(folder), *more],
        capture_output=True, text=True, timeout=150, check=False, env={"PATH": path(), "HOME": str(folder)},
    )  # fmt: skip


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("mode", "version", "least"),
    [
        ("alone", ("--requirements", "2026-07-28"), 120),
        ("alone", ("--requirements", "2025-11-25", "--expected-failures", str(KNOWN)), 60),
        ("sessions", ("--requirements", "2025-11-25"), 80),
        ("sessions", ("--spec-version", "2025-06-18"), 40),
    ],
    ids=["2026-07-28", "2025-11-25", "2025-11-25-sessions", "2025-06-18-sessions"],
)
def test_the_judge_passes_what_a_version_requires(
    mode: str, version: tuple[str, ...], least: int, tmp_path: Path
) -> None:
    with fixtures(mode) as url:
        said = judged(url, tmp_path, *version)
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-1000:]
    total = TOTAL.search(said.stdout)
    assert total is not None, said.stdout[-1000:]
    assert int(total[1]) >= least, "the judge looked at less than it should"


def test_the_judge_notices_a_missing_fixture(tmp_path: Path) -> None:
    """A known failure that does not fail is a failure: what the file leaves out is judged, and what it names is."""
    with fixtures("sessions") as url:
        said = judged(url, tmp_path, "--scenario", "tools-call-sampling", "--expected-failures", str(KNOWN))
        assert said.returncode == 1, said.stdout[-1000:]
        said = judged(url, tmp_path, "--scenario", "dns-rebinding-protection")
        assert said.returncode == 0, said.stdout[-1000:]
