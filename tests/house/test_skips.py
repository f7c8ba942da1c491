"""A skip fails the run in CI and nowhere else; what is left out on purpose does not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """
    import pytest

    def test_skips():
        pytest.skip("no such program here")
"""
LEAVES_OUT = """
    import pytest

    @pytest.mark.only_on("plan9")
    def test_elsewhere():
        assert False

    @pytest.mark.prove
    def test_long():
        assert False

    def test_here():
        assert True
"""
SKIPS_WHOLE = """
    import pytest

    pytest.importorskip("no_such_module_anywhere", reason="the module is missing")
"""


def run(place: Path, root: Path, program: str, ci: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one test file under the tree's conftest and settings."""
    tests = place / "tests"
    tests.mkdir()
    shutil.copy(root / "tests" / "conftest.py", tests)
    shutil.copy(root / "pyproject.toml", place)
    lines = [line[4:] for line in program.splitlines()]
    (tests / "test_it.py").write_text("\n".join(lines), "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TENUTO_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=place,
        env={**environment, "CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("arguments", [[], ["-n", "2"]], ids=["alone", "two workers"])
@pytest.mark.parametrize(
    ("program", "reason"),
    [(SKIPS, "no such program here"), (SKIPS_WHOLE, "the module is missing")],
    ids=["a test", "a whole file"],
)
def test_a_skip_fails_in_ci(tmp_path: Path, root: Path, program: str, reason: str, arguments: list[str]) -> None:
    said = run(tmp_path, root, program, "true", *arguments)
    assert said.returncode == 1, said.stdout
    told = said.stdout.split("skipped, which is a failure in CI")[1]
    assert reason in told


def test_a_skip_is_fine_at_home(tmp_path: Path, root: Path) -> None:
    assert run(tmp_path, root, SKIPS, "false").returncode == 0


def test_what_is_left_out_on_purpose_is_no_skip(tmp_path: Path, root: Path) -> None:
    said = run(tmp_path, root, LEAVES_OUT, "true")
    assert said.returncode == 0, said.stdout
    assert "2 deselected" in said.stdout
