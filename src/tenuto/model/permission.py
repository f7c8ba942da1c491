"""What an agent's program asked leave for, and what was said to it.

A question belongs to one turn and one request of its program, and only that request is ever answered by its answer.
What is remembered beyond the turn is the answer for the same wish, told by its fingerprint, within the same task.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenuto.model.ids import AttemptId, CommandId, PermissionId, TaskId, TextId, WaitId


class Verdict(StrEnum):
    """ALLOW: this once. ALLOW_TASK: this very wish for as long as the task lives. DENY: no, with words if any."""

    ALLOW = "allow"
    ALLOW_TASK = "allow_task"
    DENY = "deny"


@dataclass(frozen=True)
class Permission:
    """One question of a program.

    `command_id` is the send whose turn asked, `request` the program's own name of the question. `fingerprint` is a
    sha256 (hex) over all that was asked for; `what` is as much of it as a person reads. `told_at` is when the program
    had its answer. `parked_at` is when it was told that nobody was there, so that no program stands waiting: the
    question is open still. It is closed when nothing hangs on it any more, and `outcome` says how that came.
    """

    id: PermissionId
    revision: int
    task_id: TaskId
    attempt_id: AttemptId
    command_id: CommandId
    request: str
    tool: str
    what: str
    fingerprint: str
    asked_at: datetime
    wait_id: WaitId | None = None
    verdict: Verdict | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    words: TextId | None = None
    parked_at: datetime | None = None
    told_at: datetime | None = None
    closed_at: datetime | None = None
    outcome: str | None = None

    @property
    def question(self) -> str:
        """As it is asked of a person."""
        return f"May it use {self.tool}: {self.what}"
