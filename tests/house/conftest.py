"""The tree as the house rules see it: the files git tracks, read once."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top directory of the tree."""
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> dict[str, bytes]:
    """Every tracked file that still exists: its path from the top, and its content."""
    said = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, timeout=30)
    paths = [path for path in said.stdout.decode().split("\0") if path]
    return {path: (ROOT / path).read_bytes() for path in paths if (ROOT / path).is_file()}
