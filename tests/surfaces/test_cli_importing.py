"""Importing from the command line, with a real supervisor: shown first, then done, then known."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.home import Home

pytestmark = [pytest.mark.timeout(300)]


@pytest.fixture
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="tn-"))  # short: its socket has little room
    made = Home(folder)
    try:
        made.tenuto("start")
        yield made
    finally:
        made.tenuto("stop")
        shutil.rmtree(folder, ignore_errors=True)


def test_what_is_shown_is_what_is_done_and_only_once(home: Home) -> None:
    rows = [
        {"id": "one", "prompt": "Do the first", "cwd": str(home.work), "status": "pending"},
        {"id": "sent", "prompt": "Do the second", "cwd": str(home.work), "status": "submitted"},
        {"id": "over", "prompt": "Do the third", "cwd": str(home.work), "status": "done"},
    ]
    source = home.folder / "old.json"
    source.write_text(json.dumps(rows))
    shown = home.tenuto("import", "--from", str(source))
    assert "would be imported" in shown
    assert "not sent again" in shown
    assert "1 are over there" in shown
    assert home.json("tasks")["tasks"] == [], "nothing was done"
    (found,) = home.json("import", "--from", str(source))["sources"]
    assert [item["origin"] for item in found["items"]] == ["one"]
    done = home.json("import", "--from", str(source), "--agent", "true", "--do")
    (made,) = done["items"]
    assert made["why"] is None
    (task,) = home.json("tasks")["tasks"]
    assert task["id"] == made["task"]
    assert "paused" in home.tenuto("explain", made["task"])
    again = home.json("import", "--from", str(source), "--agent", "true", "--do")
    assert again["items"][0]["why"] == "it was imported before"
    home.tenuto("resume", made["task"])
    home.tenuto("continue", made["task"])
    home.until("its one turn", lambda: home.json("show", made["task"])["task"]["attempts"] == 1)
