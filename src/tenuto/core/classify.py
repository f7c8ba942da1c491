"""How a task is doing: a written table, first match wins.

Generic over programs, tool servers and web chats: a row looks at the registry's rows, at what was found of the turn
under way, and at signs by name. A missing sign is unknown and never taken for "no". Heartbeats, repaints and traffic
keep nothing healthy by themselves. Silence is counted only while somebody looked without a break.

The judgement is shown, and rings attention; whether anything is sent is the ladder's to say, not this table's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tenuto.core import signs
from tenuto.core.signs import Sign
from tenuto.model.evidence import Rank, Sighting, WorkspaceKind
from tenuto.model.health import LOUD, Assessment, Clocks, Confidence, Health
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.reconciliation import Doubtful, Finding, Flawed, Living, Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import ClaimState, PlanState, SessionState
from tenuto.model.work import AutoResume, Standing


@dataclass(frozen=True)
class Case:
    """What the table looks at. `watched_since` is since when the evidence was looked at without a break, if it was."""

    snapshot: Snapshot
    findings: tuple[Finding, ...]
    signs: Mapping[str, Sign]
    watched_since: datetime | None
    now: datetime
    #: Since when whoever carries the turn under way could not be asked, in every look; who that is.
    away_since: datetime | None = None
    away: str | None = None

    def is_(self, name: str, value: str = "true") -> bool:
        sign = self.signs.get(name)
        return sign is not None and sign.value == value

    def count(self, name: str) -> int:
        sign = self.signs.get(name)
        return sign.count if sign is not None else 0

    def moment(self, name: str) -> datetime | None:
        sign = self.signs.get(name)
        return sign.moment if sign is not None else None

    @property
    def in_flight(self) -> bool:
        """Whether a call may still act or a job runs."""
        return self.count("calls") > 0 or self.count("orphans") > 0 or self.count("jobs") > 0

    @property
    def over(self) -> bool:
        """Whether the last turn's end is proven and nothing of it is open or in doubt."""
        snapshot = self.snapshot
        return (
            snapshot.live is None
            and not snapshot.commands
            and self.count("calls") == 0
            and snapshot.task.standing is not Standing.CUT_SHORT
            and not self.is_("generating")
        )

    def silence(self, name: str) -> timedelta | None:
        """How long a source has been silent while it was watched; None where that cannot be said."""
        moment = self.moment(name)
        if moment is None or self.watched_since is None:
            return None
        return self.now - max(moment, self.watched_since)


Check = Callable[[Case], str | None]


@dataclass(frozen=True)
class Row:
    """One row of the table: its number, what decides it (a sentence, or nothing), and what it says."""

    number: str
    when: Check
    health: Health
    confidence: Confidence
    mend: str = "nothing; it is quiet"


def _state(state: TaskState) -> Check:
    return lambda case: f"the task is {state.value}" if case.snapshot.task.state is state else None


def _waiting(case: Case) -> str | None:
    wait = next(iter(case.snapshot.waits), None)
    return f"it waits ({wait.kind}): {wait.question}" if wait is not None else None


def _resting(case: Case) -> str | None:
    task = case.snapshot.task
    if not case.over:
        return None
    if task.paused_at is not None:
        return f"paused by {task.paused_by or 'the operator'}"
    if task.stalled_at is not None:
        return f"paused for no progress after {task.progress.without} turns"
    auto = task.auto_resume or case.snapshot.run.auto_resume
    return "its policy is manual and its last turn ended" if auto is AutoResume.MANUAL and task.attempts else None


def _retrying(case: Case) -> str | None:
    sign = case.signs.get("retrying")
    if sign is None or not sign.yes or (case.snapshot.live is None and sign.rank is Rank.JOURNAL):
        return None  # what its host saw, it saw of a turn that is over
    return "its agent waits for an overloaded service and tries again by itself"


def _session_completed(case: Case) -> str | None:
    return "its agent's session says it is completed" if case.is_("session", SessionState.COMPLETED) else None


def _plan_blocked(case: Case) -> str | None:
    return "its plan is blocked" if case.is_("plan", PlanState.BLOCKED) else None


def _plan_completed(case: Case) -> str | None:
    done = case.is_("plan", PlanState.COMPLETED) and not case.in_flight and case.snapshot.live is None
    return "its plan is completed and nothing is in flight" if done else None


def _working(case: Case) -> str | None:
    if calls := case.count("calls"):
        return f"{calls} tool call{'s are' if calls > 1 else ' is'} in flight"
    if jobs := case.count("jobs"):
        return f"{jobs} tracked job{'s run' if jobs > 1 else ' runs'}"
    living = _living(case)
    if living is not None and not living.unsure:
        return "its turn is under way" + (" although its host is gone" if living.orphaned else "")
    return None


def _living(case: Case) -> Living | None:
    live = case.snapshot.live
    if live is None:
        return None
    return next((f for f in case.findings if isinstance(f, Living) and f.command.attempt_id == live.id), None)


def _away(case: Case) -> str | None:
    """Whoever carries the turn has not come back for as long as silence may last at most."""
    if case.away is None or case.away_since is None or case.watched_since is None:
        return None
    quiet = case.now - max(case.away_since, case.watched_since)
    if quiet < case.snapshot.run.policy.suspect_hard:
        return None
    return f"its turn is under way where nobody can look: {case.away} and has not come back"


def away(seen: Seen) -> str | None:
    """Why whoever carries the turn under way cannot be asked about it; None where it can be."""
    live = seen.snapshot.live
    if live is None:
        return None
    if seen.apart is not None:
        return f"{seen.apart} is not reached from here"
    told = (f.away for f in seen.found.findings if isinstance(f, Living) and f.command.attempt_id == live.id)
    return next((why for why in told if why is not None), None)


def _orphan(case: Case) -> str | None:
    count = case.count("orphans")
    return f"{count} tool call{'s' if count > 1 else ''} may have outlived the server that made it" if count else None


def _directory(case: Case) -> str | None:
    for kind in (WorkspaceKind.MISSING, WorkspaceKind.UNREADABLE):
        if case.is_("directory", kind):
            return f"its working directory is {kind.value}: {case.snapshot.task.cwd}"
    return None


def _flaw(case: Case) -> Flawed | None:
    return next((f for f in case.findings if isinstance(f, Flawed) and f.rank is not Rank.REPORTED), None)


def _unbind(case: Case) -> str:
    """The command that lets what is flawed not count any more: a page that is watched is no session."""
    flaw, bound = _flaw(case), case.snapshot.task.tools
    about = [binding for binding in bound if flaw is not None and binding.subject == flaw.subject] or bound
    return "page unwatch" if about and all(binding.page is not None for binding in about) else "tool unbind"


def _flawed(case: Case) -> str | None:
    sign = case.signs.get("flaw")
    if sign is None or sign.rank is Rank.REPORTED:
        return None
    flaw = _flaw(case)
    told = f"{flaw.subject}: {flaw.why}" if flaw is not None else f"it is {sign.value.replace('_', ' ')}"
    return f"evidence of it cannot be believed: {told}"


def _delivery(case: Case) -> str | None:
    if case.is_("delivery_error"):
        return "its page shows a delivery error"
    if any(command.state is CommandState.AMBIGUOUS for command in case.snapshot.commands):
        return "it is not known whether an earlier command took effect"
    doubt = next((f for f in case.findings if isinstance(f, Doubtful)), None)
    return f"its turn cannot be followed: {doubt.why}" if doubt is not None else None


def _card(case: Case) -> str | None:
    if not (case.is_("send_ready") and case.is_("tool_card")):
        return None
    quiet = case.silence("page_changed_at")
    if quiet is not None and quiet < case.snapshot.run.policy.suspect_page:
        return None
    return "its page could send and shows a pending tool card, and nothing moves there"


def _claim(case: Case) -> str | None:
    return "the tool server itself is about to continue it" if case.is_("claim", ClaimState.PENDING) else None


def _used(case: Case) -> bool:
    """Whether its tools were used a moment ago."""
    moment = case.moment("active_at")
    return moment is not None and case.now - moment <= case.snapshot.run.policy.suspect_tool


def _exhausted(case: Case) -> str | None:
    if case.in_flight or not case.is_("claim", ClaimState.EXHAUSTED) or not case.is_("plan", PlanState.ACTIVE):
        return None
    if _used(case):
        return None  # the last continuation has only just come to it
    return "the tool server has continued it as often as it may, and its plan is not done"


def _due(case: Case) -> str | None:
    due = case.moment("due_at")
    if case.in_flight or not case.is_("plan", PlanState.ACTIVE) or due is None or due > case.now:
        return None
    return "the tool server has heard nothing of it for the time it allows, and nothing is in flight"


def _due_with_traffic(case: Case) -> str | None:
    network = case.moment("network_at")
    if network is None or case.now - network > case.snapshot.run.policy.suspect_network:
        return None
    return f"{due}, though there was traffic a moment ago" if (due := _due(case)) else None


def _silent(case: Case, factor: Callable[[timedelta], timedelta]) -> str | None:
    policy = case.snapshot.run.policy
    limits = {"page_changed_at": policy.suspect_page, "active_at": policy.suspect_tool}
    told = {name: case.silence(name) for name in limits if name in case.signs}
    if case.over and case.is_("generating", "false"):
        told.pop("page_changed_at", None)  # nothing is to be expected there
    if not told or any(quiet is None or quiet <= factor(limits[name]) for name, quiet in told.items()):
        return None
    names = " and ".join("its page" if name == "page_changed_at" else "its tools" for name in told)
    return f"nothing came from {names} for longer than it may take"


def _silent_hard(case: Case) -> str | None:
    return _silent(case, lambda _limit: case.snapshot.run.policy.suspect_hard)


def _silent_soft(case: Case) -> str | None:
    return _silent(case, lambda limit: limit)


def _generating(case: Case) -> str | None:
    return "its page is generating" if case.is_("generating") else None


def _plan_active(case: Case) -> str | None:
    return "its plan is active" if case.is_("plan", PlanState.ACTIVE) else None


def _spoken(case: Case) -> str | None:
    return "its tools were used a moment ago" if _used(case) and case.is_("session", SessionState.ACTIVE) else None


def _live(case: Case) -> str | None:
    return "its turn is under way, by the registry" if case.snapshot.live is not None else None


def _pending(case: Case) -> str | None:
    task = case.snapshot.task
    return "it waits for a slot" if task.state is TaskState.PENDING and task.attempts == 0 else None


def _starting(case: Case) -> str | None:
    task = case.snapshot.task
    limit = case.snapshot.run.policy.suspect_tool
    if task.attempts or task.started_at is None or case.now - task.started_at > limit or case.signs:
        return None
    return "it was given a slot a moment ago"


def _recovering(case: Case) -> str | None:
    return (
        "its last turn was cut short and it is being recovered"
        if case.snapshot.task.standing is Standing.CUT_SHORT
        else None
    )


def _between(case: Case) -> str | None:
    return "its last turn ended and the next is not due" if case.over and case.snapshot.last is not None else None


def _nothing(case: Case) -> str | None:
    snapshot = case.snapshot
    return "there is no evidence of it" if not case.signs and snapshot.live is None and snapshot.last is None else None


LOOK = "tenuto explain {task}; look at its conversation before anything is sent"
GIVE_UP = "if what it did was looked at and it never comes back: tenuto command release {turn} --verdict happened"
CHOOSE = "then: tenuto continue {task}, or tenuto fail {task} --reason WHY"
R, H, C = Row, Health, Confidence
TABLE: tuple[Row, ...] = (
    R("1", _state(TaskState.COMPLETED), H.COMPLETED, C.HIGH),
    R("1", _state(TaskState.FAILED), H.FAILED, C.HIGH),
    R("1", _state(TaskState.CANCELLED), H.CANCELLED, C.HIGH),
    R("1b", _waiting, H.WAITING, C.HIGH),
    R("1b", _resting, H.RESTING, C.HIGH),
    R("1b", _retrying, H.RUNNING, C.MEDIUM),
    R("2", _session_completed, H.CLAIMED, C.HIGH, "see whether the work is there: tenuto show {task}"),
    R("3", _plan_blocked, H.BLOCKED, C.HIGH, "read what its plan is blocked on, then: tenuto continue {task}"),
    R("4", _plan_completed, H.CLAIMED, C.HIGH, "see whether the work is there: tenuto show {task}"),
    R("5", _working, H.RUNNING, C.HIGH),
    R("5b", _orphan, H.NEEDS_HUMAN, C.MEDIUM, "see whether its effect is there; then: tenuto tool unbind {task}"),
    R("5c", _away, H.NEEDS_HUMAN, C.HIGH, f"start its executor again; {GIVE_UP}"),
    R("6", _directory, H.NEEDS_HUMAN, C.HIGH, "bring the directory back"),
    R("6b", _flawed, H.RECONCILING, C.MEDIUM, "tenuto explain {task}; or: tenuto {unbind} {task}"),
    R("7", _delivery, H.RECONCILING, C.HIGH, LOOK),
    R("8", _card, H.RECONCILING, C.MEDIUM, LOOK),
    R("9", _claim, H.RUNNING, C.MEDIUM),
    R("9b", _exhausted, H.NEEDS_HUMAN, C.HIGH, f"look at its plan; {CHOOSE}"),
    R("10", _due_with_traffic, H.RECONCILING, C.MEDIUM, LOOK),
    R("10", _due, H.SUSPECT, C.MEDIUM, LOOK),
    R("11", _silent_hard, H.SUSPECT, C.HIGH, LOOK),
    R("11", _silent_soft, H.SUSPECT, C.MEDIUM, LOOK),
    R("12", _generating, H.RUNNING, C.MEDIUM),
    R("13", _plan_active, H.RUNNING, C.MEDIUM),
    R("13a", _spoken, H.RUNNING, C.LOW),
    R("13b", _live, H.RUNNING, C.LOW),
    R("14", _pending, H.STARTING, C.HIGH),
    R("14", _starting, H.STARTING, C.MEDIUM),
    R("14b", _recovering, H.RECOVERING, C.MEDIUM),
    R("14c", _between, H.RESTING, C.MEDIUM),
    R("15", _nothing, H.UNKNOWN, C.HIGH, "tenuto explain {task}"),
    R("16", lambda _case: "nothing explains how it stands", H.SUSPECT, C.LOW, LOOK),
)


def classify(case: Case) -> Assessment:
    """The first row that holds. `since` is now: an assessment that says the same as before keeps its episode."""
    for row in TABLE:
        why = row.when(case)
        if why is not None:
            task, sent = case.snapshot.task, case.snapshot.live_command
            turn = sent.id if sent is not None else "COMMAND"
            mend = row.mend.format(task=task.id, turn=turn, unbind=_unbind(case))
            return Assessment(row.health, row.confidence, row.number, why[:WHY], mend, case.now)
    raise AssertionError("the last row of the table always holds")


#: The most characters of the deciding evidence.
WHY = 300


def of(seen: Seen, watched_since: datetime | None, now: datetime, away_since: datetime | None = None) -> Case:
    """The case that a look at a task makes, with what was recorded of it before."""
    snapshot = seen.snapshot
    known = tuple(signs.newest_of(snapshot.sightings).values())
    looked = {(each.source[: signs.SOURCE], each.subject[: signs.SUBJECT]) for each in seen.found.observations}
    bound = {binding.subject for binding in snapshot.task.tools}
    still = [
        sighting
        for sighting in known
        if (sighting.source, sighting.subject) not in looked
        and (sighting.rank == Rank.REPORTED or not _of_bound(sighting) or sighting.subject in bound)
    ]
    gathered = signs.gathered(still, seen.found.observations, snapshot.run.policy, now)
    return Case(snapshot, seen.found.findings, gathered, watched_since, now, away_since, away(seen))


def _of_bound(sighting: Sighting) -> bool:
    """Whether it tells of what works for a task only while it is bound: a tool session, or a page that is watched."""
    return sighting.rank == Rank.OUTSIDE or any(name in ("session", "flaw") for name, _ in sighting.facts)


def episode(before: Assessment | None, after: Assessment) -> Assessment:
    """The new assessment; one with the same value and row as before goes on with that episode."""
    if before is not None and (before.value, before.row) == (after.value, after.row):
        quiet = after.value not in LOUD and after.confidence is before.confidence
        return before if quiet else replace(after, since=before.since)
    return after


def clocks(case: Case) -> Clocks:
    """The moments kept apart."""
    generating = case.signs.get("generating")
    return Clocks(
        looked=max((sign.seen_at for sign in case.signs.values()), default=None),
        page_changed=case.moment("page_changed_at"),
        generating=generating.seen_at if generating is not None and generating.yes else None,
        call_heartbeat=case.moment("heartbeat_at"),
        job_updated=case.moment("job_updated_at"),
        plan_moved=case.moment("plan_moved_at"),
        network=case.moment("network_at"),
        progressed=case.snapshot.task.progress.at,
    )
