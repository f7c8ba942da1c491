"""The import contracts hold, and each of them breaks when it is broken.

A contract that never fails protects nothing, so the package is copied, harmed in
one place and judged again.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

LAYERS = "Each room knows only the rooms below it"
DESK = "Faces reach the world only through the engine's desk"
PURE = "Model and core import no clock, chance, outside world or framework"
ACYCLIC = "No room and no module of a room imports in a circle"


@dataclass(frozen=True)
class Harm:
    """Files to add to the package, by path, and the contract that has to break."""

    broken: str
    files: dict[str, str]


HARMS = {
    "the core knows the store": Harm(LAYERS, {"core/harm.py": "import tenuto.store\n"}),
    "the model knows the core": Harm(LAYERS, {"model/harm.py": "import tenuto.core\n"}),
    "the store knows a transport": Harm(LAYERS, {"store/harm.py": "import tenuto.transports\n"}),
    "a transport knows a source": Harm(LAYERS, {"transports/harm.py": "import tenuto.sources\n"}),
    "the engine knows the store": Harm(LAYERS, {"engine/harm.py": "import tenuto.store\n"}),
    "the engine knows a face": Harm(LAYERS, {"engine/harm.py": "import tenuto.surfaces\n"}),
    "a face knows the proof": Harm(LAYERS, {"surfaces/harm.py": "import tenuto.proof\n"}),
    "the core reads a prompt": Harm(LAYERS, {"core/harm.py": "import tenuto.prompts\n"}),
    "a room nobody planned": Harm(LAYERS, {"attic.py": ""}),
    "a face knows the store": Harm(DESK, {"surfaces/harm.py": "import tenuto.store\n"}),
    "a face knows a source": Harm(DESK, {"surfaces/harm.py": "import tenuto.sources\n"}),
    "the core reads the clock": Harm(PURE, {"core/harm.py": "import time\n"}),
    "the core draws chance": Harm(PURE, {"core/harm.py": "from random import random\n"}),
    "the core logs": Harm(PURE, {"core/harm.py": "import logging\n"}),
    "the model makes ids": Harm(PURE, {"model/harm.py": "import uuid\n"}),
    "the model knows a framework": Harm(PURE, {"model/harm.py": "from pydantic import BaseModel\n"}),
    "the model opens files": Harm(PURE, {"model/harm.py": "from pathlib import Path\n"}),
    "a circle within a room": Harm(
        ACYCLIC, {"core/harm.py": "import tenuto.core.harmed\n", "core/harmed.py": "import tenuto.core.harm\n"}
    ),
}


def judge(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts over a tree's own copy of the package."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path, root: Path) -> Path:
    """A tree that holds the package and its rules alone."""
    shutil.copytree(root / "src" / "tenuto", tmp_path / "src" / "tenuto", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold(copy: Path) -> None:
    said = judge(copy)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS.keys())
def test_a_contract_breaks_when(harm: Harm, copy: Path) -> None:
    for path, content in harm.files.items():
        (copy / "src" / "tenuto" / path).write_text(
            f'"""Harm done on purpose to see it noticed."""\n{content}', "utf-8"
        )
    said = judge(copy)
    assert said.returncode == 1, said.stdout
    assert f"{harm.broken} BROKEN" in said.stdout
