"""Single values as JSON-ready dicts: instants in UTC with Z, durations in seconds, enums as their value.

Keys are the model's own names. Bodies of texts are not among them; what holds a body takes it as an argument from a
caller that was asked for it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tenuto.core.attention import Item
from tenuto.model.command import Attempt, Command
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because
from tenuto.model.fact import Event
from tenuto.model.health import Assessment
from tenuto.model.message import Message
from tenuto.model.work import Acceptance, Agent, Report, Run, Task, Wait, Wake
from tenuto.surfaces.present.sentences import plain, rest, told

OBJECTIVE_SHOWN = 2000
MESSAGE_SHOWN = 2000


def instant(moment: datetime | None) -> str | None:
    """An instant in UTC, as ISO 8601 with Z."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(time: timedelta | None) -> float | int | None:
    """A duration in seconds, whole where it is whole."""
    if time is None:
        return None
    total = time.total_seconds()
    return int(total) if total == int(total) else total


def because(reason: Because | None) -> dict[str, Any] | None:
    """A reason, its sentence word for word."""
    if reason is None:
        return None
    return {
        "rung": reason.rung.value,
        "sentence": reason.sentence,
        "change": reason.change,
        "until": instant(reason.until),
        "facts": dict(reason.facts),
    }


def run(row: Run) -> dict[str, Any]:
    """A run."""
    return {
        "id": row.id,
        "title": row.title,
        "state": row.state.value,
        "auto_resume": row.auto_resume.value,
        "coordinator": row.coordinator,
        "created_at": instant(row.created_at),
        "stopped_at": instant(row.stopped_at),
    }


def agent(row: Agent) -> dict[str, Any]:
    """What works on a task; names of environment variables, never values."""
    return {"adapter": row.adapter, "argv": list(row.argv), "resumable": row.resumable, "env": list(row.env)}


def acceptance(row: Acceptance) -> dict[str, Any]:
    """What a claim of completion hangs on."""
    return {"kind": row.kind.value, "argv": list(row.argv), "path": row.path}


def health(said: Assessment | None) -> dict[str, Any] | None:
    """How a task is doing, by which row of the table, and on what evidence."""
    if said is None:
        return None
    return {
        "value": said.value.value,
        "confidence": said.confidence.value,
        "row": said.row,
        "why": plain(said.why),
        "mend": said.mend,
        "since": instant(said.since),
    }


def task(row: Task) -> dict[str, Any]:
    """A task as a row of a list."""
    ended = row.disposition
    return {
        "id": row.id,
        "run": row.run_id,
        "title": row.title,
        "state": row.state.value,
        "standing": row.standing.value,
        "text": rest(row),
        "cwd": row.cwd,
        "adapter": row.agent.adapter,
        "attempts": row.attempts,
        "max_attempts": row.max_attempts,
        "max_live": seconds(row.max_live),
        "max_tokens": row.max_tokens,
        "max_cost": row.max_cost,
        "live_time": seconds(row.live_time),
        "tokens": row.tokens,
        "cost": row.cost,
        "currency": row.currency,
        "parent": row.parent,
        "faults": row.faults,
        "auto_resume": row.auto_resume.value if row.auto_resume is not None else None,
        "paused_at": instant(row.paused_at),
        "paused_by": row.paused_by,
        "stalled_at": instant(row.stalled_at),
        "without_progress": row.progress.without,
        "progressed_at": instant(row.progress.at),
        "progress": row.progress.line,
        "created_at": instant(row.created_at),
        "started_at": instant(row.started_at),
        "ended_at": instant(row.ended_at),
        "last_served_at": instant(row.last_served_at),
        "look_at": instant(row.look_at),
        "health": health(row.health),
        "tools": [
            {"server": b.server, "session": b.session, "services": list(b.services)}
            for b in row.tools
            if b.page is None
        ],
        "pages": [
            {"by": b.server, "url": b.page.url, "window": b.page.window} for b in row.tools if b.page is not None
        ],
        "disposition": None
        if ended is None
        else {
            "reason": ended.reason,
            "source": ended.source.value,
            "prior_state": ended.prior_state.value,
            "reference": ended.reference,
            "verified": ended.verified,
        },
    }


def conversation(row: Conversation) -> dict[str, Any]:
    """One place of work."""
    return {
        "id": row.id,
        "task": row.task_id,
        "identity": row.identity,
        "executor": row.executor,
        "state": row.state.value,
        "lease_number": row.lease_number,
        "expires_at": instant(row.expires_at),
        "opened_at": instant(row.opened_at),
        "ended_at": instant(row.ended_at),
        "turns": row.turns,
    }


def attempt(row: Attempt) -> dict[str, Any]:
    """One turn."""
    return {
        "id": row.id,
        "task": row.task_id,
        "number": row.number,
        "reason": row.reason.value,
        "anyway": row.anyway,
        "state": row.state.value,
        "conversation": row.conversation_id,
        "lease_number": row.lease_number,
        "scheduled_at": instant(row.scheduled_at),
        "live_at": instant(row.live_at),
        "ended_at": instant(row.ended_at),
        "outcome": row.outcome.value if row.outcome is not None else None,
        "detail": row.detail,
        "signal": row.signal,
        "exit_code": row.exit_code,
        "output_bytes": row.output_bytes,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost": row.cost,
        "currency": row.currency,
    }


def command(row: Command) -> dict[str, Any]:
    """One side effect and how far it is proven; its payload is named by digest only."""
    return {
        "id": row.id,
        "kind": row.kind.value,
        "task": row.task_id,
        "attempt": row.attempt_id,
        "conversation": row.conversation_id,
        "executor": row.executor,
        "state": row.state.value,
        "open": row.open,
        "epoch": row.epoch,
        "scopes": list(row.scopes),
        "digest": row.digest,
        "created_at": instant(row.created_at),
        "armed_at": instant(row.armed_at),
        "submitted_at": instant(row.submitted_at),
        "settled_at": instant(row.settled_at),
        "deadline": instant(row.deadline),
        "evidence": row.evidence,
        "detail": row.detail,
        "released_by": row.released_by,
        "verdict": row.verdict,
        "late": row.late,
    }


def wait(row: Wait) -> dict[str, Any]:
    """A durable reason not to continue."""
    return {
        "id": row.id,
        "task": row.task_id,
        "kind": row.kind.value,
        "question": row.question,
        "on": row.subject,
        "until": instant(row.until),
        "attempt": row.attempt_id,
        "opened_at": instant(row.opened_at),
        "closed_at": instant(row.closed_at),
        "closed_by": row.closed_by,
    }


def wake(row: Wake) -> dict[str, Any]:
    """A durable reason to look."""
    return {
        "id": row.id,
        "task": row.task_id,
        "kind": row.kind.value,
        "reason": row.reason,
        "not_before": instant(row.not_before),
        "anyway": row.anyway,
        "asked_by": row.asked_by,
        "created_at": instant(row.created_at),
        "consumed_at": instant(row.consumed_at),
        "consumed_by": row.consumed_by,
    }


def message(row: Message, body: str | None = None) -> dict[str, Any]:
    """Words to a task; their beginning where the caller asked for it (`text`)."""
    return {
        "id": row.id,
        "task": row.task_id,
        "sender": row.sender,
        "kind": row.kind.value,
        "party": row.party.value,
        "policy": row.policy.value,
        "corrective": row.corrective,
        "not_before": instant(row.not_before),
        "state": row.state.value,
        "bytes": row.size,
        "tries": row.tries,
        "carried_by": row.carried_by,
        "created_at": instant(row.created_at),
        "settled_at": instant(row.settled_at),
        "text": None if body is None else body[:MESSAGE_SHOWN],
    }


def report(row: Report) -> dict[str, Any]:
    """What an agent said in a structured way."""
    return {
        "id": row.id,
        "task": row.task_id,
        "attempt": row.attempt_id,
        "kind": row.kind.value,
        "lines": [{"name": name, "value": value} for name, value in row.lines],
        "at": instant(row.at),
    }


def item(row: Item) -> dict[str, Any]:
    """One thing only a person can settle."""
    return {
        "task": row.task_id,
        "kind": row.kind,
        "question": row.question,
        "mend": row.mend,
        "since": instant(row.since),
        "episode": row.episode,
    }


def event(row: Event) -> dict[str, Any]:
    """One thing that happened; `id` is what a feed is resumed by."""
    return {
        "id": f"{row.epoch}-{row.n}",
        "n": row.n,
        "epoch": row.epoch,
        "at": instant(row.at),
        "kind": row.fact.kind.value,
        "run": row.fact.run_id,
        "task": row.fact.task_id,
        "data": dict(row.fact.data),
        "text": told(row),
    }
