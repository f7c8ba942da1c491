"""Evidence, health, plans and leases as JSON-ready answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime
from typing import Any

from tenuto.core.orchestrate import Plan
from tenuto.engine.supervising import Evidence, Planned, Reconciled
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sighting, WorkspaceFacts
from tenuto.model.health import Clocks
from tenuto.model.ids import short
from tenuto.model.lifecycle import LeaseState
from tenuto.model.tools import JobFacts, PageName, ToolFacts
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.surfaces.present import rows
from tenuto.surfaces.present.sentences import plain


def clocks(moments: Clocks) -> dict[str, Any]:
    """The moments that are kept apart; null where nothing was seen."""
    return {field.name: rows.instant(_moment(getattr(moments, field.name))) for field in fields(moments)}


def _moment(value: object) -> datetime | None:
    return value if isinstance(value, datetime) else None


def sighting(row: Sighting) -> dict[str, Any]:
    """A recorded observation."""
    return {
        "id": row.id,
        "source": row.source,
        "rank": row.rank,
        "subject": row.subject,
        "seen_at": rows.instant(row.seen_at),
        "made_at": rows.instant(row.made_at),
        "facts": dict(row.facts),
    }


def session(facts: ToolFacts) -> dict[str, Any]:
    """A session of a tool server as its records say it."""
    return {
        "server": facts.binding.server,
        "session": facts.binding.session,
        "version": facts.version,
        "state": facts.state.value if facts.state is not None else None,
        "run": facts.run,
        "plan": None
        if facts.plan is None
        else {
            "id": facts.plan.id,
            "state": facts.plan.state.value,
            "steps": facts.plan.steps,
            "done": facts.plan.done,
        },
        "calls": [
            {
                "id": call.id,
                "state": call.state.value,
                "started_at": rows.instant(call.started_at),
                "heartbeat_at": rows.instant(call.heartbeat_at),
            }
            for call in facts.calls
        ],
        "jobs": [job(each) for each in facts.jobs],
        "claim": facts.claim.value,
        "active_at": rows.instant(facts.active_at),
        "due_at": rows.instant(facts.due_at),
        "defects": [{"flaw": defect.flaw.value, "why": plain(defect.why)} for defect in facts.defects],
    }


def watched(facts: WatchedFacts) -> dict[str, Any]:
    """A page that is watched from outside, as its witness sees it."""
    page = facts.binding.page or PageName(facts.binding.session)
    return {
        "by": facts.binding.server,
        "url": page.url,
        "window": facts.window or page.window,
        "shown": facts.shown,
        "generating": facts.generating,
        "send_ready": facts.send_ready,
        "requests": facts.requests,
        "streams": facts.streams,
        "changed_at": rows.instant(facts.changed_at),
        "heard_at": rows.instant(facts.heard_at),
        "defects": [{"flaw": defect.flaw.value, "why": plain(defect.why)} for defect in facts.defects],
    }


def pages_shown(pages: Iterable[ShownPage], unasked: Iterable[str]) -> dict[str, Any]:
    """The pages that witnesses see now, and the witnesses that could not look."""
    told = [
        {"by": each.witness, "window": each.window, "url": plain(each.url), "program": each.program, "pid": each.pid}
        for each in pages
    ]
    return {"pages": told, "unasked": [plain(each) for each in unasked]}


def job(facts: JobFacts) -> dict[str, Any]:
    """A background job."""
    return {
        "id": facts.id,
        "state": facts.state.value,
        "service": facts.service,
        "attempt": facts.attempt,
        "exit_code": facts.exit_code,
        "corrected": facts.corrected,
        "started_at": rows.instant(facts.started_at),
        "updated_at": rows.instant(facts.updated_at),
    }


def workspace(facts: WorkspaceFacts | None) -> dict[str, Any] | None:
    """A task's directory as it is now."""
    if facts is None:
        return None
    return {
        "kind": facts.kind.value,
        "head": facts.head,
        "branch": facts.branch,
        "dirty": facts.dirty,
        "ahead": facts.ahead,
        "behind": facts.behind,
        "worktrees": facts.worktrees,
        "locked_since": rows.instant(facts.locked_since),
        "reason": facts.reason,
    }


def evidence(known: Evidence) -> dict[str, Any]:
    """Everything that is known of a task's health now."""
    return {
        "task": known.task_id,
        "at": rows.instant(known.at),
        "health": rows.health(known.health),
        "clocks": clocks(known.clocks),
        "flaws": [
            {"subject": flaw.subject, "flaw": flaw.flaw.value, "why": plain(flaw.why), "rank": int(flaw.rank)}
            for flaw in known.flaws
        ],
        "workspace": workspace(known.workspace),
        "tools": [session(each) for each in known.tools],
        "pages": [watched(each) for each in known.watched],
        "observations": [sighting(each) for each in known.sightings],
    }


def reconciled(what: Reconciled) -> dict[str, Any]:
    """A recorded look."""
    wanting = rows.because(what.wanting)
    text = (
        "looked, and recorded; two looks agree" if wanting is None else f"looked, and recorded: {wanting['sentence']}"
    )
    return {
        "task": what.task_id,
        "fence": what.fence,
        "members": list(what.members),
        "findings": [plain(finding) for finding in what.findings],
        "wanting": wanting,
        "text": text,
    }


def planned(what: Planned) -> dict[str, Any]:
    """What a send would come to."""
    because = rows.because(what.because)
    return {
        "task": what.task_id,
        "at": rows.instant(what.at),
        "rungs": [
            {"rung": name, "holds": held is not None, "because": rows.because(held)} for name, held in what.rungs
        ],
        "intent": what.intent,
        "because": because,
        "fence": what.fence,
        "members": list(what.members),
        "proof": what.proof,
        "text": f"it would not be sent: {because['sentence']}" if because is not None else "nothing would hold it",
    }


def orchestrated(plan: Plan) -> dict[str, Any]:
    """Which task would be served next, and why not the others."""
    considered = [
        {
            "task": each.task.id,
            "title": each.task.title,
            "last_served_at": rows.instant(each.task.last_served_at),
            "because": rows.because(each.because),
        }
        for each in plan.considered
    ]
    text = (
        f"{short(plan.selected)} would be served next" if plan.selected is not None else "nothing would be served now"
    )
    return {"selected": plan.selected, "considered": considered, "at": rows.instant(plan.at), "text": text}


def sessions(found: Iterable[ToolFacts]) -> dict[str, Any]:
    """The sessions of tool servers."""
    return {"sessions": [session(each) for each in found]}


def jobs(found: Iterable[ToolFacts]) -> dict[str, Any]:
    """The background jobs of a task's sessions."""
    return {
        "jobs": [{"server": f.binding.server, "session": f.binding.session} | job(j) for f in found for j in f.jobs]
    }


def places(found: Iterable[Conversation]) -> dict[str, Any]:
    """The places of a task; `holder` has the lease."""
    told = [*found]
    holder = next((each.id for each in told if each.state is LeaseState.ACTIVE), None)
    return {"holder": holder, "conversations": [rows.conversation(each) for each in told]}
