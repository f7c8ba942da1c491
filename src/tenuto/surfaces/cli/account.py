"""The readable account of one task, one run, one command, or of why a task rests.

It arranges what a verb answered and changes no word of it: a because is printed as it was decided, and a completion
that nobody verified says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from tenuto.surfaces.cli.output import Out, get, local, rows, shortened, since, span

Answer = Mapping[str, object]
TURNS = 12
"""How many of the newest turns are shown; --json has them all."""
FEW = 8


def run(out: Out, answer: Answer, now: datetime) -> None:
    """A run and its tasks."""
    row = answer.get("run")
    out.heading(f"run {get(row, 'id')}: {get(row, 'title')}")
    out.pairs(
        [
            ("state", get(row, "state")),
            ("auto-resume", get(row, "auto_resume")),
            ("made", since(get(row, "created_at"), now)),
            ("stopped", since(get(row, "stopped_at"), now)),
            ("coordinator", get(row, "coordinator")),
        ],
        "  ",
    )
    out.line()
    told = [
        (one.get("id"), one.get("state"), one.get("attempts"), one.get("text")) for one in rows(answer.get("tasks"))
    ]
    out.table(("task", "state", "turns", "standing"), told)


def task(out: Out, answer: Answer, now: datetime) -> None:
    """A task: how it stands, what keeps it, its turns, and what was said."""
    row = answer.get("task")
    out.heading(f"task {get(row, 'id')}: {get(row, 'title')}")
    out.pairs(_head(answer, now), "  ")
    _because(out, answer.get("because"), now)
    _turns(out, answer, now)
    _waits(out, answer, now)
    _stall(out, answer, now)
    _checkpoint(out, answer, now)
    _overrides(out, answer)
    _commands(out, answer)
    _messages(out, answer, now)


def explained(out: Out, answer: Answer, now: datetime) -> None:
    """The ladder of reasons, the first one first, with what would change each."""
    row = answer.get("task")
    out.heading(f"task {get(row, 'id')}: {answer.get('text')}")
    if answer.get("recorded"):
        out.line(f"  as recorded until {local(answer.get('at'))}:")
        for event in rows(answer.get("events")):
            out.line(f"  {local(event.get('at'))}  {event.get('text')}")
        return
    if get(answer, "health", "value") is not None and get(row, "disposition") is None:
        out.pairs([("health", _health(answer, now))], "  ")
    rungs = rows(answer.get("rungs"))
    for number, rung in enumerate(rungs, 1):
        out.line(f"  {number}. {rung.get('sentence')}")
        out.pairs(
            [
                ("what changes it", rung.get("change")),
                ("looked at again", since(rung.get("until"), now)),
                *((name.replace("_", " "), value) for name, value in _mapping(rung.get("facts")).items()),
            ],
            "     ",
        )
    intent = answer.get("intent")
    if intent:
        out.line(f"  next: {str(intent).replace('_', ' ')}")
    elif len(rungs) > 1 and rungs[0].get("rung") != "terminal":
        out.line(f"  {len(rungs)} reasons hold; the first is the answer, and it rests until none of them does")


def command(out: Out, row: object, now: datetime) -> None:
    """A command and how far it is proven."""
    out.heading(f"command {get(row, 'id')}: {get(row, 'kind')}, {get(row, 'state')}")
    scopes = get(row, "scopes")
    out.pairs(
        [
            ("task", get(row, "task")),
            ("attempt", get(row, "attempt")),
            ("conversation", get(row, "conversation")),
            ("executor", get(row, "executor")),
            ("epoch", get(row, "epoch")),
            ("scopes", ", ".join(map(str, scopes)) if isinstance(scopes, list) else None),
            ("armed", since(get(row, "armed_at"), now)),
            ("handed over", since(get(row, "submitted_at"), now)),
            ("settled", since(get(row, "settled_at"), now)),
            ("deadline", since(get(row, "deadline"), now)),
            ("evidence", get(row, "evidence")),
            ("detail", get(row, "detail")),
            ("released by", get(row, "released_by")),
            ("verdict", get(row, "verdict")),
            ("late", "the evidence came after its release" if get(row, "late") else None),
        ],
        "  ",
    )


def _health(row: object, now: datetime) -> str | None:
    """How it is doing, on what evidence, and since when."""
    value = get(row, "health", "value")
    if value is None:
        return None
    words = str(value).replace("_", " ")
    sure = get(row, "health", "confidence")
    return f"{words} ({sure} confidence, {since(get(row, 'health', 'since'), now)}): {get(row, 'health', 'why')}"


def _head(answer: Answer, now: datetime) -> list[tuple[str, object]]:
    row = answer.get("task")
    ended = get(row, "disposition")
    state = str(get(row, "state"))
    if ended is not None:
        state += ", verified" if get(ended, "verified") else ", UNVERIFIED: nobody checked it"
    overridden = (
        f" (here; the run says {get(answer, 'run', 'auto_resume')})" if answer.get("auto_resume_overridden") else ""
    )
    argv = get(row, "agent", "argv")
    return [
        ("state", state),
        ("ended", since(get(row, "ended_at"), now)),
        ("how", f"{get(ended, 'reason')}, by the {get(ended, 'source')}" if ended is not None else None),
        ("reference", get(ended, "reference")),
        ("standing", get(row, "text") if ended is None else None),
        ("health", _health(row, now) if ended is None else None),
        ("run", f"{get(answer, 'run', 'id')} ({get(answer, 'run', 'state')})"),
        ("directory", get(row, "cwd")),
        ("objective", get(answer, "objective_removed", "text")),
        ("program", " ".join(map(str, argv)) if isinstance(argv, list) else get(row, "adapter")),
        ("resumable", "yes" if get(row, "agent", "resumable") else "no"),
        ("accepted when", _acceptance(get(row, "acceptance"))),
        ("auto-resume", f"{answer.get('auto_resume')}{overridden}"),
        ("turns", f"{get(row, 'attempts')} of {answer.get('cap')}" if answer.get("cap") else get(row, "attempts")),
        ("faults", get(row, "faults") or None),
        ("made", since(get(row, "created_at"), now)),
        (
            "paused",
            f"{since(get(row, 'paused_at'), now)} by {get(row, 'paused_by')}" if get(row, "paused_at") else None,
        ),
        ("claims", _claim(answer.get("claim"), now)),
    ]


def _acceptance(row: object) -> str:
    argv = get(row, "argv")
    match get(row, "kind"):
        case "check":
            return f"this exits with 0: {' '.join(map(str, argv)) if isinstance(argv, list) else ''}"
        case "file":
            return f"this file is there: {get(row, 'path')}"
        case "commit":
            return "the commit it names is reachable"
        case _:
            return "its agent says so (nothing checks it)"


def _claim(claim: object, now: datetime) -> str | None:
    if claim is None:
        return None
    return f"complete, by {get(claim, 'evidence')}, {since(get(claim, 'made_at'), now)}"


def _because(out: Out, because: object, now: datetime) -> None:
    if because is None or get(because, "rung") == "terminal":
        return
    out.line()
    out.heading("not now, because")
    out.line(f"  {get(because, 'sentence')}")
    out.pairs(
        [("what changes it", get(because, "change")), ("looked at again", since(get(because, "until"), now))], "  "
    )


def _turns(out: Out, answer: Answer, now: datetime) -> None:
    attempts = rows(answer.get("attempts"))
    if not attempts:
        return
    out.line()
    out.heading("turns" if len(attempts) <= TURNS else f"turns, the newest {TURNS} of {len(attempts)}")
    told = [
        (
            one.get("number"),
            f"{one.get('reason')}{', anyway' if one.get('anyway') else ''}",
            local(one.get("live_at") or one.get("scheduled_at")),
            _lasted(one, now),
            one.get("outcome") or one.get("state"),
            one.get("signal") or "none",
            one.get("detail") or ("" if one.get("exit_code") in (None, 0) else f"exit {one.get('exit_code')}"),
        )
        for one in attempts[:TURNS]
    ]
    out.table(("turn", "reason", "began", "lasted", "outcome", "signal", "detail"), told)


def _lasted(one: Answer, now: datetime) -> str:
    began, ended = get(one, "live_at"), get(one, "ended_at")
    if not isinstance(began, str):
        return ""
    end = datetime.fromisoformat(ended) if isinstance(ended, str) else now
    return span((end - datetime.fromisoformat(began)).total_seconds())


def _waits(out: Out, answer: Answer, now: datetime) -> None:
    waits = [one for one in rows(answer.get("waits")) if one.get("closed_at") is None]
    if waits:
        out.line()
        out.heading("waits for")
    for one in waits:
        out.line(f"  {one.get('kind')}: {one.get('question')}")
        out.pairs(
            [
                ("wait", one.get("id")),
                ("on", one.get("on")),
                ("until", since(one.get("until"), now)),
                ("since", since(one.get("opened_at"), now)),
            ],
            "    ",
        )


def _stall(out: Out, answer: Answer, now: datetime) -> None:
    row, numbers = answer.get("task"), {one.get("name"): one.get("value") for one in rows(answer.get("policy"))}
    out.line()
    out.heading("progress")
    out.pairs(
        [
            ("last seen", since(get(row, "progressed_at"), now) or "not yet"),
            ("line", get(row, "progress")),
            ("turns without", get(row, "without_progress")),
            ("warns at", numbers.get("stall_warn")),
            ("pauses at", numbers.get("stall_pause")),
            ("reason", get(row, "progress_reason")),
            ("paused for it", since(get(row, "stalled_at"), now)),
        ],
        "  ",
    )


def _overrides(out: Out, answer: Answer) -> None:
    """The numbers that are not the defaults, and where each comes from."""
    changed = [one for one in rows(answer.get("policy")) if one.get("source") != "default"]
    changed = [one for one in changed if one.get("name") != "auto_resume"]
    if changed:
        out.line()
        out.heading("policy, where it is not the default")
        out.pairs(
            [(str(one.get("name")), f"{one.get('value')} (from the {one.get('source')})") for one in changed], "  "
        )


def _checkpoint(out: Out, answer: Answer, now: datetime) -> None:
    reports = [one for one in rows(answer.get("reports")) if one.get("kind") != "signal"]
    due = answer.get("checkpoint_at")
    if not reports and due is None:
        return
    out.line()
    out.heading("checkpoint")
    out.pairs([("next", since(due, now))], "  ")
    if reports:
        out.line(f"  last report, {since(reports[0].get('at'), now)}:")
        report(out, reports[0], "    ")


def report(out: Out, row: Answer, indent: str = "") -> None:
    """The lines of a report."""
    out.pairs([(str(one.get("name")), one.get("value")) for one in rows(row.get("lines"))], indent)


def _commands(out: Out, answer: Answer) -> None:
    found = rows(answer.get("commands"))
    shown = [one for one in found if one.get("open")] + [one for one in found if not one.get("open")][:FEW]
    if not shown:
        return
    out.line()
    out.heading("commands")
    told = [
        (
            shortened(one.get("id")) if out.drawn else one.get("id"),
            one.get("kind"),
            one.get("state"),
            local(one.get("armed_at")),
            one.get("detail") or one.get("evidence"),
        )
        for one in shown
    ]
    out.table(("command", "kind", "state", "armed", "detail"), told)


def _messages(out: Out, answer: Answer, now: datetime) -> None:
    waiting = [one for one in rows(answer.get("messages")) if one.get("settled_at") is None]
    if not waiting:
        return
    out.line()
    out.heading("messages not delivered yet")
    for one in waiting[:FEW]:
        stored = since(one.get("created_at"), now)
        out.line(f"  {one.get('state')}: {one.get('kind')} from {one.get('sender')}, stored {stored}")


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
