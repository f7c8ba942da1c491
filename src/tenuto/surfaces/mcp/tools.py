"""The table of tools: which verb each one is, what it takes, and what of the answer it tells.

Bounds and types come from the verb's own parameters, so that a tool cannot allow what the verb refuses. Arguments are
flat. A tool that may change something requires a `request_id`, which becomes the idempotency key: the same call with
the same id is done once. An agent's tools name no task, because its token opens one only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenuto.model.faults import Mistake
from tenuto.model.snapshot import Role
from tenuto.surfaces.verbs import VERBS, Verb

Json = dict[str, Any]

REQUEST_ID = "request_id"
MESSAGES = 20
"""Most messages that are told, the newest."""
TASKS = 50
"""Most tasks of a run that are told."""

_KEY: Json = {
    "type": "string",
    "pattern": "^[!-~]{1,200}$",
    "description": "A name you choose for this one request, of visible ASCII characters. Repeat it only to ask "
    "again about the very same request: then nothing is done twice.",
}
_TASK: Json = {"type": "string", "description": "The task: its id, or at least 4 characters of its beginning or end."}
_LINE: Json = {"type": "string", "maxLength": 8192}


def _done(said: Mapping[str, Any]) -> Json:
    """What a changing verb did, in short: effects only where one was refused."""
    told: Json = {"text": said["text"], "result": dict(said["result"]), "replayed": said["replayed"]}
    refused = [effect for effect in said["effects"] if effect["because"] is not None]
    return told | ({"effects": refused} if refused else {})


def _row(task: Mapping[str, Any]) -> Json:
    return {name: task[name] for name in ("id", "title", "state", "text", "attempts")}


def _standing(said: Mapping[str, Any]) -> Json:
    task = said["task"]
    more = {name: task[name] for name in ("run", "cwd", "max_attempts", "progress", "disposition")}
    return _row(task) | more | {"because": said["because"], "text": said["text"]}


def _said(said: Mapping[str, Any]) -> Json:
    rows = said["messages"]
    told = [
        {name: row[name] for name in ("id", "sender", "kind", "state", "created_at", "text")}
        for row in sorted(rows, key=lambda row: str(row["created_at"]))[-MESSAGES:]
    ]
    return {"messages": told, "older": len(rows) - len(told)}


def _run(said: Mapping[str, Any]) -> Json:
    run, tasks = said["run"], said["tasks"]
    told = {name: run[name] for name in ("id", "title", "state")}
    return {"run": told, "tasks": [_row(task) for task in tasks[:TASKS]], "more": max(len(tasks) - TASKS, 0)}


def _unit(said: Mapping[str, Any]) -> Json:
    names = ("chain", "state", "standing", "unit", "mine", "left", "because", "notes", "link")
    return {name: said[name] for name in names}


_UNIT: Mapping[str, str] = {
    "outcome": "Done, with evidence; or blocked, with the three parts of its blocker.",
    "evidence": "A reference that someone else can look up: a commit, a pull request.",
    "tracked_by": "Who or what follows the blocker.",
    "blocked_on": "What the unit hangs on; another unit by its id goes on by itself.",
    "resume_when": "What has to be true for it to go on.",
    "checks": "How the unit's own checks ended, if it has any.",
    "pull": "The pull request that is to be merged, where your chain merges.",
    "branch": "Its branch, where it has no number.",
}


def _lines(given: Json) -> Json:
    """A report's lines from its flat arguments."""
    names = ("summary", "progress", "next")
    for name in names:
        if not isinstance(given.get(name, ""), str):
            raise Mistake(f"{name}: Input should be a valid string", field=name)
    lines = [{"name": name, "value": given.pop(name)} for name in names if name in given]
    return {**given, "lines": [line for line in lines if line["value"].strip()]}


def _same(given: Json) -> Json:
    return given


@dataclass(frozen=True)
class Tool:
    """One tool. `words` describes its arguments; `takes` replaces the verb's own where a tool is simpler than those.

    An agent is not offered what `leading` names, and nobody what `hidden` names. `addressed`: an agent may name
    another task than its own.
    """

    name: str
    verb: str
    title: str
    description: str
    told: Callable[[Mapping[str, Any]], Json]
    words: Mapping[str, str] = field(default_factory=dict)
    takes: Mapping[str, Json] | None = None
    required: tuple[str, ...] = ()
    params: Callable[[Json], Json] = _same
    leading: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    addressed: bool = False

    @property
    def of(self) -> Verb:
        """The verb it is."""
        return VERBS[self.verb]

    def schema(self, role: Role) -> Json:
        """What it takes from a caller of this role, as JSON Schema with flat properties."""
        whole = self.of.params.model_json_schema()
        own: Json = whole["properties"] if self.takes is None else dict(self.takes)
        needed = list(whole.get("required", ()) if self.takes is None else self.required)
        left = {"task"} | self.hidden | (self.leading if role is Role.AGENT else frozenset())
        properties = {
            name: _plain(shape) | _described(self.words, name) for name, shape in own.items() if name not in left
        }
        needed = [name for name in needed if name not in left]
        if self.on_task and (role is not Role.AGENT or self.addressed):
            properties = {"task": _TASK | _described(self.words, "task"), **properties}
            needed = ["task", *needed]
        if role is not Role.OPERATOR:
            needed = [name for name in needed if name not in ("task", "run")]
        if self.of.mutates:
            properties, needed = {**properties, REQUEST_ID: _KEY}, [*needed, REQUEST_ID]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    @property
    def on_task(self) -> bool:
        """Whether it is about one task."""
        return "task" in self.of.params.model_fields

    def asked(self, arguments: Mapping[str, Any], task: str | None, run: str | None = None) -> tuple[Json, str | None]:
        """The verb's parameters and the idempotency key. `task` and `run` are the caller's own.

        Raises Mistake, naming the field.
        """
        given = dict(arguments)
        key = given.pop(REQUEST_ID, None)
        if self.of.mutates:
            if not isinstance(key, str) or not 1 <= len(key) <= 200 or not all("!" <= letter <= "~" for letter in key):
                raise Mistake("a request_id of 1 to 200 visible ASCII characters is needed", field=REQUEST_ID)
        elif key is not None:
            raise Mistake(f"{self.name} changes nothing and takes no request_id", field=REQUEST_ID)
        if self.on_task and task is not None:
            given.setdefault("task", task)
        if self.verb == "run.show" and run is not None:
            given.setdefault("run", run)
        if self.takes is not None:
            for name in given:
                if name not in self.takes and name != "task":
                    raise Mistake(f"{name[:64]}: Extra inputs are not permitted", field=name[:64])
        return self.params(given), key


def _described(words: Mapping[str, str], name: str) -> Json:
    return {"description": words[name]} if name in words else {}


def _plain(shape: Json) -> Json:
    """A property without titles and defaults, and without the choice of null that only other faces need."""
    shape = {key: value for key, value in shape.items() if key not in ("title", "default")}
    if "anyOf" in shape:
        (kept,) = [one for one in shape.pop("anyOf") if one.get("type") != "null"]
        shape |= kept
    return shape


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "task_status",
            "task.explain",
            "How the task stands",
            "Tells how the task stands and, where it is not being continued, why. Changes nothing.",
            _standing,
            {"at": "A past instant with its offset, as 2026-03-01T12:00:00Z: what was recorded up to then."},
        ),
        Tool(
            "task_progress",
            "task.report",
            "Report progress",
            "Records what is done and what comes next. It ends nothing; use it whenever something has become durable.",
            _done,
            {
                "summary": "Where the work stands, in a line.",
                "progress": "What is durable now: a commit, a file, an issue.",
                "next": "The one next step.",
            },
            takes={"summary": {**_LINE, "minLength": 1}, "progress": _LINE, "next": _LINE},
            required=("summary",),
            params=_lines,
        ),
        Tool(
            "task_complete",
            "task.complete",
            "Claim completion",
            "Says that all of the assignment is done. From an agent it is a claim, which is checked where the "
            "assignment has a check. Never claim completion to get out of a turn.",
            _done,
            {"evidence": "A reference that someone else can look up, such as a commit.", "summary": "A line about it."},
        ),
        Tool(
            "task_fail",
            "task.fail",
            "Give the task up",
            "Ends the task as failed, for good. If something is only missing, use task_wait instead.",
            _done,
            {"reason": "Why it cannot be done."},
        ),
        Tool(
            "task_wait",
            "task.wait",
            "Record what is waited for",
            "Records a durable reason not to continue: a question to a person, another task, a path, a merged change, "
            "or a moment. The task goes on by itself when that is settled. Does not make you wait now.",
            _done,
            {
                "kind": "What is waited for; without it, a person.",
                "question": "What is asked of a person, as a question.",
                "on": "The task, the path, or 'ref into branch' that is waited for.",
                "until": "The moment, with its offset, as 2026-03-01T12:00:00Z.",
            },
        ),
        Tool(
            "message_send",
            "message.send",
            "Send words to a task",
            "Stores words for a task, and delivers them by the policy you choose. What is answered is that they are "
            "stored, not that they were read.",
            _done,
            {
                "task": "The task they are for, of the same run, or 'coordinator'. In a turn, without it: your own.",
                "text": "The words.",
                "policy": "For the record only, for the task's next turn, or at once into the turn that is under way.",
                "corrective": "Why they cannot wait for the usual spacing: wrong or conflicting work would go on.",
            },
            leading=frozenset({"corrective"}),
            addressed=True,
        ),
        Tool(
            "message_read",
            "message.list",
            "Read what was said to the task",
            "Lists the newest messages to the task, the newest last, and how far each got. Changes nothing.",
            _said,
        ),
        Tool(
            "task_spawn",
            "task.spawn",
            "Make one more task",
            "Makes a task that works on its own, by a playbook or in the way of its parent. If the answer is lost or "
            "says busy, ask again with the same request_id only: then it is made at most once.",
            _done,
            {
                "prompt": "The new task's whole assignment.",
                "title": "A short name; else the first line of the prompt.",
                "playbook": "A playbook by NAME or SCOPE/NAME; the server reads it.",
                "run": "The run it belongs to, where it has no parent.",
                "parent": "The task it is made for, which is told of its end.",
                "cwd": "The directory it works in.",
                "auto_close": "Whether it is closed by itself a while after it said that it is ready.",
                "unattended": "Whether nobody is there to answer it.",
                "hand_over": "Whether it takes over the parent's slot.",
                "force": "Why it is made although the very same work is under way.",
            },
            leading=frozenset({"run", "parent"}),
            hidden=frozenset({"agent"}),
        ),
        Tool(
            "chain_next",
            "chain.unit",
            "Your unit, from durable state",
            "Tells which unit is yours, how the chain stands and what would come next. Changes nothing.",
            _unit,
        ),
        Tool(
            "chain_record",
            "chain.record",
            "Record your unit",
            "Records at the source what became of your unit, and leaves you the turn. Hand off afterwards.",
            _done,
            _UNIT,
        ),
        Tool(
            "chain_handoff",
            "chain.handoff",
            "Hand off",
            "Records your unit as done or blocked, completes your task, and gives the next unit to a successor. If "
            "the answer is lost, call it again: there is never a second successor.",
            _done,
            _UNIT,
        ),
        Tool(
            "review_verdict",
            "review.verdict",
            "Say what your review comes to",
            "Says of the commit you were asked to review that it passes, or that it blocks and what has to change. "
            "That ends your task. Only a reviewer has this word, and only about that commit.",
            _done,
            {
                "verdict": "pass, or block.",
                "head": "The whole commit that you looked at.",
                "findings": "What you found; with block, what has to change.",
            },
        ),
        Tool(
            "phase_open",
            "phase.open",
            "Record your pull request",
            "Records the number of the pull request that you opened for your unit, where the chain has phases: call it "
            "as soon as it is open. The unit counts when that has landed in the base; you need not wait for it.",
            _done,
            {
                "pull": "The pull request's number.",
                "branch": "Its branch, if it is not the one you were given.",
                "url": "Where it can be seen.",
            },
        ),
        Tool(
            "run_status",
            "run.show",
            "How the run stands",
            "Lists the tasks of a run and how each stands. Changes nothing.",
            _run,
            {"run": "The run: its id, or at least 4 characters of its beginning or end."},
        ),
    )
}


def visible(verbs: frozenset[str]) -> tuple[Tool, ...]:
    """The tools of a caller whose token opens these verbs."""
    return tuple(tool for tool in TOOLS.values() if tool.verb in verbs)
