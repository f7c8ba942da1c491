"""Judges what is left after a crash: the registry's rows and events against what the world has seen.

Reads the tables with plain SQL, so that it shares no code with what it judges. It knows nothing of how the case was
played; each broken promise is one sentence.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenuto.proof.stage import Stage

OPEN = ("armed", "submitted", "ambiguous")
KEPT = (
    "run",
    "task",
    "conversation",
    "attempt",
    "command",
    "wait",
    "wake",
    "message",
    "report",
    "permission",
    "text",
    "sample",
    "event",
)
_CARRIED = re.compile(rb"(?:^|\0)TENUTO_(?:COMMAND|HOST)=([^\0]*)\0")
_SPEAKS = re.compile(rb"(?:^|\0)TENUTO_AGENT_HOST=agent:([^\0]*)\0")

Rows = Mapping[str, frozenset[object]]
Row = sqlite3.Row


#: What a turn may come to that costs its task nothing of its budget.
FREE = frozenset({"unsent", "hindered"})


@dataclass(frozen=True)
class Verdict:
    """What one case came to: broken promises, and the numbers of the report."""

    broken: tuple[str, ...]
    most_effects: int
    turns_lost: int
    rows_lost: int


def rows_of(stage: Stage) -> Rows:
    """The identifiers of every row there is now; empty when there is no registry yet."""
    path = _registry(stage)
    if not path.exists():
        return {}
    with closing(_opened(path)) as registry:
        known = {str(name) for (name,) in registry.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        return {
            table: frozenset(row[0] for row in registry.execute(f"SELECT {_key(table)} FROM {table}"))  # noqa: S608
            for table in KEPT
            if table in known
        }


def judge(stage: Stage, goal: str, before: Rows) -> Verdict:
    """Everything at the end of a case; `before` are the rows that were there when something was killed."""
    after = rows_of(stage)
    gone = [f"{table} {row}" for table, rows in before.items() for row in rows - after.get(table, frozenset())]
    effects, checks = Counter(stage.effects), Counter(stage.checks)
    with closing(_opened(_registry(stage))) as registry:
        book = Book(registry)
        lost = list(book.lost(effects))
        broken = [
            *(f"a row is gone: {row}" for row in gone),
            *(f"{command} took effect {count} times" for command, count in effects.items() if count > 1),
            *(f"check {command} ran {count} times" for command, count in checks.items() if count > 1),
            *(f"{name} was put in {count} times" for name, count in Counter(stage.steers).items() if count > 1),
            *(f"answer {name} was given {count} times" for name, count in Counter(stage.answers).items() if count > 1),
            *lost,
            *book.turns(effects),
            *book.over(goal),
            *book.commands(),
            *book.messages(),
            *book.events(),
            *(f"process {pid} of {command} is left" for pid, command in left(stage).items()),
        ]
    return Verdict(tuple(broken), max([*effects.values(), 0]), len(lost), len(gone))


def facts(stage: Stage) -> tuple[str, ...]:
    """The kinds of everything that was recorded as having happened."""
    with closing(_opened(_registry(stage))) as registry:
        return tuple(sorted(str(row["kind"]) for row in registry.execute("SELECT DISTINCT kind FROM event")))


class Book:
    """One registry, read as rows."""

    def __init__(self, registry: sqlite3.Connection) -> None:
        self.tasks = _all(registry, "task")
        self.attempts = {row["id"]: row for row in _all(registry, "attempt")}
        self.by_id = {row["id"]: row for row in _all(registry, "command")}
        self._waits = _all(registry, "wait")
        self._wakes = _all(registry, "wake")
        self._messages = _all(registry, "message")
        self._texts = {row["id"]: row["body"] or "" for row in _all(registry, "text")}
        self._talks = _all(registry, "conversation")
        self._holds = _all(registry, "hold")
        self._events = registry.execute(
            "SELECT epoch, n, kind, task_id, json_extract(data, '$.command') AS command,"
            " json_extract(data, '$.kind') AS what, json_extract(data, '$.attempt') AS attempt FROM event ORDER BY n"
        ).fetchall()

    def lost(self, effects: Mapping[str, int]) -> Iterator[str]:
        """Turns that took effect and are not known, or are said not to have happened."""
        for effect in effects:
            command = self.by_id.get(effect)
            attempt = self.attempts.get(command["attempt_id"]) if command is not None else None
            if command is None or attempt is None:
                yield f"{effect} took effect and has no row"
            elif command["state"] == "failed" or attempt["outcome"] == "unsent":
                yield f"{effect} took effect and is said not to have happened"

    def turns(self, effects: Mapping[str, int]) -> Iterator[str]:
        """Attempts against effects, and against each other."""
        sends = {row["attempt_id"]: row["id"] for row in self.by_id.values() if row["kind"] == "send"}
        for attempt in self.attempts.values():
            if attempt["outcome"] == "turn_end" and sends.get(attempt["id"]) not in effects:
                yield f"turn {attempt['number']} is said to have ended by itself and never took effect"
        for task in self.tasks:
            spent = sum(one["task_id"] == task["id"] and one["outcome"] not in FREE for one in self.attempts.values())
            if spent != task["attempts"]:
                yield f"{spent} turns were spent and {task['attempts']} counted"
        live: dict[str, str] = {}
        for event in self._events:
            if event["kind"] == "attempt.armed":
                if other := live.get(event["task_id"]):
                    yield f"{event['attempt']} was armed while {other} was live"
                live[event["task_id"]] = event["attempt"]
            elif event["kind"] == "attempt.ended":
                live.pop(event["task_id"], None)

    def over(self, goal: str) -> Iterator[str]:
        """The task is where it was to come, and nothing hangs on it any more."""
        if not self.tasks:
            yield "there is no task"
        for task in self.tasks:
            if task["state"] != goal:
                yield f"the task is {task['state']}, not {goal}"
                continue
            hanging = [
                *(f"wake {row['kind']}" for row in self._wakes if row["consumed_at"] is None),
                *(f"wait {row['kind']}" for row in self._waits if row["closed_at"] is None),
                *(f"lease of {row['id']}" for row in self._talks if row["state"] == "active"),
                *(f"live turn {row['number']}" for row in self.attempts.values() if row["outcome"] is None),
            ]
            yield from (f"the task has ended and still there is its {what}" for what in hanging)

    def commands(self) -> Iterator[str]:
        """Open means held, settled means free; acknowledged means seen later than armed."""
        unresolved = {row["id"] for row in self.by_id.values() if row["state"] in OPEN}
        held = {row["command_id"] for row in self._holds}
        yield from (f"{one} is open at the end and is not in doubt" for one in self._undoubted(unresolved))
        if held != unresolved:
            yield f"holds {sorted(held)} do not match open commands {sorted(unresolved)}"
        armed = {row["command"]: row for row in self._events if row["kind"] == "command.armed"}
        acknowledged = {row["command"]: row for row in self._events if row["kind"] == "command.acknowledged"}
        for command in self.by_id.values():
            arming, settling = armed.get(command["id"]), acknowledged.get(command["id"])
            if arming is None:
                yield f"{command['id']} was never recorded as armed"
            elif arming["epoch"] != command["epoch"]:
                yield f"{command['id']} was armed under epoch {arming['epoch']} and says {command['epoch']}"
            if command["state"] != "acknowledged":
                continue
            if settling is None or (arming is not None and settling["n"] <= arming["n"]):
                yield f"{command['id']} is acknowledged and no later event says so"
            if command["evidence"] is None or command["settled_at"] < command["armed_at"]:
                yield f"{command['id']} is acknowledged without later evidence"

    def _undoubted(self, unresolved: set[str]) -> list[str]:
        return sorted(one for one in unresolved if self.by_id[one]["state"] != "ambiguous")

    def messages(self) -> Iterator[str]:
        """What was said has been delivered once, or was dropped with its task."""
        sent = [row for row in self.by_id.values() if row["state"] == "acknowledged" and not row["late"]]
        told = [self._texts.get(row["payload"], "") for row in sent]
        for message in self._messages:
            readings = sum(f"message {message['id']} from" in text for text in told)
            if readings > 1:
                yield f"a message ({message['kind']}) was put into {readings} turns"
            if message["state"] not in ("delivered", "dropped"):
                yield f"a message ({message['kind']}) is {message['state']} at the end"
                continue
            carrier = self.by_id.get(message["carried_by"]) if message["carried_by"] else None
            if message["state"] == "delivered" and (
                carrier is None or carrier["state"] not in ("acknowledged", "released")
            ):
                yield f"a message ({message['kind']}) is delivered by {carrier['state'] if carrier else 'nobody'}"

    def events(self) -> Iterator[str]:
        """One unbroken order, epochs that never go back, and no turn after the end."""
        ended: set[str] = set()
        numbers = [row["n"] for row in self._events]
        epochs = [row["epoch"] for row in self._events]
        if numbers != list(range(1, len(numbers) + 1)):
            yield "the events are not numbered without a gap"
        if epochs != sorted(epochs):
            yield "an event of an earlier epoch stands after one of a later epoch"
        for event in self._events:
            if event["kind"] in ("task.completed", "task.failed", "task.cancelled"):
                if event["task_id"] in ended:
                    yield "the task ended twice"
                ended.add(event["task_id"])
            elif event["kind"] == "attempt.armed" and event["task_id"] in ended:
                yield f"{event['attempt']} was armed after the task had ended"


def left(stage: Stage) -> dict[int, str]:
    """Who still carries a command of this registry: pid to command."""
    return _carriers(rows_of(stage).get("command", frozenset()), _CARRIED)


def speaking(stage: Stage) -> dict[int, str]:
    """The hosts of conversations of this registry, which outlive their turns: pid to task."""
    return _carriers(rows_of(stage).get("task", frozenset()), _SPEAKS)


def _carriers(named: frozenset[object], pattern: re.Pattern[bytes]) -> dict[int, str]:
    found: dict[int, str] = {}
    for place in os.listdir("/proc") if named else ():  # noqa: PTH208 - pathlib would double the cost of a case
        if place.isdigit() and (name := _carried(int(place), pattern)) in named:
            found[int(place)] = name
    return found


def _carried(pid: int, pattern: re.Pattern[bytes]) -> str:
    """What a process, or a host, has in its environment; empty for none and for who is gone."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    carried = pattern.search(environment)
    return carried[1].decode("ascii", "replace") if carried else ""


def _registry(stage: Stage) -> Path:
    return stage.home / "state" / "registry.sqlite3"


def _opened(path: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(path, timeout=10.0)
    opened.row_factory = sqlite3.Row
    return opened


def _all(registry: sqlite3.Connection, table: str) -> list[Any]:
    return registry.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - names of our own


def _key(table: str) -> str:
    return "n" if table == "event" else "id"
