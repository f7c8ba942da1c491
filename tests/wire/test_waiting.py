"""What waits for an executor elsewhere is looked at as soon as that executor comes, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from tests.support import builders
from tests.support.world import Counting, SetClock

from tenuto.model.ids import TaskId
from tenuto.model.policy import KEEPING
from tenuto.model.work import Agent
from tenuto.ports import Ledger, NoFuse
from tenuto.wiring.executors import bridged


def test_what_waits_for_an_executor_is_rung_for_when_it_comes() -> None:
    idle = builders.IDLE.task
    tasks = [
        replace(idle, id=TaskId(f"t-{on}"), agent=Agent("program", ("x",), resumable=True, on=on))
        for on in ("host:far", "host:near", None)
    ]
    ledger = SimpleNamespace(
        registry=lambda: SimpleNamespace(id="r-1"),
        active=lambda limit: tuple(tasks[:limit]),
        under_way=lambda: (TaskId("t-live"),),
    )
    rung: list[TaskId] = []
    bridge = bridged(
        cast(Ledger, ledger), SetClock(), Counting(), NoFuse(), 20, KEEPING, lambda command: None, rung.append
    )[0]
    bridge.hooks.changed("host:far")
    assert sorted(rung) == ["t-host:far", "t-live"]
