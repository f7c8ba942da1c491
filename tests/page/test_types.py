"""The page's script is plain JavaScript whose types hold: the strict checker finds nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
CHECKER = TOP / "tests" / "node" / "node_modules" / "typescript" / "bin" / "tsc"


def node() -> str:
    """The node of the tree's own environment, else the system's."""
    found = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    assert found is not None, "no node on this machine; requirements.lock names the package"
    return found


def test_the_strict_checker_finds_nothing() -> None:
    done = subprocess.run(
        [node(), str(CHECKER), "-p", str(TOP / "extension" / "tsconfig.json"), "--pretty", "false"],
        capture_output=True, text=True, timeout=100, check=False, cwd=TOP,
    )  # fmt: skip
    assert done.returncode in (0, 2), done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith(("extension/page/", "extension/contract"))]
    assert found == []


def test_it_would_find_something(tmp_path: Path) -> None:
    """The same checker with the same settings, over a copy that is wrong."""
    shutil.copytree(TOP / "extension", tmp_path / "extension")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "node").symlink_to(TOP / "tests" / "node")
    sensor = tmp_path / "extension" / "page" / "sensor.js"
    sensor.write_text(
        sensor.read_text("utf-8").replace("state,\n      hydrated,", "state: 'red',\n      hydrated,"), "utf-8"
    )
    done = subprocess.run(
        [node(), str(CHECKER), "-p", str(tmp_path / "extension" / "tsconfig.json"), "--pretty", "false"],
        capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "extension/page/sensor.js" in done.stdout
