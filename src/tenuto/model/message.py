"""What parties say to a task.

A message is stored before any attempt to deliver it and is the only path by which one party reaches another's task.
Delivery is a lifecycle of its own: a message may wait, ride in a prompt, be turned away, or stay ambiguous, and none
of that changes what was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenuto.model.ids import CommandId, MessageId, TaskId, TextId
from tenuto.model.lifecycle import DeliveryState


class MessagePolicy(StrEnum):
    RECORD_ONLY = "record_only"
    NEXT_TURN = "next_turn"
    STEER_NOW = "steer_now"


class MessageKind(StrEnum):
    WORDS = "words"
    CHECKPOINT = "checkpoint"
    ANSWER = "answer"
    CHECK_FAILED = "check_failed"


@dataclass(frozen=True)
class Message:
    """Something one party says to a task: stored before any attempt to deliver it.

    `text` is None where the kind itself says everything (a checkpoint request has its own template).
    """

    id: MessageId
    revision: int
    task_id: TaskId
    sender: str
    kind: MessageKind
    policy: MessagePolicy
    text: TextId | None
    size: int
    state: DeliveryState
    created_at: datetime
    not_before: datetime
    corrective: str | None = None
    carried_by: CommandId | None = None
    tries: int = 0
    settled_at: datetime | None = None
