"""Real text for the demonstration: a scratch repository filled from what lies beside this program.

Takes the Markdown files of the project (where it runs from a checkout) and text files of installed packages, copies
them under their own names and commits them. Nothing outside the scratch directory is changed.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import tenuto

SUFFIXES = (".md", ".rst", ".py")
LARGEST = 60_000
OWN = 16
GIT = ("git", "-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")


def own_documents() -> Iterator[tuple[Path, str]]:
    """The project's Markdown files with the names they get; none where this is not a checkout."""
    root = Path(tenuto.__file__).parent.parent.parent
    if not (root / "pyproject.toml").is_file():
        return
    for path in (
        sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md")) + sorted((root / "skills").rglob("*.md"))
    ):
        yield path, f"project/{path.relative_to(root)}"


def installed_texts() -> Iterator[tuple[Path, str]]:
    """Text files of installed packages: documents first, then modules, in a fixed order."""
    site = Path(sysconfig.get_paths()["purelib"])
    found = [path for path in site.rglob("*") if path.suffix in SUFFIXES and "tests" not in path.parts]
    for path in sorted(found, key=lambda p: (SUFFIXES.index(p.suffix), str(p))):
        yield path, f"packages/{path.relative_to(site)}"


def fill(repository: Path, files: int) -> int:
    """Make a git repository with at least 30 and at most `files` real text files; how many it has."""
    repository.mkdir(parents=True)
    chosen: dict[str, Path] = {}
    for source, most in ((own_documents(), OWN), (installed_texts(), files)):
        taken = 0
        for path, name in source:
            if taken >= most or len(chosen) >= files:
                break
            if path.is_file() and 0 < path.stat().st_size <= LARGEST:
                chosen[name] = path
                taken += 1
    for name, path in chosen.items():
        target = repository / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "Texts as they were found")):
        subprocess.run([*GIT, *command], cwd=repository, check=True, capture_output=True)
    return len(chosen)


def commits_per_file(repository: Path) -> dict[str, int]:
    """How many commits say that they checked each file."""
    told = subprocess.run(
        [*GIT, "log", "--format=%(trailers:key=Checked,valueonly)"],
        cwd=repository, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    counts: dict[str, int] = {}
    for line in told.splitlines():
        if name := line.strip():
            counts[name] = counts.get(name, 0) + 1
    return counts


def expected(repository: Path) -> set[str]:
    """The tracked text files of the repository."""
    told = subprocess.run(
        [*GIT, "ls-files", "-z"], cwd=repository, check=True, capture_output=True, text=True
    ).stdout  # fmt: skip
    return {name for name in told.split("\0") if name.endswith((*SUFFIXES, ".txt")) and name != "REPORT.md"}
