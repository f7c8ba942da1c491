"""The replaceable place where a task is worked, and the lease by which it holds the task.

A conversation may die, be superseded or be left; the task does not notice. Its lease number fences it: whatever
comes from a conversation whose number is not the task's present one is late, and is shown, not obeyed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenuto.model.ids import ConversationId, TaskId
from tenuto.model.lifecycle import LeaseState


@dataclass(frozen=True)
class Conversation:
    """One place of work. `identity` is what the outside calls it (a URL, a session id, a program's place).

    `place` is where its executor was when it was opened; None where that does not matter.
    """

    id: ConversationId
    revision: int
    task_id: TaskId
    identity: str
    executor: str
    state: LeaseState
    lease_number: int | None
    expires_at: datetime | None
    opened_at: datetime
    parent: ConversationId | None = None
    root: ConversationId | None = None
    handoff_to: ConversationId | None = None
    ended_at: datetime | None = None
    turns: int = 0
    place: str | None = None
