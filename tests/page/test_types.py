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


def test_the_strict_checker_finds_nothing_but_what_is_wrong(tmp_path: Path) -> None:
    """Run once, over a copy with one wrong line in it: so it is known to look."""
    shutil.copytree(TOP / "extension", tmp_path / "extension")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "node").symlink_to(TOP / "tests" / "node")
    wrong = tmp_path / "extension" / "page" / "wrong.js"
    wrong.write_text("/** @type {import('../contract').Facts['state']} */\nexport const state = 'red';\n", "utf-8")
    done = subprocess.run(
        [node(), str(CHECKER), "-p", str(tmp_path / "extension" / "tsconfig.json"), "--pretty", "false"],
        capture_output=True, text=True, timeout=110, check=False, cwd=tmp_path,
    )  # fmt: skip
    ours = [line for line in done.stdout.splitlines() if line.startswith(("extension/page/", "extension/contract"))]
    assert len(ours) == 1, done.stdout + done.stderr
    assert ours[0].startswith("extension/page/wrong.js(2,14): error TS2322")
