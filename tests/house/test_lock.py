"""The lock pins everything by content, and belongs to the inputs that lie beside it."""

import importlib
import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

# What the code imports of each extra; "windows" is absent because it installs nothing elsewhere.
EXTRAS = {
    "accessibility": ["jeepney"],
    "acp": ["acp"],
    "github": ["githubkit"],
    "mcp": ["mcp.server", "mcp.client.streamable_http"],
    "postgres": ["psycopg"],
}

NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?")


def canonical(name: str) -> str:
    """Spell a package's name the one way the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(root: Path) -> list[str]:
    """Return the lock's requirements, each with its continued lines."""
    told = (root / "requirements.lock").read_text("utf-8")
    lines = [line for line in told.splitlines() if line.strip() and not line.startswith("#")]
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def test_every_package_is_pinned_with_hashes(root: Path) -> None:
    loose = [
        entry.split()[0]
        for entry in entries(root)
        if not re.match(r"^[a-z0-9][a-z0-9._-]*(\[[^]]*\])?==\S+( ; .*?)? +--hash=sha256:[0-9a-f]{64}", entry)
    ]
    assert not loose, f"not pinned by version and content: {loose}"


def test_the_lock_names_no_address(root: Path) -> None:
    assert "://" not in (root / "requirements.lock").read_text("utf-8")


def test_everything_asked_for_is_in_the_lock(root: Path) -> None:
    told = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    asked = [*told["project"]["dependencies"], *told["dependency-groups"]["dev"], *told["build-system"]["requires"]]
    for extra in told["project"]["optional-dependencies"].values():
        asked += extra
    locked = {canonical(match[1]) for entry in entries(root) if (match := NAME.match(entry))}
    wanted = {canonical(match[1]) for line in asked if (match := NAME.match(line))}
    assert wanted <= locked, f"not in requirements.lock, run scripts/lock: {sorted(wanted - locked)}"


def test_the_lock_belongs_to_its_inputs(root: Path) -> None:
    digest = runpy.run_path(str(root / "scripts" / "inputs.py"))["digest"]
    first = (root / "requirements.lock").read_text("utf-8").splitlines()[0]
    assert first == f"# inputs: {digest(root)}", "pyproject.toml or requirements.in changed: run scripts/lock"


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_brings_can_be_imported_together_with_the_rest(extra: str) -> None:
    for name in EXTRAS[extra]:
        assert importlib.import_module(name).__name__ == name


def test_no_extra_is_forgotten(root: Path) -> None:
    told = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert set(told["project"]["optional-dependencies"]) == {*EXTRAS}


def test_every_program_of_the_tests_is_in_their_lock(root: Path) -> None:
    wanted = json.loads((root / "tests" / "node" / "package.json").read_text("utf-8"))
    locked = json.loads((root / "tests" / "node" / "package-lock.json").read_text("utf-8"))["packages"]
    names = {**wanted.get("devDependencies", {}), **wanted.get("optionalDependencies", {})}
    assert {name: locked.get(f"node_modules/{name}", {}).get("version") for name in names} == names
