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


class Party(StrEnum):
    """Who says something: it decides what the words may pass, not what they mean."""

    OPERATOR = "operator"
    COORDINATOR = "coordinator"
    AGENT = "agent"
    TENUTO = "tenuto"


class MessageKind(StrEnum):
    """NEWS: what happened to the run's other tasks, or to a parent's children, in words of our own."""

    WORDS = "words"
    NEWS = "news"
    CHECKPOINT = "checkpoint"
    ANSWER = "answer"
    CHECK_FAILED = "check_failed"


@dataclass(frozen=True)
class Message:
    """Something one party says to a task: stored before any attempt to deliver it.

    `text` is None where the kind itself says everything (a checkpoint request has its own template). `not_before`
    bounds the way into a turn under way, and every way while a failed delivery waits to be tried again; `corrective`
    is the written reason for which the first of these bounds does not hold.
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
    party: Party = Party.OPERATOR
