"""What holds for every test of the tree.

Where CI=true, a skipped test fails the run and says why: a judgement that left
something out is not a judgement. A test for one platform is therefore marked
only_on and left out elsewhere, and a long proof is marked prove and left out
unless TENUTO_PROVE=1; both are choices of the tree, not accidents of a machine.
"""

import os
import sys

import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI") == "true"

# Supervisors that tests start serve no port unless a test asks for one: two runs must not meet.
os.environ.setdefault("TENUTO_PORT", "0")

# Deadlines measure the machine, not the code. In CI every run tries the same examples.
settings.register_profile("house", deadline=None, derandomize=IN_CI, print_blob=not IN_CI)
settings.load_profile("house")

skips = pytest.StashKey[list[str]]()


@pytest.fixture
def anyio_backend() -> str:
    """Name the event loop that coroutine tests run on: the one the supervisor uses."""
    return "asyncio"


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no skip seen."""
    config.stash[skips] = []
    config.pluginmanager.register(SkipsFail(config), "skips-fail")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to another platform, and long proofs nobody asked for."""
    proving = os.environ.get("TENUTO_PROVE") == "1"
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        platform = item.get_closest_marker("only_on")
        elsewhere = platform is not None and sys.platform not in platform.args
        unasked = item.get_closest_marker("prove") is not None and not proving
        (left if elsewhere or unasked else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


class SkipsFail:
    """Collects every skip with its reason, and fails the run for them in CI."""

    def __init__(self, config: pytest.Config) -> None:
        """Keep the config whose stash holds the list."""
        self.seen = config.stash[skips]

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Write down one skip; an expected failure is none."""
        if report.skipped and not hasattr(report, "wasxfail"):
            told = report.longrepr
            reason = told[2] if isinstance(told, tuple) else str(told)
            self.seen.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at one phase of one test."""
        self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Look at one file: it may have skipped itself as a whole."""
        self.note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a run that would have passed into a failed one."""
        if IN_CI and self.seen and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which skips failed the run."""
        if IN_CI and self.seen:
            terminalreporter.section("skipped, which is a failure in CI", red=True)
            for line in self.seen:
                terminalreporter.line(line)
