"""The doctor's look outside: each thing that can be wrong is told with its mend, and nothing is changed by looking."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.world import OPERATOR, world

from tenuto import config
from tenuto.config import Settings
from tenuto.surfaces.cli.entrances import Check
from tenuto.wiring import examining

DATA = Path(__file__).parent.parent / "data" / "localshell"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith(("TENUTO_", "LOCAL_SHELL_"))]:
        monkeypatch.delenv(name)
    return replace(config.load({"TENUTO_HOME": str(tmp_path)}), state=tmp_path / "state")


def told(settings: Settings) -> dict[str, Check]:
    found = {check.name: check for check in examining.checks(settings)}
    assert all(check.mend for check in found.values() if check.ok is False), "what is wrong has a mend"
    return found


def test_an_empty_home_is_well(settings: Settings) -> None:
    found = told(settings)
    assert not [check for check in found.values() if check.ok is False]
    assert found["tool servers"].found == "none is known here"
    assert "descriptors" in found
    assert "processes" in found


def test_too_many_slots_for_the_descriptors(settings: Settings) -> None:
    """BR-210, BR-208: what the machine allows is compared with what could be needed."""
    found = told(replace(settings, slots=10_000_000))
    assert found["descriptors"].ok is False
    assert "ulimit" in found["descriptors"].mend


def test_tool_servers_are_looked_into(settings: Settings, tmp_path: Path) -> None:
    state = tmp_path / "lsm"
    named = replace(settings, tool_servers={"mine": state})
    assert told(named)["tool server mine"].ok is False
    (state / "sessions").mkdir(parents=True)
    assert told(named)["tool server mine"].ok
    session = state / "sessions" / f"s_{'1' * 24}.json"
    shutil.copy(DATA / "session-v1.json", session)
    assert told(named)["tool server mine"].found.startswith("1 sessions")
    session.write_text(json.dumps(json.loads(session.read_text()) | {"version": 9}))
    found = told(named)["tool server mine"]
    assert found.ok is False
    assert "version" in found.found
    session.write_text("{")
    assert told(named)["tool server mine"].ok is False


async def test_the_registry_is_compared_with_what_is_there(settings: Settings, tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task, _command = await it.doubted()
        it.clock.time = it.clock.time.replace(year=2999)
        await it.desk.hold(OPERATOR)
    found = told(replace(settings, database=str(tmp_path / "state" / "registry.sqlite3")))
    assert found["commands"].ok is False
    assert found["commands"].mend == "tenuto attention"
    assert found["clock"].ok is False
    assert found["directories"].ok
    assert found["agent programs"].ok
    assert task


def test_a_registry_that_cannot_be_read_is_said(settings: Settings) -> None:
    settings.state.mkdir()
    settings.registry_path.write_bytes(b"not a database at all, but long enough to look like something" * 50)
    assert told(settings)["tasks"].ok is None
