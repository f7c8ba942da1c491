"""Sentences for people: what happened, what a verb did, how a task stands.

Every fact of the catalogue has one sentence here. Words that came from outside are shortened, and control characters
in them are shown as what they are, so that nothing a program said can move a cursor or forge a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tenuto.model.fact import Event, FactKind, Scalar
from tenuto.model.ids import short
from tenuto.model.work import Task

#: One sentence per kind of fact. `{name}` is the datum of that name, or a dash.
SENTENCES: Mapping[FactKind, str] = {
    FactKind.SUPERVISOR_LEADS: "a supervisor leads",
    FactKind.SUPERVISOR_STOPPED: "the supervisor stopped",
    FactKind.HOLD_SET: "everything is held, by {by}",
    FactKind.HOLD_LIFTED: "the hold is lifted, by {by}",
    FactKind.CLOCK_WENT_BACK: "the clock went back from {from} to {to}",
    FactKind.RUN_CREATED: "the run was made: {title}",
    FactKind.RUN_CHANGED: "the run's policy was changed",
    FactKind.RUN_DEAD_MAN: "{by} saw every chat of the run silent, and so did we: {tasks} tasks are looked after",
    FactKind.RUN_DEAD_MAN_REFUSED: "{by} saw every chat of the run silent; nothing is done, because {why}",
    FactKind.RUN_STOPPED: "the run was stopped, by {by}",
    FactKind.TASK_CREATED: "the task was made: {title}",
    FactKind.TASK_SPAWNED: "spawned by {by}, playbook {playbook}",
    FactKind.TASK_READY: "the agent says that it can be closed: {note}",
    FactKind.EXECUTOR_SETTLED: "{by} has looked at {command}, which only {executor} knew",
    FactKind.TOKEN_MADE: "the token {name} was made for a {role}, by {by}",
    FactKind.TOKEN_REVOKED: "the token {name} was taken back, by {by}",
    FactKind.TASK_STARTED: "the task was given a slot",
    FactKind.TASK_SLOT_BACK: "the task gave its slot back",
    FactKind.TASK_PAUSED: "paused, by {by}",
    FactKind.TASK_RESUMED: "resumed, by {by}",
    FactKind.TASK_POLICY: "its policy was changed, by {by}",
    FactKind.TASK_STALL_WARNED: "{without} turns without durable progress",
    FactKind.TASK_STALLED: "paused for no progress, after {without} turns",
    FactKind.TASK_PROGRESSED: "durable progress: {why}",
    FactKind.TASK_CLAIMED: "the agent says it is complete: {evidence}",
    FactKind.TASK_CHECK_FAILED: "the acceptance did not hold: {why}",
    FactKind.TASK_TOOLS: "{what}, by {by}",
    FactKind.TASK_HEALTH: "it is {health} ({confidence} confidence): {why}",
    FactKind.TASK_COMPLETED: "completed: {reason}",
    FactKind.TASK_FAILED: "failed: {reason}",
    FactKind.TASK_CANCELLED: "cancelled: {reason}",
    FactKind.CONVERSATION_OPENED: "a conversation was opened",
    FactKind.CONVERSATION_CLAIMED: "a conversation holds the task, lease {lease_number}",
    FactKind.CONVERSATION_OFFERED: "a conversation may hand the task over, by {by}",
    FactKind.CONVERSATION_SUPERSEDED: "a conversation was superseded",
    FactKind.CONVERSATION_ENDED: "a conversation ended",
    FactKind.ATTEMPT_ARMED: "turn {number} was written down ({reason})",
    FactKind.ATTEMPT_ENDED: "turn {number} ended: {outcome}",
    FactKind.COMMAND_ARMED: "a {kind} was armed",
    FactKind.COMMAND_SUBMITTED: "it was handed over",
    FactKind.COMMAND_ACKNOWLEDGED: "it is proven that it took effect",
    FactKind.COMMAND_AMBIGUOUS: "it is not known whether it took effect",
    FactKind.COMMAND_FAILED: "it is proven that nothing happened",
    FactKind.COMMAND_RELEASED: "it was released by a verdict",
    FactKind.COMMAND_CANCELLED: "it was cancelled before it was armed",
    FactKind.WAIT_OPENED: "waiting ({kind}): {question}",
    FactKind.WAIT_CLOSED: "the wait is over, by {by}",
    FactKind.WAKE_ADDED: "to be continued ({kind}): {reason}",
    FactKind.MESSAGE_STORED: "a message was stored, from {sender}",
    FactKind.MESSAGE_CARRIED: "a message rides in a prompt",
    FactKind.MESSAGE_DELIVERED: "a message was delivered",
    FactKind.MESSAGE_RETRIED: "the delivery of a message moved ({event})",
    FactKind.REPORT_RECORDED: "a report was recorded, {lines} lines: {line}",
    FactKind.LATE_WORD: "came too late: {said} ({why})",
    FactKind.SAMPLE_TAKEN: "what is there was noted, to be compared",
    FactKind.PERMISSION_ASKED: "it asks leave to use {tool}: {what}",
    FactKind.PERMISSION_ANSWERED: "leave was answered ({verdict}), by {by}: {what}",
    FactKind.PERMISSION_PARKED: "nobody has answered yet; its program was told no for now: {what}",
    FactKind.LIMIT_MET: "the {name} limit of {account} was met; its turns are tried again from {until}",
    FactKind.LIMIT_OVER: "a limit of {account} stands no more: {by}",
    FactKind.TASK_HINDERED: "its program could not go on ({by}): {text}",
    FactKind.FINDING: "found: {what}",
    FactKind.CHAIN_STARTED: "a chain was started, by {by}",
    FactKind.CHAIN_HANDED: "unit {unit} was handed over: {outcome}",
    FactKind.CHAIN_RECORDED: "unit {unit} is recorded at its source: {outcome}",
    FactKind.CHAIN_ADVANCED: "the chain goes on with unit {unit}, at position {position}",
    FactKind.CHAIN_WAITS: "the chain waits: {because}",
    FactKind.CHAIN_ENDED: "the chain ended ({state}): {because}",
    FactKind.CHAIN_SWEPT: "every unit of the chain was looked at: {counts}",
    FactKind.WORKTREE_MADE: "a worktree of its own was made at {path}, on branch {branch}",
    FactKind.WORKTREE_FAILED: "its worktree at {path} could not be made: {why}",
    FactKind.WORKTREE_KEPT: "the worktree at {path} is kept: {why}",
    FactKind.WORKTREE_REMOVED: "the worktree at {path} was removed; all of its work is elsewhere",
    FactKind.PHASE_OPENED: "pull request {number} is recorded for unit {unit}",
    FactKind.PHASE_MERGED: "pull request {number} of unit {unit} is part of the base ({how}, {commit})",
    FactKind.PHASE_REVERTED: "pull request {number} of unit {unit} is not part of the base any more: {why}",
    FactKind.PHASE_CLOSED: "pull request {number} of unit {unit} was closed and is not part of the base",
    FactKind.PROPOSAL_OPENED: "pull request {number} is handed in for unit {unit}, to be merged",
    FactKind.PROPOSAL_MOVED: "pull request {number} stands at another commit now, {head}; gate and review begin anew",
    FactKind.PROPOSAL_GATED: "the gate of pull request {number} is {gate} at {head}",
    FactKind.PROPOSAL_MERGED: "pull request {number} of unit {unit} is merged: {because}",
    FactKind.PROPOSAL_TURNED_DOWN: "pull request {number} of unit {unit} is turned down: {because}",
    FactKind.REVIEW_ASKED: "a review of pull request {number} is asked for",
    FactKind.REVIEW_SAID: "the review says {verdict} of {head}: {findings}",
    FactKind.MERGE_FOREIGN: "pull request {number} was merged past its gates, as {commit}",
    FactKind.MERGING_OFF: "every chain that advances itself was stopped, by {by}",
    FactKind.MERGING_ON: "chains may advance themselves again, by {by}",
    FactKind.RESTED: "not now: {sentence}",
}

SHORTENED = 300


class _Dashes(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "-"


def plain(value: object, most: int = SHORTENED) -> str:
    """One line of printable characters, at most `most` of them."""
    text = "".join(c if c.isprintable() else " " if c in "\t\n\r" else f"\\x{ord(c):02x}" for c in str(value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def told(event: Event) -> str:
    """What happened, in one sentence."""
    data = _Dashes({name: plain(value) for name, value in event.fact.data.items() if value is not None})
    return SENTENCES[event.fact.kind].format_map(data)


def span(time: timedelta) -> str:
    """A duration as a person says it: the two largest units."""
    left = max(int(time.total_seconds()), 0)
    parts: list[str] = []
    for name, size_ in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size_)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def size(count: int) -> str:
    """A number of bytes as a person says it."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def rest(task: Task) -> str:
    """How a task stands, from its row alone; the ladder says more."""
    if task.disposition is not None:
        return plain(f"{task.state}: {task.disposition.reason}")
    if task.paused_at is not None:
        return f"paused by {plain(task.paused_by or 'the operator', 40)}"
    if task.stalled_at is not None:
        return f"paused for no progress, after {task.progress.without} turns"
    if task.claim is not None:
        return "says it is complete; being checked"
    if task.standing_reason:
        return plain(f"{task.standing}: {task.standing_reason}")
    return str(task.standing)


def did(verb: str, result: Mapping[str, Scalar], effects: list[dict[str, Any]], *, replayed: bool) -> str:
    """What a verb came to."""
    again = " (this had been done before; nothing was done again)" if replayed else ""
    return _deed(verb, result, effects) + again


def _deed(verb: str, result: Mapping[str, Scalar], effects: list[dict[str, Any]]) -> str:
    what = DEEDS.get(verb, "done")
    if verb.startswith("token."):
        return f"{what} {plain(result.get('name'))}"
    on = result.get("task") or result.get("run") or result.get("command")
    where = f" {short(str(on))}" if on else ""
    if "run" in result and "task" not in result and effects:
        changed = sum(bool(effect["changed"]) for effect in effects)
        return f"{what}{where}: {changed} of {len(effects)} tasks changed"
    if effects and not any(effect["changed"] for effect in effects):
        return f"nothing to do{where}: it was so already"
    if verb == "message.send" and (way := WAYS.get(str(result.get("delivery")))):
        why = f"; now: {plain(result['because'])}" if result.get("because") else ""
        return f"{what}{where}: {way}{why}"
    if verb == "command.reconcile":
        detail = result.get("detail")
        return f"looked at{where} again: {result.get('state')}" + (f", {plain(detail)}" if detail else "")
    return f"{what}{where}"


#: How words will be delivered, as things stood when they were stored.
WAYS: Mapping[str, str] = {
    "steer": "it goes into the turn under way",
    "send": "a turn is made for it",
    "next_turn": "it comes with the next turn",
    "recorded": "it is kept, and not delivered",
}

DEEDS: Mapping[str, str] = {
    "run.create": "made task",
    "task.spawn": "spawned task",
    "session.adopt": "adopted as task",
    "import": "imported into run",
    "hook.tell": "heard of task",
    "chat.adopt": "adopted as task",
    "task.ready": "readiness is recorded for",
    "chain.start": "a chain is begun with",
    "chain.record": "recorded is the unit of",
    "chain.handoff": "handed off is the unit of",
    "chain.advance": "the chain has made a step:",
    "chain.stop": "the chain is stopped",
    "chain.merge": "the chain has merged what was handed in; now:",
    "chain.self-advancing": "the switch of chains that advance themselves is set",
    "review.verdict": "the verdict is recorded of",
    "phase.open": "its pull request is recorded for",
    "worktree.remove": "looked at the worktree of",
    "executor.settle": "settled",
    "limit.lift": "lifted is a limit",
    "token.new": "made token",
    "token.revoke": "took back token",
    "task.pause": "paused",
    "task.resume": "resumed",
    "task.continue": "asked for one more turn of",
    "task.cancel": "stopped for good:",
    "task.wait": "a wait is recorded for",
    "task.answer": "answered",
    "task.complete": "completion is recorded for",
    "task.fail": "failed:",
    "task.report": "a report is recorded for",
    "policy.set": "policy changed for",
    "message.send": "a message is stored for",
    "run.coordinate": "the coordinator is set for",
    "checkpoint.request": "a report is asked of",
    "command.release": "a verdict is recorded for",
    "command.reconcile": "looked again at",
    "observe.import": "kept, at rank 5, what was seen of",
    "reconcile": "looked at, and recorded the look of",
    "dispatch.execute": "asked for one turn of",
    "tool.bind": "a tool session counts for",
    "page.watch": "a page is watched for",
    "page.unwatch": "a page is not watched any more for",
    "tool.unbind": "a tool session does not count any more for",
    "job.mark-service": "its services are changed:",
    "lease.register": "a place is known for",
    "lease.claim": "a place holds",
    "lease.heartbeat": "the lease is prolonged of",
    "lease.handoff": "the lease may be handed over of",
    "lease.takeover": "another place holds",
    "lease.abandon": "a place is given up of",
    "hold": "everything is held",
    "unhold": "the hold is lifted",
    "stop": "the supervisor is stopping; nothing is cancelled by it",
}
