"""Binding tool sessions to a task, and what is a service: each change is exactly the one that was asked for."""

from __future__ import annotations

from dataclasses import replace

from tests.support import builders as b

from tenuto.core import supervision
from tenuto.model.change import Commit
from tenuto.model.decision import Because, Rung
from tenuto.model.lifecycle import TaskState
from tenuto.model.tools import ToolBinding
from tenuto.model.work import Task

ONE, TWO = ToolBinding("local", "s_" + "1" * 24), ToolBinding("local", "s_" + "2" * 24)
BOTH = b.with_tools(b.IDLE, ONE, TWO)


def bound(outcome: supervision.Outcome) -> tuple[ToolBinding, ...]:
    assert isinstance(outcome, Commit), outcome
    (task,) = [row for row in outcome.puts if isinstance(row, Task)]
    return task.tools


def test_one_session_or_all_of_them_count_no_more() -> None:
    assert bound(supervision.unbind(BOTH, ONE.subject, "me", b.NOW, b.new)) == (TWO,)
    assert bound(supervision.unbind(BOTH, None, "me", b.NOW, b.new)) == ()
    assert supervision.unbind(BOTH, "local/other", "me", b.NOW, b.new) is None
    assert supervision.unbind(b.IDLE, None, "me", b.NOW, b.new) is None


def test_a_session_is_bound_once_and_only_so_many_are() -> None:
    assert bound(supervision.bind(BOTH, "far", "s_" + "3" * 24, "me", b.NOW, b.new))[:2] == (ONE, TWO)
    assert supervision.bind(BOTH, ONE.server, ONE.session, "me", b.NOW, b.new) is None
    full = b.with_tools(b.IDLE, *(ToolBinding("local", f"s_{n:024x}") for n in range(supervision.BINDINGS)))
    refused = supervision.bind(full, "far", ONE.session, "me", b.NOW, b.new)
    assert isinstance(refused, Because)
    assert refused.rung is Rung.TOOL
    nearly = b.with_tools(b.IDLE, *(ToolBinding("local", f"s_{n:024x}") for n in range(supervision.BINDINGS - 1)))
    assert len(bound(supervision.bind(nearly, "far", ONE.session, "me", b.NOW, b.new))) == supervision.BINDINGS
    over = b.with_task(BOTH, state=TaskState.COMPLETED)
    assert isinstance(supervision.bind(over, "far", ONE.session, "me", b.NOW, b.new), Because)


def test_a_service_is_one_for_every_session_and_can_be_taken_back() -> None:
    marked = bound(supervision.mark_service(BOTH, "job_b", "me", b.NOW, b.new))
    assert [each.services for each in marked] == [("job_b",), ("job_b",)]
    more = bound(supervision.mark_service(b.with_tools(b.IDLE, *marked), "job_a", "me", b.NOW, b.new))
    assert [each.services for each in more] == [("job_a", "job_b")] * 2
    again = b.with_tools(b.IDLE, *more)
    assert supervision.mark_service(again, "job_a", "me", b.NOW, b.new) is None
    back = bound(supervision.mark_service(again, "job_a", "me", b.NOW, b.new, unmark=True))
    assert [each.services for each in back] == [("job_b",)] * 2
    assert isinstance(supervision.mark_service(b.IDLE, "job_a", "me", b.NOW, b.new), Because)
    many = tuple(f"job_{n:03}" for n in range(supervision.SERVICES))
    full = b.with_tools(b.IDLE, replace(ONE, services=many))
    assert isinstance(supervision.mark_service(full, "job_x", "me", b.NOW, b.new), Because)
    assert supervision.mark_service(full, many[0], "me", b.NOW, b.new) is None
