"""Real Local Shell MCP servers, watched while they are driven: at every moment the truth is known and compared.

Each version goes through the same life: sessions, plans, jobs, calls in flight, a takeover, a crash with a call and a
job under way, a restart. At least thirty moments each; a moment that is judged otherwise than it was is told by name.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support import builders as b
from tests.support.localshell import Refused, Session, Shell, until
from tests.support.world import SetClock

from tenuto.core import classify
from tenuto.model.evidence import Observation, Rank
from tenuto.model.health import Assessment, Health
from tenuto.model.tools import CallState, Flaw, JobState, PlanState, SessionState, ToolBinding, ToolFacts
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

    def look(self, session: Session, later: float = 0.0, *, services: tuple[str, ...] = ()) -> ToolFacts:
        now = datetime.now(UTC) + later * S
        seer = LocalShellWitness(SetClock(now), lambda _cwd: [Server("real", self.state)])
        return seer.read(ToolBinding("real", session.id, services), None, now)

    def judged(self, facts: ToolFacts, later: float) -> Assessment:
        now = datetime.now(UTC) + later * S
        looked = Observation("local-shell", Rank.JOURNAL, facts.subject, now, facts)
        task = b.with_task(b.with_tools(b.IDLE, facts.binding), attempts=0, standing=Standing.NEW, started_at=b.NOW)
        snapshot = replace(task, last=None, conversation=None)
        return classify.classify(classify.of(b.see(snapshot, looked, now=now), now - S, now))

    def moment(
        self, name: str, session: Session, row: str, health: Health, later: float = 0.0, **known: object
    ) -> ToolFacts:
        """Compare what is judged with what is true; `known` are facts that must be so as well."""
        facts = self.look(session, later)
        said = self.judged(facts, later)
        have = {
            "calls": [call.state for call in facts.calls],
            "jobs": {job.id: job.state for job in facts.jobs},
            "plan": facts.plan.state if facts.plan else None,
            "state": facts.state,
            "flaws": [defect.flaw for defect in facts.defects],
        }
        want = {name_: have[name_] if value is None else value for name_, value in ({"flaws": []} | known).items()}
        self.moments.append(name)
        if (said.row, said.value) != (row, health) or any(have[key] != value for key, value in want.items()):
            self.wrong.append(
                f"{name}: judged {said.row} {said.value} ({said.why}), {have}; true {row} {health} {want}"
            )
        return facts


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
    _takeover(it, shell, one)
    _crash(it, shell, one)
    _ends(it, shell)
    assert not it.wrong, "\n".join(it.wrong)
    assert len(it.moments) >= 34, it.moments
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
    with one.calling("sleep 2; echo effect"):
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
