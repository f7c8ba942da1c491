"""Real Local Shell MCP servers, watched while they are driven: at every moment the truth is known and compared.

Each version goes through the same life: sessions, plans, jobs, calls in flight, claims to continue, a takeover, crashes
with calls and jobs under way, restarts. At least sixty moments each, held open until they were looked at; one that is
judged otherwise than it was is told by name.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support import builders as b
from tests.support.continuing import continuing
from tests.support.localshell import Refused, Session, Shell, until
from tests.support.world import SetClock

from tenuto.core import classify
from tenuto.model.evidence import Observation, Rank
from tenuto.model.health import Assessment, Health
from tenuto.model.tools import CallState, ClaimState, Flaw, JobState, PlanState, SessionState, ToolBinding, ToolFacts
from tenuto.model.work import Standing
from tenuto.transports.localshell.servers import Server
from tenuto.transports.localshell.witness import LocalShellWitness

S = timedelta(seconds=1)
pytestmark = [pytest.mark.only_on("linux"), pytest.mark.timeout(600)]


@dataclass
class Watcher:
    """Looks at a state directory as the supervisor would, and keeps count of the moments that were compared."""

    state: Path
    moments: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def look(
        self, session: Session, later: float = 0.0, *, services: tuple[str, ...] = (), at: float | None = None
    ) -> ToolFacts:
        """What is seen of a session so many seconds from now, or at a moment."""
        now = moment(later, at)
        seer = LocalShellWitness(SetClock(now), lambda _cwd: [Server("real", self.state)])
        return seer.read(ToolBinding("real", session.id, services), None, now)

    def judged(self, facts: ToolFacts, later: float, at: float | None = None) -> Assessment:
        now = moment(later, at)
        looked = Observation("local-shell", Rank.JOURNAL, facts.subject, now, facts)
        task = b.with_task(b.with_tools(b.IDLE, facts.binding), attempts=0, standing=Standing.NEW, started_at=b.NOW)
        snapshot = replace(task, last=None, conversation=None)
        return classify.classify(classify.of(b.see(snapshot, looked, now=now), now - S, now))

    def moment(
        self,
        name: str,
        session: Session,
        row: str,
        health: Health,
        later: float = 0.0,
        *,
        services: tuple[str, ...] = (),
        at: float | None = None,
        **known: object,
    ) -> ToolFacts:
        """Compare what is judged with what is true; `known` are facts that must be so as well."""
        facts = self.look(session, later, services=services, at=at)
        said = self.judged(facts, later, at)
        have = {
            "calls": [call.state for call in facts.calls],
            "jobs": {job.id: job.state for job in facts.jobs},
            "plan": facts.plan.state if facts.plan else None,
            "state": facts.state,
            "claim": facts.claim,
            "flaws": [defect.flaw for defect in facts.defects],
        }
        want = {name_: have[name_] if value is None else value for name_, value in ({"flaws": []} | known).items()}
        self.moments.append(name)
        if (said.row, said.value) != (row, health) or any(have[key] != value for key, value in want.items()):
            self.wrong.append(
                f"{name}: judged {said.row} {said.value} ({said.why}), {have}; true {row} {health} {want}"
            )
        return facts


def moment(later: float, at: float | None) -> datetime:
    """An instant, by seconds from now or as it is."""
    return datetime.now(UTC) + later * S if at is None else datetime.fromtimestamp(at, UTC)


@pytest.fixture(params=["4.0.1", "5.1.4"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    assert shutil.which("tmux"), "the servers run their jobs in tmux: install it"
    made = Shell(request.param, tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


RUN, BLOCKED, CLAIMED = Health.RUNNING, Health.BLOCKED, Health.CLAIMED
LIVE, ORPHANED = CallState.LIVE, CallState.ORPHANED


def test_a_whole_life_is_judged_as_it_is(shell: Shell) -> None:
    it = Watcher(shell.state)
    one = shell.begin("one")
    it.moment("a session began", one, "13a", RUN, state=SessionState.ACTIVE, plan=None)
    one.plan("start", objective="three", steps=[{"id": "a", "text": "first"}, {"id": "b", "text": "second"}])
    it.moment("a plan began", one, "13", RUN, plan=PlanState.ACTIVE)
    it.moment("nothing for 14 minutes, and nobody looked", one, "13", RUN, later=840)
    it.moment("nothing for 16 minutes", one, "10", Health.SUSPECT, later=960)
    one.plan("update", step_id="a", status="completed")
    facts = it.moment("a step is done", one, "13", RUN)
    assert facts.plan is not None
    assert (facts.plan.done, facts.plan.steps) == (1, 2)
    _jobs(it, one)
    _calls(it, one)
    one.plan("block", note="needs a key")
    it.moment("the plan is blocked", one, "3", BLOCKED, plan=PlanState.BLOCKED)
    one.plan("resume")
    it.moment("the plan goes on", one, "13", RUN, plan=PlanState.ACTIVE)
    _several(it, shell, one)
    _steps(it, shell)
    _overlapping(it, shell)
    _claims(it, shell)
    _takeover(it, shell, one)
    _crash(it, shell, one)
    _again(it, shell, one)
    _ends(it, shell)
    assert not it.wrong, "\n".join(it.wrong)
    assert len(it.moments) >= 60, it.moments
    assert len(set(it.moments)) == len(it.moments)


def _jobs(it: Watcher, one: Session) -> None:
    gate = it.state.parent / "work" / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    good, bad, long = one.job(wait, "good"), one.job(f"{wait}; exit 3", "bad"), one.job("sleep 600", "long")
    running = JobState.RUNNING
    it.moment("three jobs run", one, "5", RUN, jobs=dict.fromkeys((good, bad, long), running))
    gate.touch()
    until("both status files", lambda: len(list((it.state / "jobs").glob("*.status.json"))) == 2)
    ended = {good: JobState.SUCCEEDED, bad: JobState.FAILED, long: running}
    facts = it.moment("two ended, and nobody told the list", one, "5", RUN, jobs=ended)
    assert {job.id for job in facts.jobs if job.corrected} == {good, bad}
    one.call("job_list", include_finished=True)
    facts = it.moment("the list was asked", one, "5", RUN, jobs=ended)
    assert not [job for job in facts.jobs if job.corrected]
    assert not it.look(one, services=(long,)).running
    one.call("job_stop", job_id=long)
    it.moment("the long one was stopped", one, "13", RUN, jobs=ended | {long: JobState.STOPPED})
    gate.unlink()
    one.call("job_retry", job_id=bad)
    again = it.moment("the bad one is tried again", one, "5", RUN, jobs=ended | {long: JobState.STOPPED, bad: running})
    assert {job.attempt for job in again.jobs if job.id == bad} == {2}
    gate.touch()
    until("its second status file", lambda: list((it.state / "jobs").glob(f"{bad}-attempt-2.status.json")))
    it.moment("it failed again", one, "13", RUN, jobs=ended | {long: JobState.STOPPED})


def _calls(it: Watcher, one: Session) -> None:
    gate = it.state.parent / "work" / "call"
    with one.calling(f"while [ ! -e {gate} ]; do sleep 0.05; done"):
        until("the call is in flight", lambda: it.look(one).calls)
        it.moment("a call is in flight", one, "5", RUN, calls=[LIVE])
        it.moment("for a minute", one, "5", RUN, later=60, calls=[LIVE])
        it.moment("for 39 minutes without a beat", one, "5", RUN, later=2340, calls=[LIVE])
        gate.touch()
    until("the call is over", lambda: not it.look(one).calls)
    it.moment("the call is over", one, "13", RUN, calls=[])


def _several(it: Watcher, shell: Shell, one: Session) -> None:
    two, three = shell.begin("two"), shell.begin("three")
    it.moment("a second session has no jobs of the first", two, "13a", RUN, jobs={}, plan=None)
    job = two.job("sleep 600", "its own")
    it.moment("a job of the second", two, "5", RUN, jobs={job: JobState.RUNNING})
    assert job not in {each.id for each in it.look(one).jobs}
    it.moment("is none of the third", three, "13a", RUN, jobs={})
    gate = it.state.parent / "work" / "both"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    with one.calling(wait), three.calling(wait):
        until("both are in flight", lambda: it.look(one).calls and it.look(three).calls)
        it.moment("the first calls", one, "5", RUN, calls=[LIVE])
        it.moment("the third calls", three, "5", RUN, calls=[LIVE])
        it.moment("the second does not", two, "5", RUN, calls=[])
        gate.touch()
    two.call("job_stop", job_id=job)
    it.moment("the second's job was stopped", two, "13a", RUN, jobs={job: JobState.STOPPED})
    two.manage("cancel")
    it.moment("the second was cancelled", two, "16", Health.SUSPECT, state=SessionState.CANCELLED)
    three.manage("finish", summary="done")
    it.moment("the third was finished", three, "2", CLAIMED, state=SessionState.COMPLETED)
    three.manage("delete")
    it.moment("the third was deleted", three, "6b", Health.RECONCILING, flaws=[Flaw.MISSING])


def _steps(it: Watcher, shell: Shell) -> None:
    """A plan from its beginning to its end, and another that is given up."""
    plan = shell.begin("steps")
    plan.plan("start", objective="two", steps=[{"id": "a", "text": "first"}, {"id": "b", "text": "second"}])
    plan.manage("report", summary="half", findings=["one"], next="the rest", blockers=["a key"])
    it.moment("it reports a blocker in words, and its plan is active", plan, "13", RUN, plan=PlanState.ACTIVE)
    plan.plan("update", step_id="b", status="active")
    it.moment("the second step is under way", plan, "13", RUN, plan=PlanState.ACTIVE)
    job = plan.job("sleep 600", "beside")
    it.moment("a job runs for it", plan, "5", RUN, jobs={job: JobState.RUNNING})
    it.moment("the job is a service, and no work", plan, "13", RUN, services=(job,), jobs={job: JobState.RUNNING})
    it.moment("for so long that a plan without one would be due", plan, "5", RUN, later=960)
    it.moment("beside the service it is due", plan, "10", Health.SUSPECT, later=960, services=(job,))
    plan.plan("block", note="needs a key")
    it.moment("it is blocked while its job runs", plan, "3", BLOCKED, plan=PlanState.BLOCKED)
    plan.plan("resume")
    for step in ("a", "b"):
        plan.plan("update", step_id=step, status="skipped")
    plan.plan("finish")
    it.moment("its plan is finished and its job still runs", plan, "5", RUN, plan=PlanState.COMPLETED)
    plan.call("job_stop", job_id=job)
    it.moment("its job is stopped too", plan, "4", CLAIMED, jobs={job: JobState.STOPPED})
    other = shell.begin("given up")
    other.plan("start", objective="one", steps=[{"id": "a", "text": "only"}])
    other.plan("cancel")
    it.moment("a plan was given up", other, "13a", RUN, plan=PlanState.CANCELLED)
    it.moment("and nothing came for long", other, "16", Health.SUSPECT, later=960, plan=PlanState.CANCELLED)
    other.plan("start", objective="another", steps=[{"id": "a", "text": "only"}])
    it.moment("another was made in its place", other, "13", RUN, plan=PlanState.ACTIVE)
    other.manage("cancel")
    it.moment("and the session is cancelled", other, "16", Health.SUSPECT, state=SessionState.CANCELLED)


def _overlapping(it: Watcher, shell: Shell) -> None:
    """Calls of one session that overlap, one that fails, and what the server refuses meanwhile."""
    busy = shell.begin("busy")
    first, second = (it.state.parent / "work" / name for name in ("first", "second"))
    waits = [f"while [ ! -e {gate} ]; do sleep 0.05; done" for gate in (first, second)]
    with busy.calling(f"{waits[0]}; exit 3"):
        until("the first is in flight", lambda: len(it.look(busy).calls) == 1)
        with pytest.raises(Refused):
            busy.manage("finish", summary="too early")
        it.moment("it may not be finished while it calls", busy, "5", RUN, calls=[LIVE], state=SessionState.ACTIVE)
        with busy.calling(waits[1]):
            until("both are in flight", lambda: len(it.look(busy).calls) == 2)
            it.moment("two calls overlap", busy, "5", RUN, calls=[LIVE, LIVE])
            first.touch()
            until("the first is over", lambda: len(it.look(busy).calls) == 1)
            it.moment("the first failed, the second goes on", busy, "5", RUN, calls=[LIVE])
            second.touch()
    until("both are over", lambda: not it.look(busy).calls)
    it.moment("both are over", busy, "13a", RUN, calls=[])
    busy.manage("finish", summary="in time")
    it.moment("now it may be finished", busy, "2", CLAIMED, state=SessionState.COMPLETED)


def _claims(it: Watcher, shell: Shell) -> None:
    """The server's own claims to continue a plan. No tool makes one: the code that does is run under our clock."""
    assert not [tool for tool, takes in shell.tools().items() if any("claim" in name for name in takes)]
    plan = shell.begin("continued")
    plan.plan("start", objective="one", steps=[{"id": "a", "text": "only"}])
    began = it.look(plan).active_at
    assert began is not None
    base = began.timestamp()
    none, pending, expired = ClaimState.NONE, ClaimState.PENDING, ClaimState.EXPIRED
    with continuing(shell) as server:

        def due(name: str, at: float, claim: ClaimState = none) -> None:
            it.moment(name, plan, "10", Health.SUSPECT, at=base + at, claim=claim)

        def claims(at: float, *, reserves: bool) -> str:
            claim = str(server.does("claim", base + at, plan.id)["claim_id"])
            assert not reserves or server.does("validate", base + at, plan.id, claim)["valid"]
            return claim

        assert server.does("claim", base + 899, plan.id) is None
        it.moment("nobody may claim it yet", plan, "13", RUN, at=base + 899, claim=none)
        due("it is due and not claimed", 901)
        claim = claims(901, reserves=False)
        it.moment("it is claimed", plan, "9", RUN, at=base + 902, claim=pending)
        assert server.does("claim", base + 902, plan.id) is None, "nobody else may claim it"
        assert server.does("validate", base + 903, plan.id, claim)["valid"]
        it.moment("its attempt is reserved", plan, "9", RUN, at=base + 904, claim=pending)
        it.moment("the claim has not run out", plan, "9", RUN, at=base + 1200, claim=pending)
        due("the claim has run out, and stands on the disk", 1202, expired)
        claim = claims(1203, reserves=False)
        it.moment("it is claimed again", plan, "9", RUN, at=base + 1204, claim=pending)
        assert server.does("abandon", base + 1205, plan.id, claim)
        due("the claim was let go", 1206)
        claim = claims(1207, reserves=True)
        server.does("report", base + 1208, plan.id, accepted=False, error="no page", claim_id=claim)
        it.moment("it failed, and is not tried at once", plan, "13", RUN, at=base + 1209, claim=none)
        due("it may be tried again", 1509)
        now = 1510
        for _ in range(8):
            claim = claims(now, reserves=True)
            server.does("report", base + now + 1, plan.id, accepted=True, claim_id=claim)
            now += 902
        it.moment(
            "it was continued for the last time", plan, "13", RUN, at=base + now - 900, claim=ClaimState.EXHAUSTED
        )
        assert server.does("claim", base + now, plan.id) is None
        it.moment("as often as it may be", plan, "9b", Health.NEEDS_HUMAN, at=base + now, claim=ClaimState.EXHAUSTED)


def _takeover(it: Watcher, shell: Shell, one: Session) -> None:
    before = it.look(one).run
    if shell.old:
        with pytest.raises(Refused):
            shell.tool("session_manage", action="resume", session_id=one.id, session_run_id=None)
        other, late = shell.again(), replace(one)
        taken = other.tool("session_manage", action="resume", session_id=one.id, session_run_id=None, takeover=True)
        one.shell, one.run = other, taken["active_run"]["run_id"]
        facts = it.moment("another run took it over", one, "13", RUN)
        assert facts.run == one.run != before
        with pytest.raises(Refused):
            late.plan("get")
    else:
        shell.tool("session_manage", action="resume", session_id=one.id)
        facts = it.moment("another client resumed it", one, "13", RUN)
        assert facts.run is before is None


def _crash(it: Watcher, shell: Shell, one: Session) -> None:
    gate = it.state.parent / "work" / "crash"
    job = one.job(f"while [ ! -e {gate} ]; do sleep 0.05; done", "outlives")
    with one.calling(f"while [ ! -e {gate} ]; do sleep 0.05; done; echo effect"):
        until("the call is in flight", lambda: it.look(one).calls)
        it.moment("before the crash", one, "5", RUN, calls=[LIVE])
        shell.kill()
    it.moment("right after the crash, too young to doubt", one, "5", RUN, calls=[LIVE])
    facts = it.moment("a quarter of a minute on, a job still running", one, "5", RUN, later=15, calls=[ORPHANED])
    assert {each.state for each in facts.jobs if each.id == job} == {JobState.RUNNING}
    gate.touch()
    until("the job ended by itself", lambda: list((it.state / "jobs").glob(f"{job}-attempt-1.status.json")))
    facts = it.moment(
        "the job ended and nobody told the list", one, "5b", Health.NEEDS_HUMAN, later=15, calls=[ORPHANED]
    )
    assert {each.state for each in facts.jobs if each.id == job} == {JobState.SUCCEEDED}
    it.moment("an hour after the crash", one, "5b", Health.NEEDS_HUMAN, later=3600, calls=[ORPHANED])
    it.moment("two hours on, the server itself gives it up", one, "10", Health.SUSPECT, later=7300)
    shell.start()
    it.moment("a new server does not know the old call", one, "5b", Health.NEEDS_HUMAN, later=15, calls=[ORPHANED])
    if shell.old:
        with pytest.raises(Refused):
            shell.tool("session_manage", action="resume", session_id=one.id, session_run_id=None, takeover=True)
    it.moment("and cannot be taken over", one, "5b", Health.NEEDS_HUMAN, later=20, calls=[ORPHANED])


def _again(it: Watcher, shell: Shell, one: Session) -> None:
    """A second crash, in two sessions at once; a third has nothing in flight. And a server that is stopped in order."""
    two, three, idle = (shell.begin(name) for name in ("second", "third", "idle"))
    two.plan("start", objective="one", steps=[{"id": "a", "text": "only"}])
    gate = it.state.parent / "work" / "again"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    with two.calling(wait), three.calling(wait):
        until("both are in flight", lambda: it.look(two).calls and it.look(three).calls)
        it.moment("a call of the second before the crash", two, "5", RUN, calls=[LIVE])
        it.moment("a call of the third before the crash", three, "5", RUN, calls=[LIVE])
        shell.kill()
    it.moment("its call is an orphan", two, "5b", Health.NEEDS_HUMAN, later=15, calls=[ORPHANED])
    it.moment("so is the third's, without a plan", three, "5b", Health.NEEDS_HUMAN, later=15, calls=[ORPHANED])
    it.moment("who called nothing has none", idle, "13a", RUN, later=15, calls=[])
    gate.touch()
    shell.start()
    it.moment("on the new server it is one as well", three, "5b", Health.NEEDS_HUMAN, later=15, calls=[ORPHANED])
    fresh = shell.begin("fresh")
    with fresh.calling(f"while [ ! -e {gate}-2 ]; do sleep 0.05; done"):
        until("it is in flight", lambda: it.look(fresh).calls)
        it.moment("a call that began on the new server lives", fresh, "5", RUN, later=15, calls=[LIVE])
        it.moment("beside the orphan of the old one", two, "5b", Health.NEEDS_HUMAN, later=15, calls=[ORPHANED])
        gate.with_name("again-2").touch()
    until("it is over", lambda: not it.look(fresh).calls)
    shell.stop()
    it.moment("a server that was stopped in order leaves no orphan", fresh, "13a", RUN, later=15, calls=[])
    shell.start()


def _ends(it: Watcher, shell: Shell) -> None:
    last = shell.begin("last")
    last.plan("start", objective="one", steps=[{"id": "a", "text": "only"}])
    it.moment("a fresh plan on the new server", last, "13", RUN, plan=PlanState.ACTIVE)
    last.plan("update", step_id="a", status="completed")
    last.plan("finish")
    it.moment("the plan is finished", last, "4", CLAIMED, plan=PlanState.COMPLETED)
    last.manage("finish", summary="all of it")
    it.moment("the session is finished", last, "2", CLAIMED, state=SessionState.COMPLETED)
    if not shell.old:
        last.manage("resume")
        it.moment("it is opened again", last, "4", CLAIMED, state=SessionState.ACTIVE)
