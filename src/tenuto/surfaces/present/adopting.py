"""Sessions of agent programs, as JSON-ready answers: names and moments, no word of what was said in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenuto.model.ids import TaskId
from tenuto.model.session import SessionFacts
from tenuto.surfaces.present import rows


def agent_sessions(found: Iterable[tuple[SessionFacts, TaskId | None]]) -> dict[str, Any]:
    """The sessions of a program, newest first, each with what stands against its adoption."""
    return {"sessions": [_one(facts, bound) for facts, bound in found]}


def _one(facts: SessionFacts, bound: TaskId | None) -> dict[str, Any]:
    return {
        "agent": facts.adapter,
        "session": facts.session,
        "cwd": facts.cwd,
        "changed_at": rows.instant(facts.changed_at),
        "open_in": facts.running,
        "newer": facts.newer,
        "task": bound,
    }
