"""The catalogue of what happens: one name per thing that can be written in the append-only event table.

Events are audit, the outbox of the live feed and the input of replay. Their data are small scalars; bodies of texts
are never among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tenuto.model.ids import RunId, TaskId

Scalar = str | int | bool | None


class FactKind(StrEnum):
    SUPERVISOR_LEADS = "supervisor.leads"
    SUPERVISOR_STOPPED = "supervisor.stopped"
    HOLD_SET = "hold.set"
    HOLD_LIFTED = "hold.lifted"
    CLOCK_WENT_BACK = "clock.went_back"
    RUN_CREATED = "run.created"
    RUN_CHANGED = "run.changed"
    RUN_STOPPED = "run.stopped"
    RUN_DEAD_MAN = "run.dead_man"
    RUN_DEAD_MAN_REFUSED = "run.dead_man_refused"
    TASK_CREATED = "task.created"
    TASK_SPAWNED = "task.spawned"
    TASK_STARTED = "task.started"
    TASK_SLOT_BACK = "task.slot_given_back"
    TASK_PAUSED = "task.paused"
    TASK_RESUMED = "task.resumed"
    TASK_POLICY = "task.policy_changed"
    TASK_STALL_WARNED = "task.stall_warned"
    TASK_STALLED = "task.stalled"
    TASK_PROGRESSED = "task.progressed"
    TASK_CLAIMED = "task.completion_claimed"
    TASK_CHECK_FAILED = "task.check_failed"
    TASK_READY = "task.ready"
    TASK_HEALTH = "task.health_changed"
    TASK_TOOLS = "task.tools_changed"
    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    TASK_CANCELLED = "task.cancelled"
    CONVERSATION_OPENED = "conversation.opened"
    CONVERSATION_CLAIMED = "conversation.claimed"
    CONVERSATION_OFFERED = "conversation.offered"
    CONVERSATION_SUPERSEDED = "conversation.superseded"
    CONVERSATION_ENDED = "conversation.ended"
    ATTEMPT_ARMED = "attempt.armed"
    ATTEMPT_ENDED = "attempt.ended"
    COMMAND_ARMED = "command.armed"
    COMMAND_SUBMITTED = "command.submitted"
    COMMAND_ACKNOWLEDGED = "command.acknowledged"
    COMMAND_AMBIGUOUS = "command.ambiguous"
    COMMAND_FAILED = "command.failed"
    COMMAND_RELEASED = "command.released"
    COMMAND_CANCELLED = "command.cancelled"
    WAIT_OPENED = "wait.opened"
    WAIT_CLOSED = "wait.closed"
    WAKE_ADDED = "wake.added"
    MESSAGE_STORED = "message.stored"
    MESSAGE_CARRIED = "message.carried"
    MESSAGE_DELIVERED = "message.delivered"
    MESSAGE_RETRIED = "message.retried"
    REPORT_RECORDED = "report.recorded"
    TOKEN_MADE = "token.made"  # noqa: S105 - the name of an event
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - the name of an event
    EXECUTOR_SETTLED = "executor.settled"
    PERMISSION_ASKED = "permission.asked"
    PERMISSION_ANSWERED = "permission.answered"
    PERMISSION_PARKED = "permission.parked"
    LIMIT_MET = "limit.met"
    LIMIT_OVER = "limit.over"
    TASK_HINDERED = "task.hindered"
    LATE_WORD = "late.word"
    SAMPLE_TAKEN = "sample.taken"
    CHAIN_STARTED = "chain.started"
    CHAIN_HANDED = "chain.handed_over"
    CHAIN_RECORDED = "chain.recorded"
    CHAIN_ADVANCED = "chain.advanced"
    CHAIN_WAITS = "chain.waits"
    CHAIN_ENDED = "chain.ended"
    CHAIN_SWEPT = "chain.swept"
    WORKTREE_MADE = "worktree.made"
    WORKTREE_FAILED = "worktree.failed"
    WORKTREE_KEPT = "worktree.kept"
    WORKTREE_REMOVED = "worktree.removed"
    PHASE_OPENED = "phase.opened"
    PHASE_MERGED = "phase.merged"
    PHASE_REVERTED = "phase.reverted"
    PHASE_CLOSED = "phase.closed"
    PROPOSAL_OPENED = "proposal.opened"
    PROPOSAL_MOVED = "proposal.moved"
    PROPOSAL_GATED = "proposal.gated"
    PROPOSAL_MERGED = "proposal.merged"
    PROPOSAL_TURNED_DOWN = "proposal.turned_down"
    REVIEW_ASKED = "review.asked"
    REVIEW_SAID = "review.said"
    MERGE_FOREIGN = "merge.foreign"
    MERGING_OFF = "merging.off"
    MERGING_ON = "merging.on"
    FINDING = "finding"
    RESTED = "decision.rested"


@dataclass(frozen=True)
class Fact:
    """One thing that happened to one task or run (or to neither)."""

    kind: FactKind
    run_id: RunId | None = None
    task_id: TaskId | None = None
    data: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """A recorded fact: numbered (epoch, n) by the leader's writer; `n` alone is a total order."""

    epoch: int
    n: int
    at: datetime
    fact: Fact
