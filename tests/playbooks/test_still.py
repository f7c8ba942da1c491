"""A long wait costs nothing: while nothing happens, next to nothing is written, whatever a task waits for."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from tests.playbooks.stage import Stage
from tests.support import builders as b
from tests.support.world import OPERATOR

from tenuto.core import arm, slots
from tenuto.model.change import Commit
from tenuto.model.decision import Because, Rung
from tenuto.model.ids import TaskId
from tenuto.model.work import WaitKind

NIGHT = timedelta(hours=1)


async def waiting(stage: Stage, kind: WaitKind, subject: str | None = None) -> TaskId:
    """A task that waits for something of this kind."""
    task = await stage.create(manual=True)
    await stage.desk.wait(OPERATOR, task, kind, "until then", subject=subject)
    await stage.desk.continue_(OPERATOR, task)
    await stage.turn_the_wheel()
    return task


async def test_a_night_of_waiting_is_written_down_now_and_then(tmp_path: Path) -> None:
    stage = Stage(tmp_path, slots=1)
    await stage.open()
    try:
        running = await stage.create()
        told = {"running": running, "in line": await stage.create(), "second in line": await stage.create()}
        told["path"] = await waiting(stage, WaitKind.PATH, "never.txt")
        told["commit"] = await waiting(stage, WaitKind.COMMIT, "feature into main")
        told["task"] = await waiting(stage, WaitKind.TASK, running)
        told["person"] = await waiting(stage, WaitKind.HUMAN)
        told["permission"] = await waiting(stage, WaitKind.PERMISSION)
        paused = told["paused"] = await stage.create()
        await stage.desk.pause(OPERATOR, paused)
        told["manual"] = await stage.create(manual=True)
        await stage.pass_time(timedelta(minutes=10))

        written: Counter[str] = Counter()
        commit = stage.ledger.commit

        async def counted(one: Commit) -> object:
            written.update(row.id for row in one.puts if hasattr(row, "look_at"))
            return await commit(one)

        stage.ledger.commit = counted  # type: ignore[method-assign,assignment]
        passes = stage.passes
        await stage.pass_time(NIGHT)
        assert stage.passes - passes > 100, "they were looked at all the time"
        counts = {name: written[task] for name, task in told.items() if name != "running"}
        most = NIGHT // (arm.NET - arm.SOON) + 2
        assert all(count <= most for count in counts.values()), counts
        assert counts["person"] + counts["permission"] + counts["paused"] + counts["manual"] == 0, counts
    finally:
        await stage.close()


@pytest.mark.parametrize("rung", sorted(arm.POLLED))
def test_a_look_that_comes_soon_is_written_once_for_many(rung: Rung) -> None:
    because = Because(rung, "it is not there yet", "it comes", b.NOW + 5 * b.S)
    net = arm.netted(None, b.NOW + 5 * b.S, because, b.NOW)
    assert net == b.NOW + arm.NET, "whoever comes after looks by then"
    later = b.NOW + 60 * b.S
    assert arm.netted(net, later + 5 * b.S, because, later) == net, "nothing is written"
    due = b.NOW + arm.NET
    assert arm.netted(net, due + 5 * b.S, because, due) == due + arm.NET
    ahead = b.NOW + b.DAY
    assert arm.netted(ahead, b.NOW + 5 * b.S, because, b.NOW) == b.NOW + arm.NET, "one that is too far ahead is no net"
    assert arm.netted(None, b.NOW + b.H, because, b.NOW) == b.NOW + b.H
    assert arm.netted(net, None, because, b.NOW) is None


def test_a_moment_that_ends_the_reason_itself_is_written_as_it_is() -> None:
    """What is due then is made ready for before, by the moment in the row."""
    because = Because(Rung.SPACING, "not due yet", "time", b.NOW + 5 * b.S)
    assert arm.netted(None, b.NOW + 5 * b.S, because, b.NOW) == b.NOW + 5 * b.S


def test_nobody_in_line_passes_for_forgotten_who_is_looked_at() -> None:
    assert arm.NET + arm.SOON < slots.FORGOTTEN
