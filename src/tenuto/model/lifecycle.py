"""Every lifecycle as a table: which events move which states where.

The database's CHECKs and triggers, the diagrams in the documents and the code all read these tables; tests compare
them. A state that has no moves is terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from tenuto.model.faults import IllegalMove

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True)
class Lifecycle(Generic[S, E]):
    """A named table of moves with its start state."""

    name: str
    start: S
    moves: Mapping[S, Mapping[E, S]]

    def after(self, state: S, event: E) -> S:
        """The state that `event` leads to; IllegalMove where the table has none."""
        try:
            return self.moves[state][event]
        except KeyError:
            raise IllegalMove(f"{self.name}: {event} is no move from {state}") from None

    @property
    def states(self) -> tuple[S, ...]:
        return tuple(self.moves)

    @property
    def terminal(self) -> frozenset[S]:
        return frozenset(state for state, moves in self.moves.items() if not moves)

    @property
    def pairs(self) -> frozenset[tuple[S, S]]:
        """Every (from, to) that one event can make; a trigger in the store refuses all others."""
        return frozenset((state, after) for state, moves in self.moves.items() for after in moves.values())


class TaskState(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskEvent(StrEnum):
    STARTED = "started"
    SLOT_GIVEN_BACK = "slot_given_back"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TASK = Lifecycle[TaskState, TaskEvent](
    name="task",
    start=TaskState.PENDING,
    moves={
        TaskState.PENDING: {
            TaskEvent.STARTED: TaskState.ACTIVE,
            TaskEvent.COMPLETED: TaskState.COMPLETED,
            TaskEvent.FAILED: TaskState.FAILED,
            TaskEvent.CANCELLED: TaskState.CANCELLED,
        },
        TaskState.ACTIVE: {
            TaskEvent.SLOT_GIVEN_BACK: TaskState.PENDING,
            TaskEvent.COMPLETED: TaskState.COMPLETED,
            TaskEvent.FAILED: TaskState.FAILED,
            TaskEvent.CANCELLED: TaskState.CANCELLED,
        },
        TaskState.COMPLETED: {},
        TaskState.FAILED: {},
        TaskState.CANCELLED: {},
    },
)


class RunState(StrEnum):
    OPEN = "open"
    STOPPED = "stopped"


class RunEvent(StrEnum):
    STOPPED = "stopped"


RUN = Lifecycle[RunState, RunEvent](
    name="run",
    start=RunState.OPEN,
    moves={RunState.OPEN: {RunEvent.STOPPED: RunState.STOPPED}, RunState.STOPPED: {}},
)


class AttemptState(StrEnum):
    SCHEDULED = "scheduled"
    LIVE = "live"
    ENDED = "ended"
    CANCELLED = "cancelled"


class AttemptEvent(StrEnum):
    ARMED = "armed"
    ENDED = "ended"
    CANCELLED = "cancelled"


ATTEMPT = Lifecycle[AttemptState, AttemptEvent](
    name="attempt",
    start=AttemptState.SCHEDULED,
    moves={
        AttemptState.SCHEDULED: {
            AttemptEvent.ARMED: AttemptState.LIVE,
            AttemptEvent.CANCELLED: AttemptState.CANCELLED,
        },
        AttemptState.LIVE: {AttemptEvent.ENDED: AttemptState.ENDED},
        AttemptState.ENDED: {},
        AttemptState.CANCELLED: {},
    },
)


class CommandState(StrEnum):
    QUEUED = "queued"
    ARMED = "armed"
    SUBMITTED = "submitted"
    AMBIGUOUS = "ambiguous"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class CommandEvent(StrEnum):
    ARMED = "armed"
    BEGUN = "begun"
    DOUBTED = "doubted"
    ACKNOWLEDGED = "acknowledged"
    PROVEN_UNDONE = "proven_undone"
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


COMMAND = Lifecycle[CommandState, CommandEvent](
    name="command",
    start=CommandState.QUEUED,
    moves={
        CommandState.QUEUED: {
            CommandEvent.ARMED: CommandState.ARMED,
            CommandEvent.CANCELLED: CommandState.CANCELLED,
            CommandEvent.EXPIRED: CommandState.EXPIRED,
        },
        CommandState.ARMED: {
            CommandEvent.BEGUN: CommandState.SUBMITTED,
            CommandEvent.DOUBTED: CommandState.AMBIGUOUS,
            CommandEvent.PROVEN_UNDONE: CommandState.FAILED,
        },
        CommandState.SUBMITTED: {
            CommandEvent.ACKNOWLEDGED: CommandState.ACKNOWLEDGED,
            CommandEvent.DOUBTED: CommandState.AMBIGUOUS,
            CommandEvent.PROVEN_UNDONE: CommandState.FAILED,
        },
        CommandState.AMBIGUOUS: {
            CommandEvent.ACKNOWLEDGED: CommandState.ACKNOWLEDGED,
            CommandEvent.PROVEN_UNDONE: CommandState.FAILED,
            CommandEvent.RELEASED: CommandState.RELEASED,
        },
        CommandState.RELEASED: {CommandEvent.ACKNOWLEDGED: CommandState.ACKNOWLEDGED},
        CommandState.ACKNOWLEDGED: {},
        CommandState.FAILED: {},
        CommandState.CANCELLED: {},
        CommandState.EXPIRED: {},
    },
)
OPEN_COMMAND = frozenset({CommandState.ARMED, CommandState.SUBMITTED, CommandState.AMBIGUOUS})


class LeaseState(StrEnum):
    CANDIDATE = "candidate"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ENDED = "ended"
    ABANDONED = "abandoned"


class LeaseEvent(StrEnum):
    CLAIMED = "claimed"
    CLAIMED_AGAIN = "claimed_again"
    SUPERSEDED = "superseded"
    ENDED = "ended"
    ABANDONED = "abandoned"


LEASE = Lifecycle[LeaseState, LeaseEvent](
    name="lease",
    start=LeaseState.CANDIDATE,
    moves={
        LeaseState.CANDIDATE: {
            LeaseEvent.CLAIMED: LeaseState.ACTIVE,
            LeaseEvent.ABANDONED: LeaseState.ABANDONED,
        },
        LeaseState.ACTIVE: {
            LeaseEvent.CLAIMED_AGAIN: LeaseState.ACTIVE,
            LeaseEvent.SUPERSEDED: LeaseState.SUPERSEDED,
            LeaseEvent.ENDED: LeaseState.ENDED,
            LeaseEvent.ABANDONED: LeaseState.ABANDONED,
        },
        LeaseState.SUPERSEDED: {},
        LeaseState.ENDED: {},
        LeaseState.ABANDONED: {},
    },
)


class DeliveryState(StrEnum):
    RECORDED = "recorded"
    DEFERRED = "deferred"
    CARRIED = "carried"
    RETRY_WAIT = "retry_wait"
    AMBIGUOUS = "ambiguous"
    DELIVERED = "delivered"
    DROPPED = "dropped"


class DeliveryEvent(StrEnum):
    DEFERRED = "deferred"
    CARRIED = "carried"
    DELIVERED = "delivered"
    UNSENT = "unsent"
    TURNED_AWAY = "turned_away"
    DOUBTED = "doubted"
    DROPPED = "dropped"


DELIVERY = Lifecycle[DeliveryState, DeliveryEvent](
    name="delivery",
    start=DeliveryState.RECORDED,
    moves={
        DeliveryState.RECORDED: {DeliveryEvent.DEFERRED: DeliveryState.DEFERRED},
        DeliveryState.DEFERRED: {
            DeliveryEvent.CARRIED: DeliveryState.CARRIED,
            DeliveryEvent.DROPPED: DeliveryState.DROPPED,
        },
        DeliveryState.CARRIED: {
            DeliveryEvent.DELIVERED: DeliveryState.DELIVERED,
            DeliveryEvent.UNSENT: DeliveryState.RETRY_WAIT,
            DeliveryEvent.TURNED_AWAY: DeliveryState.DEFERRED,
            DeliveryEvent.DOUBTED: DeliveryState.AMBIGUOUS,
        },
        DeliveryState.RETRY_WAIT: {
            DeliveryEvent.DEFERRED: DeliveryState.DEFERRED,
            DeliveryEvent.CARRIED: DeliveryState.CARRIED,
            DeliveryEvent.DROPPED: DeliveryState.DROPPED,
        },
        DeliveryState.AMBIGUOUS: {
            DeliveryEvent.DELIVERED: DeliveryState.DELIVERED,
            DeliveryEvent.TURNED_AWAY: DeliveryState.DEFERRED,
            DeliveryEvent.DROPPED: DeliveryState.DROPPED,
        },
        DeliveryState.DELIVERED: {},
        DeliveryState.DROPPED: {},
    },
)
WAITING_DELIVERY = frozenset({DeliveryState.DEFERRED, DeliveryState.RETRY_WAIT})


class ChainState(StrEnum):
    OPEN = "open"
    COMPLETE = "complete"
    CAPPED = "capped"
    STOPPED = "stopped"


class ChainEvent(StrEnum):
    EXHAUSTED = "exhausted"
    CAP_REACHED = "cap_reached"
    STOPPED = "stopped"


CHAIN = Lifecycle[ChainState, ChainEvent](
    name="chain",
    start=ChainState.OPEN,
    moves={
        ChainState.OPEN: {
            ChainEvent.EXHAUSTED: ChainState.COMPLETE,
            ChainEvent.CAP_REACHED: ChainState.CAPPED,
            ChainEvent.STOPPED: ChainState.STOPPED,
        },
        ChainState.COMPLETE: {},
        ChainState.CAPPED: {},
        ChainState.STOPPED: {},
    },
)


class WorktreeState(StrEnum):
    PLANNED = "planned"
    READY = "ready"
    KEPT = "kept"
    GONE = "gone"
    FAILED = "failed"


class WorktreeEvent(StrEnum):
    MADE = "made"
    REFUSED = "refused"
    KEPT = "kept"
    REMOVED = "removed"


WORKTREE = Lifecycle[WorktreeState, WorktreeEvent](
    name="worktree",
    start=WorktreeState.PLANNED,
    moves={
        WorktreeState.PLANNED: {
            WorktreeEvent.MADE: WorktreeState.READY,
            WorktreeEvent.REFUSED: WorktreeState.FAILED,
        },
        WorktreeState.READY: {
            WorktreeEvent.KEPT: WorktreeState.KEPT,
            WorktreeEvent.REMOVED: WorktreeState.GONE,
        },
        WorktreeState.KEPT: {
            WorktreeEvent.KEPT: WorktreeState.KEPT,
            WorktreeEvent.REMOVED: WorktreeState.GONE,
        },
        WorktreeState.GONE: {},
        WorktreeState.FAILED: {},
    },
)


class PhaseState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"
    REVERTED = "reverted"


class PhaseEvent(StrEnum):
    MERGED = "merged"
    CLOSED = "closed"
    REOPENED = "reopened"
    REVERTED = "reverted"


PHASE = Lifecycle[PhaseState, PhaseEvent](
    name="phase",
    start=PhaseState.OPEN,
    moves={
        PhaseState.OPEN: {
            PhaseEvent.MERGED: PhaseState.MERGED,
            PhaseEvent.CLOSED: PhaseState.CLOSED,
            PhaseEvent.REVERTED: PhaseState.REVERTED,
        },
        PhaseState.CLOSED: {
            PhaseEvent.REOPENED: PhaseState.OPEN,
            PhaseEvent.MERGED: PhaseState.MERGED,
            PhaseEvent.REVERTED: PhaseState.REVERTED,
        },
        PhaseState.MERGED: {
            PhaseEvent.REVERTED: PhaseState.REVERTED,
            PhaseEvent.REOPENED: PhaseState.OPEN,
        },
        PhaseState.REVERTED: {
            PhaseEvent.REOPENED: PhaseState.OPEN,
            PhaseEvent.MERGED: PhaseState.MERGED,
        },
    },
)


class ProposalState(StrEnum):
    OPEN = "open"
    MERGED = "merged"
    TURNED_DOWN = "turned_down"


class ProposalEvent(StrEnum):
    MERGED = "merged"
    TURNED_DOWN = "turned_down"


PROPOSAL = Lifecycle[ProposalState, ProposalEvent](
    name="proposal",
    start=ProposalState.OPEN,
    moves={
        ProposalState.OPEN: {
            ProposalEvent.MERGED: ProposalState.MERGED,
            ProposalEvent.TURNED_DOWN: ProposalState.TURNED_DOWN,
        },
        ProposalState.MERGED: {},
        ProposalState.TURNED_DOWN: {},
    },
)

ALL: tuple[Lifecycle, ...] = (TASK, RUN, ATTEMPT, COMMAND, LEASE, DELIVERY, CHAIN, WORKTREE, PHASE, PROPOSAL)  # type: ignore[type-arg]
