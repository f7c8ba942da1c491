"""The registry's tables, and what they refuse.

Each row type has the table of its name, with the columns its shape has. Beside them stand the holds, the idempotency
ledger and the append-only events. A truth the program relies on is said here a second time, as a constraint or an
index, so that no fault of ours can write its opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text, text

from tenuto.model import lifecycle
from tenuto.model.chain import Chain, Link, Outcome
from tenuto.model.command import Attempt, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sample, Sighting
from tenuto.model.fact import Event
from tenuto.model.lifecycle import (
    AttemptState,
    CommandState,
    DeliveryState,
    LeaseState,
    Lifecycle,
    PhaseState,
    ProposalState,
    RunState,
    TaskState,
    WorktreeState,
)
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.phase import Phase
from tenuto.model.snapshot import Leadership, Registry, Token
from tenuto.model.work import Report, Run, Task, TextKind, Wait, Wake
from tenuto.model.work import Text as Words
from tenuto.model.worktree import Worktree
from tenuto.store.rows import Field, Shape

METADATA = MetaData()
NUMBER = Integer().with_variant(BigInteger(), "postgresql")

REGISTRY, LEADERSHIP, RUN, TASK = Shape(Registry), Shape(Leadership), Shape(Run), Shape(Task)
CONVERSATION, ATTEMPT, COMMAND, MESSAGE = Shape(Conversation), Shape(Attempt), Shape(Command), Shape(Message)
WAIT, WAKE, REPORT, TEXT = Shape(Wait), Shape(Wake), Shape(Report), Shape(Words)
SAMPLE, SIGHTING, TOKEN, EVENT = Shape(Sample), Shape(Sighting), Shape(Token), Shape(Event)
CHAIN, LINK, WORKTREE, PHASE = Shape(Chain), Shape(Link), Shape(Worktree), Shape(Phase)
MANDATE, PROPOSAL, REVIEW = Shape(Mandate), Shape(Proposal), Shape(Review)
PERMISSION, LIMIT = Shape(Permission), Shape(UsageLimit)

#: Every row type that can be put, parents before their children: the order in which one commit writes them.
ORDER: tuple[Shape[Any], ...] = (
    REGISTRY,
    TEXT,
    RUN,
    TASK,
    CONVERSATION,
    ATTEMPT,
    COMMAND,
    WAIT,
    WAKE,
    MESSAGE,
    REPORT,
    SAMPLE,
    SIGHTING,
    TOKEN,
    CHAIN,
    LINK,
    PERMISSION,
    LIMIT,
    MANDATE,
    PROPOSAL,
    REVIEW,
    WORKTREE,
    PHASE,
)
#: The tables whose `state` follows a lifecycle.
LIFECYCLES: Mapping[str, Lifecycle] = {  # type: ignore[type-arg]
    "task": lifecycle.TASK,
    "run": lifecycle.RUN,
    "attempt": lifecycle.ATTEMPT,
    "command": lifecycle.COMMAND,
    "conversation": lifecycle.LEASE,
    "message": lifecycle.DELIVERY,
    "chain": lifecycle.CHAIN,
    "proposal": lifecycle.PROPOSAL,
    "worktree": lifecycle.WORKTREE,
    "phase": lifecycle.PHASE,
}
UNDELIVERED = (DeliveryState.DEFERRED, DeliveryState.CARRIED, DeliveryState.RETRY_WAIT, DeliveryState.AMBIGUOUS)
UNFINISHED = (TaskState.PENDING, TaskState.ACTIVE)

_PARENTS: Mapping[str, str] = {
    "task.run_id": "run.id",
    "task.objective": "text.id",
    "task.parent": "task.id",
    "task.slot_from": "task.id",
    "conversation.task_id": "task.id",
    "attempt.task_id": "task.id",
    "attempt.conversation_id": "conversation.id",
    "command.task_id": "task.id",
    "command.attempt_id": "attempt.id",
    "command.conversation_id": "conversation.id",
    "command.payload": "text.id",
    "wait.task_id": "task.id",
    "wake.task_id": "task.id",
    "message.task_id": "task.id",
    "message.text": "text.id",
    "message.carried_by": "command.id",
    "report.task_id": "task.id",
    "sample.task_id": "task.id",
    "sighting.task_id": "task.id",
    "token.task_id": "task.id",
    "chain.run_id": "run.id",
    "link.chain_id": "chain.id",
    "link.predecessor": "task.id",
    "link.task_id": "task.id",
    "link.command_id": "command.id",
    "permission.task_id": "task.id",
    "permission.attempt_id": "attempt.id",
    "permission.command_id": "command.id",
    "permission.wait_id": "wait.id",
    "permission.words": "text.id",
    "usagelimit.met_by": "task.id",
    "mandate.chain_id": "chain.id",
    "proposal.chain_id": "chain.id",
    "proposal.task_id": "task.id",
    "proposal.gate_command": "command.id",
    "proposal.merge_command": "command.id",
    "review.proposal_id": "proposal.id",
    "review.task_id": "task.id",
    "chain.swept": "text.id",
    "worktree.task_id": "task.id",
    "worktree.chain_id": "chain.id",
    "worktree.command_id": "command.id",
    "phase.chain_id": "chain.id",
    "phase.task_id": "task.id",
}


#: What a column that came later refuses: a table that is there cannot be given a rule of its own any more.
_RULES: Mapping[str, tuple[str, str]] = {
    "text.removed_at": ("text_removed_has_no_body", "removed_at IS NULL OR body IS NULL"),
}


def among(name: str, states: Iterable[StrEnum]) -> str:
    """SQL for "the column is one of these", spelled the same in an index and in the query that uses it."""
    return f"{name} IN ({', '.join(sorted(repr(str(state.value)) for state in states))})"


OPEN_COMMAND = among("state", lifecycle.OPEN_COMMAND)
LIVE_ATTEMPT = among("state", (AttemptState.LIVE,))
ACTIVE_LEASE = among("state", (LeaseState.ACTIVE,))
ACTIVE_TASK = among("state", (TaskState.ACTIVE,))
PENDING_TASK = among("state", (TaskState.PENDING,))
UNFINISHED_TASK = among("state", UNFINISHED)
OBJECTIVE_TEXT = among("kind", (TextKind.OBJECTIVE,))
SIDE_COMMAND = among("kind", (CommandKind.CHECK, CommandKind.INTERRUPT, CommandKind.PAGE_CLOSE))
UNDELIVERED_MESSAGE = among("state", UNDELIVERED)
STANDING_WORKTREE = among("state", (WorktreeState.READY, WorktreeState.KEPT))
MERGED_PROPOSAL = among("state", (ProposalState.MERGED,))
OPEN_PROPOSAL = among("state", (ProposalState.OPEN,))
NOT_DONE = f"outcome IS NULL OR outcome <> '{Outcome.DONE.value}'"


def _column(table: str, field: Field) -> Column[object]:
    parent, rule = _PARENTS.get(f"{table}.{field.name}"), _RULES.get(f"{table}.{field.name}")
    return Column(
        field.name,
        NUMBER if field.rule.kind is int else Text(),
        *([ForeignKey(parent)] if parent else []),
        *([_check(*rule)] if rule else []),
        primary_key=field.name == "id",
        nullable=field.nullable,
    )


def _check(name: str, rule: str) -> CheckConstraint:
    return CheckConstraint(text(rule), name=name)


def _both(first: str, second: str) -> str:
    return f"({first} IS NULL) = ({second} IS NULL)"


def _implies(condition: str, consequence: str) -> str:
    return f"NOT ({condition}) OR ({consequence})"


def _told(shape: Shape[Any]) -> list[CheckConstraint]:
    """A column `state` holds a state of its lifecycle, and a revision counts from 1."""
    found = []
    if shape.name in LIFECYCLES:
        found.append(_check(f"{shape.name}_state_known", among("state", LIFECYCLES[shape.name].states)))
    if shape.revised:
        found.append(_check(f"{shape.name}_revision_counts", "revision >= 1"))
    return found


def _table(shape: Shape[Any], *rules: CheckConstraint | Column[object]) -> Table:
    columns = [_column(shape.name, field) for field in shape.fields]
    return Table(shape.name, METADATA, *columns, *_told(shape), *rules, sqlite_strict=True)


def _one(name: str) -> tuple[Column[object], CheckConstraint]:
    """What makes a table hold one row at most."""
    return (
        Column("one", NUMBER, nullable=False, unique=True, server_default=text("1")),
        _check(f"{name}_is_one", "one = 1"),
    )


registry = _table(
    REGISTRY,
    *_one("registry"),
    _check("registry_held_by_somebody", _both("held_at", "held_by")),
    _check("registry_merging_off_by_somebody", _both("merging_off_at", "merging_off_by")),
)
leadership = _table(LEADERSHIP, *_one("leadership"), _check("leadership_epoch_counts", "epoch >= 1"))
words = _table(TEXT, _check("text_digest_is_sha256", "length(digest) = 64"))
run = _table(RUN, _check("run_stopped_at", f"({among('state', (RunState.STOPPED,))}) = (stopped_at IS NOT NULL)"))
_TERMINAL = among("state", lifecycle.TASK.terminal)
task = _table(
    TASK,
    _check("task_ended_at", f"({_TERMINAL}) = (ended_at IS NOT NULL)"),
    _check("task_disposition", f"({_TERMINAL}) = (disposition_reason IS NOT NULL)"),
    _check("task_disposition_whole", _both("disposition_reason", "disposition_source")),
    _check("task_started_at", _implies(ACTIVE_TASK, "started_at IS NOT NULL")),
    _check("task_paused_by_somebody", _both("paused_at", "paused_by")),
    _check("task_in_line_is_pending", _implies("queued_at IS NOT NULL", PENDING_TASK)),
    _check("task_ready_whole", _both("ready_at", "ready_note")),
)
conversation = _table(
    CONVERSATION,
    _check("conversation_leased", _implies(ACTIVE_LEASE, "lease_number IS NOT NULL AND expires_at IS NOT NULL")),
    _check("conversation_ended_at", f"({among('state', lifecycle.LEASE.terminal)}) = (ended_at IS NOT NULL)"),
)
attempt = _table(
    ATTEMPT,
    _check("attempt_live_at", _implies(LIVE_ATTEMPT, "live_at IS NOT NULL")),
    _check(
        "attempt_ended_at",
        _implies(among("state", (AttemptState.ENDED,)), "ended_at IS NOT NULL AND outcome IS NOT NULL"),
    ),
    _check(
        "attempt_not_ended",
        _implies(among("state", (AttemptState.SCHEDULED, AttemptState.LIVE)), "ended_at IS NULL AND outcome IS NULL"),
    ),
)
command = _table(
    COMMAND,
    _check("command_armed_at", _implies(OPEN_COMMAND, "armed_at IS NOT NULL")),
    _check(
        "command_queued", _implies(among("state", (CommandState.QUEUED,)), "armed_at IS NULL AND submitted_at IS NULL")
    ),
    _check("command_submitted_at", _implies(among("state", (CommandState.SUBMITTED,)), "submitted_at IS NOT NULL")),
    _check(
        "command_settled_at",
        f"({among('state', (*lifecycle.COMMAND.terminal, CommandState.RELEASED))}) = (settled_at IS NOT NULL)",
    ),
    _check(
        "command_was_armed",
        _implies(
            among("state", (CommandState.ACKNOWLEDGED, CommandState.FAILED, CommandState.RELEASED)),
            "armed_at IS NOT NULL",
        ),
    ),
    _check(
        "command_released_by_somebody",
        _implies(among("state", (CommandState.RELEASED,)), "released_by IS NOT NULL AND verdict IS NOT NULL"),
    ),
)
wait = _table(WAIT, _check("wait_closed_by_something", _both("closed_at", "closed_by")))
wake = _table(WAKE, _check("wake_consumed", _implies("consumed_by IS NOT NULL", "consumed_at IS NOT NULL")))
message = _table(
    MESSAGE,
    _check("message_carried_by", _implies(among("state", (DeliveryState.CARRIED,)), "carried_by IS NOT NULL")),
    _check(
        "message_settled_at",
        _implies(among("state", (DeliveryState.DELIVERED, DeliveryState.DROPPED)), "settled_at IS NOT NULL"),
    ),
)
report = _table(REPORT)
sample = _table(SAMPLE)
sighting = _table(SIGHTING, _check("sighting_ranked", "rank BETWEEN 1 AND 5"))
token = _table(TOKEN, _check("token_digest_is_sha256", "length(digest) = 64"))
chain = _table(
    CHAIN,
    _check("chain_ended_at", f"({among('state', lifecycle.CHAIN.terminal)}) = (ended_at IS NOT NULL)"),
    _check("chain_counts", "position >= 0 AND processed >= 0 AND processed <= position"),
    _check("chain_attempt_cap", "attempt_cap BETWEEN 1 AND 20"),
)
link = _table(
    LINK,
    _check("link_counts", "position >= 1 AND attempt >= 1"),
    _check("link_first_has_no_predecessor", "(position = 1) = (predecessor IS NULL)"),
    _check("link_recorded_outcome", _implies("recorded_at IS NOT NULL", "outcome IS NOT NULL")),
    _check("link_key_is_sha256", "length(key) = 64"),
)
worktree = _table(
    WORKTREE,
    _check("worktree_ended_at", f"({among('state', lifecycle.WORKTREE.terminal)}) = (ended_at IS NOT NULL)"),
    _check("worktree_begun", _implies(among("state", (WorktreeState.READY,)), "begun_at_commit IS NOT NULL")),
)
phase = _table(
    PHASE,
    _check("phase_number_counts", "number >= 1"),
    _check("phase_merged", _implies(among("state", (PhaseState.MERGED,)), "landing IS NOT NULL AND undone_by = '[]'")),
    _check("phase_settled_at", f"({among('state', (PhaseState.OPEN,))}) = (settled_at IS NULL)"),
)

mandate = _table(MANDATE, _check("mandate_reviews_count", "reviews BETWEEN 1 AND 100"))
proposal = _table(
    PROPOSAL,
    _check("proposal_counts", "number >= 1 AND reviews >= 0 AND gate_tries >= 0"),
    _check("proposal_settled_at", f"({among('state', lifecycle.PROPOSAL.terminal)}) = (settled_at IS NOT NULL)"),
    _check("proposal_merged_as", f"({among('state', (ProposalState.MERGED,))}) = (merged_as IS NOT NULL)"),
    _check("proposal_gated_at_a_commit", _both("gate_command", "gate_head")),
)
review = _table(
    REVIEW,
    _check("review_counts", "number >= 1"),
    _check("review_said_at", _both("verdict", "said_at")),
)

permission = _table(
    PERMISSION,
    _check("permission_answered_by_somebody", "(verdict IS NULL) = (answered_by IS NULL)"),
    _check("permission_answered_at", _both("verdict", "answered_at")),
    _check("permission_closed_somehow", _both("closed_at", "outcome")),
    _check("permission_fingerprint_is_sha256", "length(fingerprint) = 64"),
    _check(
        "permission_told_something", _implies("told_at IS NOT NULL", "verdict IS NOT NULL OR parked_at IS NOT NULL")
    ),
)
usagelimit = _table(
    LIMIT,
    _check("usagelimit_closed_by_something", _both("closed_at", "closed_by")),
    _check("usagelimit_counts", "met >= 1"),
)

hold = Table(
    "hold",
    METADATA,
    Column("scope", Text(), primary_key=True, nullable=False),
    Column("command_id", Text(), ForeignKey("command.id"), nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
idempotency = Table(
    "idempotency",
    METADATA,
    Column("scope", Text(), primary_key=True, nullable=False),
    Column("key", Text(), primary_key=True, nullable=False),
    Column("digest", Text(), nullable=False),
    Column("result", Text(), nullable=False),
    Column("at", NUMBER, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
event = Table(
    "event",
    METADATA,
    *(
        Column(
            field.name,
            NUMBER if field.rule.kind is int else Text(),
            primary_key=field.name == "n",
            autoincrement=False,
            nullable=field.nullable,
        )
        for field in EVENT.fields
    ),
    sqlite_strict=True,
)


def _index(name: str, *columns: Column[Any], where: str | None = None, unique: bool = False) -> Index:
    """An index of the rows for which `where` holds; said for one database, and by `ddl` for the other.

    Saying it for both here would bring all drivers of the other into every supervisor.
    """
    rules: dict[str, Any] = {} if where is None else {"sqlite_where": text(where)}
    return Index(name, *columns, unique=unique, **rules)


#: Truths that are taken or free: a commit that would break one is told its name.
UNIQUE = (
    _index("one_live_attempt_per_task", attempt.c.task_id, unique=True, where=LIVE_ATTEMPT),
    _index("one_attempt_per_number", attempt.c.task_id, attempt.c.number, unique=True),
    _index("one_active_conversation_per_task", conversation.c.task_id, unique=True, where=ACTIVE_LEASE),
    _index("one_active_conversation_per_identity", conversation.c.identity, unique=True, where=ACTIVE_LEASE),
    _index("one_pending_wake_per_kind", wake.c.task_id, wake.c.kind, unique=True, where="consumed_at IS NULL"),
    _index("one_token_per_digest", token.c.digest, unique=True),
    _index("one_link_per_position", link.c.chain_id, link.c.position, unique=True),
    _index("one_successor_per_task", link.c.chain_id, link.c.predecessor, unique=True),
    _index("one_link_per_task", link.c.task_id, unique=True),
    _index("one_link_per_cursor", link.c.chain_id, link.c.key, unique=True),
    _index("one_worktree_per_task", worktree.c.task_id, unique=True),
    _index("one_worktree_per_path", worktree.c.path, unique=True),
    _index("one_worktree_per_branch", worktree.c.repository, worktree.c.branch, unique=True),
    _index("one_phase_per_unit", phase.c.chain_id, phase.c.unit, unique=True),
    _index("one_phase_per_number", phase.c.chain_id, phase.c.number, unique=True),
    _index("one_mandate_per_chain", mandate.c.chain_id, unique=True),
    _index("one_proposal_per_task", proposal.c.task_id, unique=True),
    _index("one_open_proposal_per_chain", proposal.c.chain_id, unique=True, where=OPEN_PROPOSAL),
    _index("one_review_per_task", review.c.task_id, unique=True),
    _index("one_review_per_number", review.c.proposal_id, review.c.number, unique=True),
    _index("one_review_at_a_time", review.c.proposal_id, unique=True, where="verdict IS NULL"),
    _index("one_question_per_request", permission.c.command_id, permission.c.request, unique=True),
    _index("one_limit_per_account", usagelimit.c.account, usagelimit.c.name, unique=True, where="closed_at IS NULL"),
    _index("one_task_per_unit", link.c.place, link.c.unit, unique=True, where="recorded_at IS NULL"),
)
#: What makes a look cost what is due, not what exists.
SEARCHED = (
    _index("task_due", task.c.look_at, task.c.id, where="look_at IS NOT NULL"),
    _index("task_unfinished", task.c.run_id, task.c.id, where=UNFINISHED_TASK),
    _index("task_of_run", task.c.run_id, task.c.id),
    _index("task_of_parent", task.c.parent, task.c.id, where="parent IS NOT NULL"),
    _index("task_state", task.c.state, task.c.id),
    _index("task_in_line", task.c.created_at, task.c.id, where="queued_at IS NOT NULL"),
    _index("task_spawned", task.c.spawned_by, task.c.created_at, where="spawned_by IS NOT NULL"),
    _index("text_of_digest", words.c.digest, where=OBJECTIVE_TEXT),
    _index("task_of_objective", task.c.objective),
    _index("text_kept", words.c.task_id, words.c.id, where="body IS NOT NULL"),
    _index("token_named", token.c.id, where="name IS NOT NULL"),
    _index("conversation_of_task", conversation.c.task_id),
    _index("command_open", command.c.task_id, where=OPEN_COMMAND),
    _index("command_of_task", command.c.task_id, command.c.id),
    _index("command_of_attempt", command.c.attempt_id, command.c.id),
    _index("wait_open", wait.c.task_id, wait.c.id, where="closed_at IS NULL"),
    _index("wait_of_task", wait.c.task_id, wait.c.id),
    _index("every_wake_of_task", wake.c.task_id, wake.c.id),
    _index("message_of_task", message.c.task_id, message.c.id),
    _index("message_undelivered", message.c.task_id, message.c.id, where=UNDELIVERED_MESSAGE),
    _index("report_of_task", report.c.task_id, report.c.id),
    _index("sample_of_task", sample.c.task_id, sample.c.made_at),
    _index("sighting_of_task", sighting.c.task_id, sighting.c.id),
    _index("sighting_of_subject", sighting.c.task_id, sighting.c.subject, sighting.c.id),
    _index("chain_looked_at", chain.c.look_at, chain.c.id, where="look_at IS NOT NULL"),
    _index("worktree_of_chain", worktree.c.chain_id, worktree.c.id, where="chain_id IS NOT NULL"),
    _index("worktree_there", worktree.c.id, where=STANDING_WORKTREE),
    _index("proposal_of_chain", proposal.c.chain_id, proposal.c.id),
    _index("permission_open", permission.c.task_id, permission.c.id, where="closed_at IS NULL"),
    _index("permission_of_task", permission.c.task_id, permission.c.id),
    _index("usagelimit_open", usagelimit.c.id, where="closed_at IS NULL"),
    _index("token_of_task", token.c.task_id, token.c.id, where="revoked_at IS NULL"),
    _index("link_not_done", link.c.chain_id, link.c.unit, where=NOT_DONE),
    _index("event_of_task", event.c.task_id, event.c.n, where="task_id IS NOT NULL"),
    _index("event_of_run", event.c.run_id, event.c.n, where="run_id IS NOT NULL"),
)
TABLES: Mapping[str, Table] = METADATA.tables
