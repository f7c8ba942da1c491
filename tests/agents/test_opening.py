"""A program that ends before its session is open: by itself it is a person's to mend, killed it is tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.transports.agents.adapters import ADAPTERS
from tenuto.transports.agents.channel import NotOpened, Start

GREETED = ("claude", "codex", "opencode", "pi")
"""Programs that are greeted before they get their words."""


@pytest.mark.parametrize("agent", GREETED)
@pytest.mark.parametrize(("end", "mendable"), [("exit 3", True), ("kill -9 $$", False)])
async def test_who_ended_it_tells_whether_a_person_is_needed(
    tmp_path: Path, agent: str, end: str, mendable: bool
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nread line\n{end}\n", "utf-8")
    program.chmod(0o700)
    channel = ADAPTERS[agent].make(Start((str(program),), str(tmp_path), {"PATH": "/usr/bin:/bin"}))
    with pytest.raises(NotOpened) as failed:
        await channel.open(None)
    assert failed.value.mendable is mendable
    assert not failed.value.unknown
