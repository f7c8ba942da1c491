"""What is asked of the registry when it is read, as statements.

A statement about one task finds its rows by an index, so that it costs the same however many other tasks there are.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnClause, Select, bindparam, func, literal_column, or_, select, text, union

from tenuto.model.command import CommandKind
from tenuto.model.lifecycle import AttemptState, CommandState
from tenuto.store import tables
from tenuto.store.rows import Shape

_LIMIT: BindParameter[int] = bindparam("most")
_TEN: ColumnClause[int] = literal_column("10")
_ZERO: ColumnClause[int] = literal_column("0")  # Core would make a parameter of the offset it leaves out
#: Orders few rows by id without inviting the database to walk an index of all rows in that order.
_BY_ID: ColumnClause[str] = literal_column("id || ''")
TABLES_OF_KINDS = {"reconciliation": "sample", "observation": "sighting", "limit": "usagelimit"}


def _of(shape: Shape[Any], *rules: Any) -> Select[Any]:
    """All columns of a shape's rows for which the rules hold."""
    table = tables.TABLES[shape.name]
    return select(*(table.c[name] for name in shape.columns)).where(*rules)


def _is(shape: Shape[Any], name: str) -> Any:
    """The column equals the parameter of its name."""
    return tables.TABLES[shape.name].c[name] == bindparam(name)


def _newest(shape: Shape[Any], *rules: Any, by: str = "id") -> Select[Any]:
    return _of(shape, *rules).order_by(tables.TABLES[shape.name].c[by].desc()).limit(_LIMIT).offset(_ZERO)


def _newest_of_few(shape: Shape[Any], *rules: Any) -> Select[Any]:
    return _of(shape, *rules).order_by(_BY_ID.desc()).limit(_LIMIT).offset(_ZERO)


def _oldest(shape: Shape[Any], *rules: Any) -> Select[Any]:
    return _of(shape, *rules).order_by(tables.TABLES[shape.name].c.id).limit(_LIMIT).offset(_ZERO)


ONE = {shape.name: _of(shape, _is(shape, "id")) for shape in tables.ORDER}
REGISTRY = _of(tables.REGISTRY)
HOLDER = _of(tables.CONVERSATION, _is(tables.CONVERSATION, "task_id"), text(tables.ACTIVE_LEASE))
LIVE = _of(tables.ATTEMPT, _is(tables.ATTEMPT, "task_id"), text(tables.LIVE_ATTEMPT))
LAST = _newest(
    tables.ATTEMPT, _is(tables.ATTEMPT, "task_id"), text(tables.among("state", (AttemptState.ENDED,))), by="number"
)
SENT = _newest(tables.COMMAND, _is(tables.COMMAND, "attempt_id"), text(tables.among("kind", (CommandKind.SEND,))))
RELEASED = _newest(
    tables.COMMAND,
    _is(tables.COMMAND, "attempt_id"),
    text(tables.among("kind", (CommandKind.SEND,))),
    text(tables.among("state", (CommandState.RELEASED,))),
)
OPEN_OF_TASK = _of(tables.COMMAND, _is(tables.COMMAND, "task_id"), text(tables.OPEN_COMMAND)).order_by(_BY_ID)
SIDE = _newest(
    tables.COMMAND,
    or_(tables.command.c.attempt_id == bindparam("live"), tables.command.c.attempt_id == bindparam("last")),
    text(tables.SIDE_COMMAND),
    text(f"NOT ({tables.OPEN_COMMAND})"),
)
OPEN_WAITS = _of(tables.WAIT, _is(tables.WAIT, "task_id"), text("closed_at IS NULL")).order_by(text("id"))
PENDING_WAKES = _of(tables.WAKE, _is(tables.WAKE, "task_id"), text("consumed_at IS NULL")).order_by(_BY_ID)
UNDELIVERED = _oldest(tables.MESSAGE, _is(tables.MESSAGE, "task_id"), text(tables.UNDELIVERED_MESSAGE))
SAMPLES = _newest(tables.SAMPLE, _is(tables.SAMPLE, "task_id"), by="made_at")
SIGHTINGS = _newest(tables.SIGHTING, _is(tables.SIGHTING, "task_id"))
SLOTS = select(func.count()).select_from(
    select(tables.task.c.id)
    .where(text(tables.ACTIVE_TASK), text("claim_made_at IS NULL"))
    .limit(_LIMIT)
    .offset(_ZERO)
    .subquery()
)
_GIVER = tables.task.alias("giver")
LINE = (
    select(
        tables.task.c.id,
        tables.task.c.started_at,
        tables.task.c.created_at,
        tables.task.c.look_at,
        tables.task.c.slot_from,
        _GIVER.c.state,
        _GIVER.c.claim_made_at,
    )
    .select_from(tables.task.outerjoin(_GIVER, tables.task.c.slot_from == _GIVER.c.id))
    .where(text("task.queued_at IS NOT NULL"))
    .order_by(tables.task.c.created_at, tables.task.c.id)
    .limit(_LIMIT)
    .offset(_ZERO)
)
BOUND = _of(tables.CONVERSATION, _is(tables.CONVERSATION, "identity"), text(tables.ACTIVE_LEASE))
ACTIVE = _oldest(tables.TASK, text(tables.ACTIVE_TASK))
TWINS = (
    select(*(tables.task.c[name] for name in tables.TASK.columns))
    .select_from(tables.words.join(tables.task, tables.words.c.task_id == tables.task.c.id))
    .where(
        tables.words.c.digest == bindparam("digest"),
        text(f"text.{tables.OBJECTIVE_TEXT}"),
        text(f"task.{tables.UNFINISHED_TASK}"),
        tables.task.c.cwd == bindparam("cwd"),
    )
    .order_by(tables.task.c.id)
    .limit(_LIMIT)
    .offset(_ZERO)
)
SPAWNED = select(func.count(), func.min(tables.task.c.created_at)).where(
    text("spawned_by IS NOT NULL"),
    tables.task.c.spawned_by == bindparam("source"),
    bindparam("since") < tables.task.c.created_at,
)
WAITING_SPAWNS = (
    select(func.count())
    .where(text("queued_at IS NOT NULL"), text("spawned_by IS NOT NULL"), text("started_at IS NULL"))
    .select_from(tables.task)
)
NAMED = _oldest(tables.TOKEN, text("name IS NOT NULL"))
OPEN_PERMISSIONS = _oldest(tables.PERMISSION, _is(tables.PERMISSION, "task_id"), text("closed_at IS NULL"))
PERMISSIONS = _newest(tables.PERMISSION, _is(tables.PERMISSION, "task_id"))
OPEN_LIMITS = _oldest(tables.LIMIT, text("closed_at IS NULL"))
LIMITS = _newest(tables.LIMIT)
TOKENS_OF = _oldest(tables.TOKEN, text("revoked_at IS NULL"), _is(tables.TOKEN, "task_id"))
STATE = select(tables.task.c.state).where(_is(tables.TASK, "id"))
_LOOKED = tables.task.c.look_at
DUE = (
    select(tables.task.c.id)
    .where(text("look_at IS NOT NULL"), bindparam("now") >= _LOOKED)
    .order_by(_LOOKED, tables.task.c.id)
    .limit(_LIMIT)
    .offset(_ZERO)
)
NEXT_DUE = select(func.min(_LOOKED)).where(text("look_at IS NOT NULL"))
UNDER_WAY = union(
    select(tables.command.c.task_id).where(text(tables.OPEN_COMMAND)),
    select(tables.attempt.c.task_id).where(text(tables.LIVE_ATTEMPT)),
)
RUNS = _newest(tables.RUN)
UNFINISHED_RUNS = _newest(
    tables.RUN,
    tables.run.c.id.in_(select(tables.task.c.run_id).where(text(tables.UNFINISHED_TASK))),
)
TASKS = {
    (False, False): _newest(tables.TASK),
    (False, True): _newest(tables.TASK, text(tables.UNFINISHED_TASK)),
    (True, False): _newest(tables.TASK, _is(tables.TASK, "run_id")),
    (True, True): _newest(tables.TASK, _is(tables.TASK, "run_id"), text(tables.UNFINISHED_TASK)),
}
CHILDREN = _oldest(tables.TASK, text("parent IS NOT NULL"), _is(tables.TASK, "parent"))
NEWS = (
    _of(tables.EVENT, tables.event.c.n > bindparam("after"), _is(tables.EVENT, "run_id"), text("run_id IS NOT NULL"))
    .order_by(tables.event.c.n)
    .limit(_LIMIT)
    .offset(_ZERO)
)
SPENT = (
    select(
        func.sum(tables.task.c.attempts),
        func.sum(tables.task.c.live_time),
        func.sum(tables.task.c.tokens),
        func.sum(tables.task.c.cost),
    )
    .where(_is(tables.TASK, "run_id"))
    .group_by(tables.task.c.currency)
)
CONVERSATIONS = _of(tables.CONVERSATION, _is(tables.CONVERSATION, "task_id")).order_by(text("id"))
ATTEMPTS = _newest(tables.ATTEMPT, _is(tables.ATTEMPT, "task_id"), by="number")
COMMANDS = {
    (False, False): _newest(tables.COMMAND),
    (False, True): _newest_of_few(tables.COMMAND, text(tables.OPEN_COMMAND)),
    (True, False): _newest(tables.COMMAND, _is(tables.COMMAND, "task_id")),
    (True, True): _newest_of_few(tables.COMMAND, _is(tables.COMMAND, "task_id"), text(tables.OPEN_COMMAND)),
}
WAITS = {
    (False, False): _newest(tables.WAIT),
    (False, True): _newest_of_few(tables.WAIT, text("closed_at IS NULL")),
    (True, False): _newest(tables.WAIT, _is(tables.WAIT, "task_id")),
    (True, True): _newest(tables.WAIT, _is(tables.WAIT, "task_id"), text("closed_at IS NULL")),
}
WAKES = _of(tables.WAKE, _is(tables.WAKE, "task_id")).order_by(text("id"))
REPORTS = _newest(tables.REPORT, _is(tables.REPORT, "task_id"))
MESSAGES = _newest(tables.MESSAGE, _is(tables.MESSAGE, "task_id"))
TOKEN = _of(tables.TOKEN, _is(tables.TOKEN, "digest"))
_DIGEST = tables.token.c.digest
TOKENS = (
    _of(tables.TOKEN, bindparam("low") <= _DIGEST, bindparam("high") > _DIGEST)
    .order_by(_DIGEST)
    .limit(_TEN)
    .offset(_ZERO)
)
_AFTER = tables.event.c.n > bindparam("after")
EVENTS = {
    (task, run): _of(
        tables.EVENT,
        _AFTER,
        *([_is(tables.EVENT, "task_id")] if task else []),
        *([_is(tables.EVENT, "run_id")] if run else []),
    )
    .order_by(tables.event.c.n)
    .limit(_LIMIT)
    .offset(_ZERO)
    for task in (False, True)
    for run in (False, True)
}
LAST_EVENT = select(func.max(tables.event.c.n))
REPLAYED = select(tables.idempotency.c.digest, tables.idempotency.c.result).where(
    tables.idempotency.c.scope == bindparam("scope"),
    tables.idempotency.c.key == bindparam("key"),
    bindparam("since") <= tables.idempotency.c.at,
)
CHAINS = _newest(tables.CHAIN)
OPEN_CHAINS = _newest(tables.CHAIN, text("ended_at IS NULL"))
TENDED = _of(tables.CHAIN, text("look_at IS NOT NULL")).order_by(tables.chain.c.look_at, tables.chain.c.id)
LINKS = _newest(tables.LINK, _is(tables.LINK, "chain_id"), by="position")
LINK_OF = _of(tables.LINK, _is(tables.LINK, "task_id"))
LINK_KEYED = _of(tables.LINK, _is(tables.LINK, "chain_id"), _is(tables.LINK, "key"))
CLAIMED = select(tables.link.c.unit, tables.link.c.task_id).where(
    _is(tables.LINK, "place"), text("recorded_at IS NULL")
)
TRIED = (
    select(tables.link.c.unit, func.max(tables.link.c.attempt))
    .where(_is(tables.LINK, "chain_id"), text(f"({tables.NOT_DONE})"))
    .group_by(tables.link.c.unit)
)
WORKTREES = _newest(tables.WORKTREE, _is(tables.WORKTREE, "chain_id"))
STANDING_WORKTREES = _newest(tables.WORKTREE, text(tables.STANDING_WORKTREE))
WORKTREE_OF = _of(tables.WORKTREE, _is(tables.WORKTREE, "task_id"))
PHASES = _of(tables.PHASE, _is(tables.PHASE, "chain_id")).order_by(tables.phase.c.id)
MANDATE = _of(tables.MANDATE, _is(tables.MANDATE, "chain_id"))
PROPOSALS = _newest(tables.PROPOSAL, _is(tables.PROPOSAL, "chain_id"))
PROPOSAL_OF = _of(tables.PROPOSAL, _is(tables.PROPOSAL, "task_id"))
REVIEWS = _newest(tables.REVIEW, _is(tables.REVIEW, "proposal_id"), by="number")
REVIEW_OF = _of(tables.REVIEW, _is(tables.REVIEW, "task_id"))
REVIEWED = select(func.sum(tables.proposal.c.reviews)).where(
    _is(tables.PROPOSAL, "chain_id"), _is(tables.PROPOSAL, "unit")
)
MERGES = select(func.count()).where(
    _is(tables.PROPOSAL, "chain_id"),
    text(tables.MERGED_PROPOSAL),
    tables.proposal.c.settled_at > bindparam("since"),
)
CHAIN_COST = select(func.sum(tables.task.c.cost)).select_from(
    tables.link.join(tables.task, tables.link.c.task_id == tables.task.c.id)
).where(_is(tables.LINK, "chain_id"))  # fmt: skip
COUNTS = select(tables.task.c.state, func.count()).group_by(tables.task.c.state)
OPEN_COUNT = select(func.count(literal_column("1"))).select_from(tables.command).where(text(tables.OPEN_COMMAND))
BEGIN = {
    shape.name: select(table.c.id)
    .where(bindparam("low") <= table.c.id, bindparam("high") > table.c.id)
    .order_by(table.c.id.desc())
    .limit(_TEN)
    .offset(_ZERO)
    for shape, table in ((shape, tables.TABLES[shape.name]) for shape in tables.ORDER)
}
END = {
    shape.name: select(table.c.id)
    .where(table.c.id.like(bindparam("part")))
    .order_by(table.c.id.desc())
    .limit(_TEN)
    .offset(_ZERO)
    for shape, table in ((shape, tables.TABLES[shape.name]) for shape in tables.ORDER)
}
