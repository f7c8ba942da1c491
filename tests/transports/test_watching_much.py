"""Watching much costs little: a list of jobs is parsed once for each writing, and a huge repository is looked at."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from tests.support.world import SetClock
from tests.transports.test_localshell import JOB1, ONE, State, T, state

from tenuto.model.tools import JobState, ToolBinding
from tenuto.transports.localshell import jobs
from tenuto.transports.localshell.servers import Life, Server
from tenuto.transports.localshell.witness import LocalShellWitness
from tenuto.transports.workspace import witness
from tenuto.transports.workspace.facts import Kind

__all__ = ["state"]


def test_a_list_is_parsed_once_for_each_writing(state: State) -> None:
    seer = LocalShellWitness(SetClock(), lambda _cwd: [Server("local", state.path)], alive=lambda _: Life(T))
    with mock.patch.object(jobs, "listed", wraps=jobs.listed) as parsed:
        for _ in range(3):
            assert seer.read(ToolBinding("local", ONE), None, state.now).running
        assert parsed.call_count == 1
        tree = json.loads((state.path / "jobs.json").read_text())
        tree["jobs"][0] |= {"status": "stopped", "error": "x"}
        new = state.path / "new.tmp"
        new.write_text(json.dumps(tree))
        new.replace(state.path / "jobs.json")
        (job,) = seer.read(ToolBinding("local", ONE), None, state.now).jobs
        assert (job.id, job.state) == (JOB1, JobState.STOPPED)
        assert parsed.call_count == 2


def filled(tmp_path: Path) -> None:
    """A repository of a hundred thousand files."""
    for folder in range(100):
        (tmp_path / f"{folder:03}").mkdir()
        for number in range(1000):
            (tmp_path / f"{folder:03}" / f"{number:04}.txt").write_text(f"{folder} {number}")
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=600)


@pytest.mark.prove
@pytest.mark.timeout(900)
async def test_a_repository_of_a_hundred_thousand_files_is_looked_at_within_its_limits(tmp_path: Path) -> None:
    await asyncio.to_thread(filled, tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    seen = await witness.look(tmp_path, timeout=timedelta(seconds=60))
    took = time.monotonic() - began
    assert seen.kind is Kind.GIT
    assert seen.dirty is not None
    assert took < 30, f"{took:.1f} s"
    (tmp_path / "050" / "0500.txt").write_text("changed")
    again = await witness.look(tmp_path, timeout=timedelta(seconds=60))
    assert again.cursor != seen.cursor
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
