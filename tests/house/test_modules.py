"""Every module says what it is for, and somebody asks for it."""

import ast
import re
from pathlib import Path

import pytest

# Entered from outside by name or by path, so no module of the tree needs to import them.
DOORS = ("tenuto.__main__", "tenuto.wiring", "tenuto.store.migrations.")


def test_every_module_opens_with_a_paragraph(tracked: dict[str, bytes]) -> None:
    silent = [
        path
        for path, content in tracked.items()
        if path.endswith(".py") and not paragraph(ast.get_docstring(ast.parse(content)))
    ]
    assert not silent, f"these say nothing of what they are for: {silent}"


def test_no_module_is_without_a_reader(tracked: dict[str, bytes]) -> None:
    modules = {module(path) for path in tracked if path.startswith("src/") and path.endswith(".py")}
    rooms = {module(path) for path in tracked if path.startswith("src/") and path.endswith("/__init__.py")}
    asked: set[str] = set()
    for path, content in tracked.items():
        if path.endswith(".py"):
            mine = module(path) if path.startswith("src/") else path
            asked |= {name for name in mentions(ast.parse(content)) if name != mine}
    dead = sorted(name for name in modules - rooms - asked if not name.startswith(DOORS))
    assert not dead, f"nothing imports or names these: {dead}"


def test_no_tracked_file_is_empty(tracked: dict[str, bytes]) -> None:
    empty = [
        path
        for path, content in tracked.items()
        if not content.strip() and Path(path).name != "py.typed" and "/fixtures/" not in path and "/data/" not in path
    ]
    assert not empty, f"these hold nothing: {empty}"


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (None, False),
        ("Helpers.", False),
        ("One attempt to act on the world, written down before it is made", False),
        ("One attempt to act on the world, written down before it is made.", True),
    ],
)
def test_a_paragraph_is_a_sentence_of_some_words(docstring: str | None, expected: bool) -> None:
    assert paragraph(docstring) is expected


def paragraph(docstring: str | None) -> bool:
    """Tell whether a docstring holds at least one whole sentence, and six words."""
    text = (docstring or "").strip()
    return len(text.split()) >= 6 and re.search(r"[.:?!](\s|$)", text) is not None


def module(path: str) -> str:
    """Return the dotted name of a file below src/."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def mentions(tree: ast.Module) -> set[str]:
    """Return every dotted name a module imports, or names in a string such as "tenuto.wiring:main"."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names}
            case ast.ImportFrom(module=str(source), names=names):
                found |= {source} | {f"{source}.{name.name}" for name in names}
            case ast.Constant(value=str(text)) if text.startswith("tenuto."):
                found.add(text.split(":")[0])
            case _:
                pass
    return found
