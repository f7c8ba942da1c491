"""Playbooks on the disk: who goes before whom, and what lies outside of its scope is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

import tenuto.prompts
from tenuto.core import playbook
from tenuto.model.faults import Mistake, NotFound
from tenuto.transports.playbooks import PlaybookFolders

BUILT_IN = Path(tenuto.prompts.__file__).parent / "playbooks"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    top = tmp_path / "project"
    (top / ".git").mkdir(parents=True)
    (top / "deep" / "down").mkdir(parents=True)
    (top / ".tenuto" / "playbooks").mkdir(parents=True)
    return top


@pytest.fixture
def folders(tmp_path: Path) -> PlaybookFolders:
    (tmp_path / "config" / "playbooks").mkdir(parents=True)
    return PlaybookFolders(tmp_path / "config" / "playbooks", BUILT_IN)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.write_text(text)
    return path


def test_a_project_goes_before_the_user_and_the_user_before_what_comes_along(
    folders: PlaybookFolders, project: Path, tmp_path: Path
) -> None:
    deep = str(project / "deep" / "down")
    assert folders.find("implement", None, deep).scope == "built-in"
    put(tmp_path / "config" / "playbooks", "implement", "user's")
    assert folders.find("implement", None, deep).text == "user's"
    put(project / ".tenuto" / "playbooks", "implement", "project's")
    found = folders.find("implement", None, deep)
    assert (found.scope, found.text, found.root) == ("project", "project's", str(project))
    assert folders.find("implement", "user", deep).text == "user's"
    assert folders.find("implement", "built-in", deep).root is None
    with pytest.raises(NotFound):
        folders.find("implement", "project", str(tmp_path / "config"))


def test_what_lies_outside_is_not_there(folders: PlaybookFolders, project: Path, tmp_path: Path) -> None:
    place = project / ".tenuto" / "playbooks"
    secret = put(tmp_path, "secret", "outside")
    (place / "linked.md").symlink_to(secret)
    for name in ("linked", "missing"):
        with pytest.raises(NotFound):
            folders.find(name, "project", str(project))
    for name in ("../secret", "..", "a/b", "x.md", ""):
        with pytest.raises(Mistake):
            folders.find(name, None, str(project))
    (place / "folder.md").mkdir()
    put(place, "large", "x" * (playbook.BYTES + 1))
    (place / "latin.md").write_bytes(b"\xff")
    for name in ("folder", "large", "latin"):
        with pytest.raises(Mistake, match=name):
            folders.find(name, None, str(project))
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    put(tmp_path / "moved", "moved", "outside")
    with pytest.raises(NotFound):
        folders.find("moved", "project", str(project))


@pytest.mark.parametrize("path", sorted(BUILT_IN.glob("*.md")), ids=lambda path: path.stem)
def test_those_that_come_along_can_be_read(path: Path) -> None:
    read = playbook.read("built-in", path.stem, path.read_text("utf-8"))
    assert read.instructions
    assert read.delivery is not None
    assert read.agent is None
