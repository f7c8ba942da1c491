"""Whole answers: what one verb says, put together from single values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from tenuto import __version__
from tenuto.core.attention import Hushed, Item
from tenuto.core.slots import Ledger, Occupancy
from tenuto.engine.desk import Caller, Done, Explained, Shown
from tenuto.engine.elsewhere import Known
from tenuto.engine.residency import Standing
from tenuto.model.command import Command
from tenuto.model.fact import Event
from tenuto.model.ids import RunId
from tenuto.model.message import Message
from tenuto.model.snapshot import Leadership, Registry, Token
from tenuto.model.work import Report, Run, Task, Text
from tenuto.surfaces.present import rows, texts
from tenuto.surfaces.present.sentences import did
from tenuto.surfaces.present.watching import clocks

STANDINGS: Mapping[Standing, str] = {
    Standing.MISSING: "no supervisor runs",
    Standing.LIVE: "a supervisor runs",
    Standing.FRESH_DEAD: "the supervisor is gone; its lease has not run out yet",
    Standing.STOP_FENCED: "the supervisor was asked to stop and is still there",
    Standing.STALE_ALIVE: "the supervisor is there but has not renewed its lease",
    Standing.STALE_DEAD: "the supervisor is gone, and so is its lease",
}


def status(
    registry: Registry,
    leadership: Leadership | None,
    standing: Standing,
    counts: Mapping[str, int],
    troubles: Sequence[str],
    now: datetime,
) -> dict[str, Any]:
    """How the supervisor and its registry stand."""
    text = STANDINGS[standing]
    if registry.held_at is not None:
        text += f"; everything is held by {registry.held_by}"
    return {
        "version": __version__,
        "registry": registry.id,
        "standing": standing.value,
        "text": text,
        "now": rows.instant(now),
        "held": None if registry.held_at is None else {"at": rows.instant(registry.held_at), "by": registry.held_by},
        "supervisor": None
        if leadership is None
        else {
            "epoch": leadership.epoch,
            "owner": leadership.owner,
            "host": leadership.host,
            "pid": leadership.pid,
            "address": leadership.address,
            "taken_at": rows.instant(leadership.taken_at),
            "renewed_at": rows.instant(leadership.renewed_at),
            "expires_at": rows.instant(leadership.expires_at),
            "stop_asked_at": rows.instant(leadership.stop_asked_at),
            "released_at": rows.instant(leadership.released_at),
        },
        "counts": dict(counts),
        "troubles": list(troubles),
    }


def whoami(caller: Caller, run_id: RunId | None, opened: Sequence[str]) -> dict[str, Any]:
    """Who the caller is to this registry, and the verbs that its token opens."""
    return {
        "role": caller.role.value,
        "name": caller.name,
        "task": caller.task_id,
        "run": run_id,
        "verbs": list(opened),
    }


def assignment(row: Task, objective: Text | None) -> dict[str, Any]:
    """What a task is to do, whole, and what must hold before it counts as done."""
    return {
        "task": row.id,
        "run": row.run_id,
        "title": row.title,
        "cwd": row.cwd,
        "objective": texts.body(objective),
        "objective_removed": texts.removed(objective),
        "acceptance": rows.acceptance(row.acceptance),
    }


def runs(found: Sequence[Run]) -> dict[str, Any]:
    """A list of runs."""
    return {"runs": [rows.run(row) for row in found]}


def tasks(found: Sequence[Task]) -> dict[str, Any]:
    """A list of tasks."""
    return {"tasks": [rows.task(row) for row in found]}


def slots(found: Ledger) -> dict[str, Any]:
    """Who holds a slot and what it does with it; who stands in line, first the one that starts first."""
    counts = {word.value: sum(one.occupancy is word for one in found.held) for word in Occupancy}
    return {
        "slots": found.slots,
        "free": found.free,
        "counts": counts,
        "held": [
            {
                "task": one.task.id,
                "title": one.task.title,
                "occupancy": one.occupancy.value,
                "since": rows.instant(one.since),
                "counts": one.counts,
                "text": OCCUPANCIES[one.occupancy],
            }
            for one in found.held
        ],
        "line": [
            {
                "task": one.task_id,
                "returns": one.started_at is not None,
                "waits_for": one.giver,
                "created_at": rows.instant(one.created_at),
            }
            for one in found.line
        ],
        "pending": {"cap": found.pending_cap, "spawned": found.spawned_pending},
    }


OCCUPANCIES: Mapping[Occupancy, str] = {
    Occupancy.WORKING: "a turn is under way",
    Occupancy.FINISHED: "it says that it is finished, and nobody has closed it yet",
    Occupancy.HUNG: "its turn cannot be followed, or has outlasted its limit",
    Occupancy.LAUNCHING: "its turn is being started",
    Occupancy.RESTING: "it rests between turns",
}


def tokens(found: Sequence[Token], now: datetime) -> dict[str, Any]:
    """The tokens that were made by hand; nothing of the tokens themselves."""
    return {
        "tokens": [
            {
                "id": one.id,
                "name": one.name,
                "role": one.role.value,
                "task": one.task_id,
                "created_at": rows.instant(one.created_at),
                "expires_at": rows.instant(one.expires_at),
                "revoked_at": rows.instant(one.revoked_at),
                "open": one.revoked_at is None and (one.expires_at is None or one.expires_at > now),
            }
            for one in found
        ]
    }


def executors(found: Sequence[Known]) -> dict[str, Any]:
    """The executors elsewhere."""
    return {
        "executors": [
            {
                "name": one.name,
                "connected": one.connected,
                "instance": one.instance,
                "capabilities": list(one.capabilities),
                "conversations": list(one.serves),
                "since": rows.instant(one.since),
                "heard_at": rows.instant(one.heard_at),
                "strangers": list(one.strangers),
                "trouble": one.trouble,
            }
            for one in found
        ]
    }


def run_whole(row: Run, found: Sequence[Task]) -> dict[str, Any]:
    """A run with its tasks."""
    return {"run": rows.run(row), **tasks(found)}


def shown(whole: Shown, objective: Text | None) -> dict[str, Any]:
    """One task with everything that hangs on it, and the beginning of its objective."""
    row, words = whole.task, texts.body(objective)
    return {
        "run": rows.run(whole.run),
        "task": rows.task(row) | {"agent": rows.agent(row.agent), "acceptance": rows.acceptance(row.acceptance)},
        "objective": None if words is None else words[: rows.OBJECTIVE_SHOWN],
        "objective_cut": words is not None and len(words) > rows.OBJECTIVE_SHOWN,
        "objective_removed": texts.removed(objective),
        "because": rows.because(whole.because),
        "clocks": clocks(whole.clocks),
        "auto_resume": whole.policy.value,
        "auto_resume_overridden": whole.overridden,
        "cap": whole.cap,
        "checkpoint_at": rows.instant(whole.checkpoint_at),
        "claim": None
        if row.claim is None
        else {
            "evidence": row.claim.evidence,
            "summary": row.claim.summary,
            "attempt": row.claim.attempt,
            "made_at": rows.instant(row.claim.made_at),
            "tries": row.claim.tries,
        },
        "conversations": [rows.conversation(one) for one in whole.conversations],
        "attempts": [rows.attempt(one) for one in whole.attempts],
        "commands": [rows.command(one) for one in whole.commands],
        "waits": [rows.wait(one) for one in whole.waits],
        "wakes": [rows.wake(one) for one in whole.wakes],
        "messages": [rows.message(one) for one in whole.messages],
        "reports": [rows.report(one) for one in whole.reports],
    }


def explained(why: Explained) -> dict[str, Any]:
    """Why a task is not being continued now: the first rung answers, all that hold are listed."""
    intent = None if why.intent is None else _spelled(why.intent)
    first = why.rungs[0] if why.rungs else None
    return {
        "task": rows.task(why.task),
        "at": rows.instant(why.at),
        "recorded": False,
        "because": rows.because(first),
        "rungs": [rows.because(rung) for rung in why.rungs],
        "intent": intent,
        "health": rows.health(why.health),
        "text": first.sentence if first is not None else INTENTS.get(intent or "", "it is being continued"),
        "events": [],
    }


def explained_at(row: Task, at: datetime, found: Sequence[Event]) -> dict[str, Any]:
    """What was recorded about a task up to a moment; the last of it is what held then."""
    last = rows.event(found[-1]) if found else None
    return {
        "task": rows.task(row),
        "at": rows.instant(at),
        "recorded": True,
        "because": None,
        "rungs": [],
        "intent": None,
        "text": last["text"] if last is not None else "nothing was recorded about it until then",
        "events": [rows.event(one) for one in found],
    }


#: What happens next where no rung holds, by the intent's name.
INTENTS: Mapping[str, str] = {
    "continue": "nothing holds it back: a turn is about to be armed",
    "run_check": "its acceptance is about to be checked",
    "steer_turn": "words are about to be put into its turn",
    "interrupt": "its turn is about to be ended: the task is over",
    "open_conversation": "a conversation is about to be opened for it",
    "start_task": "it is about to be given a slot",
    "give_slot_back": "it is about to give its slot back",
    "sampled": "what is there is being noted twice, to be compared",
    "revoke": "a command that has not begun is about to be made impossible",
    "open_person_wait": "a person is about to be asked",
    "close_ready": "its grace is over: it is about to be closed",
    "open_cap_wait": "its cap is reached: a person is about to be asked",
}


def _spelled(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def followed(why: Explained, found: Sequence[Event], after: int) -> dict[str, Any]:
    """A task's row, why it rests, and what happened to it since."""
    first = why.rungs[0] if why.rungs else None
    return {"task": rows.task(why.task), "because": rows.because(first), **events(found, after)}


def events(found: Sequence[Event], after: int = 0) -> dict[str, Any]:
    """A page of events; `last` is the number to go on after."""
    return {"events": [rows.event(one) for one in found], "last": found[-1].n if found else after}


def items(found: Sequence[Item], hushed: Sequence[Hushed] = ()) -> dict[str, Any]:
    """What only a person can settle, and what is left out because something above says it already."""
    return {
        "items": [rows.item(one) for one in found],
        "suppressed": [{"task": one.task_id, "health": one.health.value, "by": one.by} for one in hushed],
    }


def commands(found: Sequence[Command]) -> dict[str, Any]:
    """A list of commands."""
    return {"commands": [rows.command(one) for one in found]}


def messages(found: Sequence[tuple[Message, Text | None]]) -> dict[str, Any]:
    """What was said to a task, each with the beginning of its words."""
    return {"messages": [rows.message(one, texts.body(its)) | {"removed": texts.removed(its)} for one, its in found]}


def reports(found: Sequence[Report]) -> dict[str, Any]:
    """What a task reported, newest first."""
    return {"reports": [rows.report(one) for one in found]}


def policy(found: Sequence[tuple[str, object, str]]) -> dict[str, Any]:
    """Every number in force and where it comes from; durations in seconds."""
    return {"policy": [{"name": name, "value": _number(value), "source": source} for name, value, source in found]}


def _number(value: object) -> Any:
    match value:
        case timedelta():
            return rows.seconds(value)
        case tuple() | list():
            return [_number(one) for one in value]
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def done(verb: str, what: Done) -> dict[str, Any]:
    """What a verb did; `effects` says it task by task."""
    effects = [
        {"task": one.task_id, "changed": one.changed, "because": rows.because(one.because)} for one in what.effects
    ]
    return {
        "result": dict(what.result),
        "replayed": what.replayed,
        "effects": effects,
        "text": did(verb, what.result, effects, replayed=what.replayed),
    }
