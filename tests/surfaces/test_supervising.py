"""The verbs of supervision as a caller meets them: evidence, looks, plan and execute, tool sessions, leases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import builders as b
from tests.support.world import NOW, OPERATOR, World, world

from tenuto.engine.desk import Caller
from tenuto.model.evidence import Observation, Rank
from tenuto.model.faults import Mistake, NotAllowed, Refused
from tenuto.model.health import Health
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role
from tenuto.model.tools import CallState, Defect, Flaw, JobState, PlanState, SessionState, ToolBinding, ToolFacts
from tenuto.model.work import AutoResume
from tenuto.store.transaction import SIGHTINGS_KEPT
from tenuto.surfaces import verbs

S = timedelta(seconds=1)
SESSION, JOB = "s_" + "0" * 24, "job_" + "0" * 12


@dataclass
class Tools:
    """A tool server that says what it is told to say. `between` happens right before the next look."""

    it: World
    said: dict[str, Any] = field(default_factory=dict)
    looks: int = 0
    from_look: int = 0
    then: dict[str, Any] = field(default_factory=dict)

    async def look(self, binding: ToolBinding, cwd: str) -> Observation:
        self.looks += 1
        said = self.then if self.from_look and self.looks >= self.from_look else self.said
        facts = ToolFacts(binding, "4.0", SessionState.ACTIVE, sequence=7, active_at=self.it.clock.now())
        marked = tuple(replace(job, service=job.id in binding.services) for job in said.get("jobs", ()))
        return Observation(
            "local-shell", Rank.JOURNAL, binding.subject, self.it.clock.now(), replace(facts, **said | {"jobs": marked})
        )

    async def sessions(self, cwd: str | None = None) -> tuple[ToolFacts, ...]:
        seen = await self.look(ToolBinding("local", SESSION), "/")
        return (seen.facts,) if isinstance(seen.facts, ToolFacts) else ()


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        made.cycle.tools = Tools(made)
        yield made


def tools(it: World) -> Tools:
    assert isinstance(it.cycle.tools, Tools)
    return it.cycle.tools


async def call(it: World, name: str, key: str | None = None, **params: Any) -> Any:
    return await verbs.call(it.desk, OPERATOR, name, params, key)


async def bound(it: World, **more: Any) -> TaskId:
    task = await it.create(**more)
    await call(it, "tool.bind", task=task, session=SESSION)
    return task


async def test_a_call_in_flight_holds_a_send_and_lets_it_go(it: World) -> None:
    tools(it).said = {"calls": (b.CALL,)}
    task = await bound(it)
    rest = await it.settle(task)
    assert rest is not None
    assert rest.because is not None
    assert rest.because.rung == "tool"
    assert rest.look_again_at is not None
    assert not it.executor.turns
    assert (await call(it, "task.list"))["tasks"][0]["health"]["value"] == "running"
    tools(it).said = {}
    it.clock.move(60 * S)
    await it.settle(task)
    assert len(it.executor.turns) == 1


async def test_a_call_that_begins_between_the_commit_and_the_hand_over_stops_the_hand_over(it: World) -> None:
    task = await bound(it)
    tools(it).looks = 0
    for look in range(2, 12):
        tools(it).from_look, tools(it).then = look, {"calls": (b.CALL,)}
        await it.settle(task)
        if it.desk.commands(task_id=task):
            break
        it.clock.move(60 * S)
        tools(it).looks = 0
    (command,) = it.desk.commands(task_id=task)
    assert command.state == "failed", "proven that nothing happened"
    assert not it.executor.turns
    (attempt,) = it.desk.attempts(task)
    assert attempt.outcome == "unsent"


async def test_evidence_that_cannot_be_believed_is_noted_once_and_stands_in_attention(it: World) -> None:
    tools(it).said = {"state": None, "defects": (Defect(Flaw.UNKNOWN_VERSION, "the file has version 9"),)}
    task = await bound(it)
    for _ in range(3):
        await it.settle(task)
        it.clock.move(60 * S)
    events = [e.fact.kind.value for e in it.desk.events(0, 1000, task_id=task)]
    assert events.count("finding") == 1
    assert events.count("task.health_changed") == 1
    (item,) = (await call(it, "attention"))["items"]
    assert (item["kind"], item["task"]) == ("reconciling", task)
    assert "version 9" in item["question"]
    (again,) = (await call(it, "attention"))["items"]
    assert again["episode"] == item["episode"]
    assert not it.executor.turns
    tools(it).said = {}
    await it.settle(task)
    assert (await call(it, "attention"))["items"] == []
    assert len(it.executor.turns) == 1


async def test_a_job_that_ends_well_moves_the_clock_of_progress(it: World) -> None:
    """EC-06: turns that only wait for builds are no stall while builds end well, and are one when they do not."""
    task, stalled = await bound(it), None
    for number in range(9):
        await it.settle(task)
        it.clock.move(30 * S)
        well = number < 3
        tools(it).said = {"jobs": (replace(b.JOB, state=JobState.SUCCEEDED, ended_at=it.clock.now()),)} if well else {}
        it.clock.move(30 * S)
        it.executor.finish(status="working", summary="it waited for the build")
        await it.settle(task)
        row = it.ledger.task(task)
        assert row is not None
        assert row.progress.without == max(0, number - 2)
        if well:
            assert row.progress.reason == f"job {b.JOB.id} ended well"
        tools(it).said = {}
        stalled = row.stalled_at
        if stalled is not None:
            break
        it.clock.move(60 * S)
    assert stalled is not None


async def test_the_plan_and_the_jobs_of_its_session_are_shown_by_their_names(it: World) -> None:
    tools(it).said = {"plan": b.PLAN, "jobs": (b.JOB,)}
    task = await bound(it)
    (session,) = (await call(it, "observe.list", task=task))["tools"]
    assert session["plan"] == {"id": b.PLAN.id, "state": "active", "steps": 3, "done": 1}
    assert [job["id"] for job in session["jobs"]] == [b.JOB.id]


async def test_attention_says_each_thing_once_and_what_it_leaves_out(it: World) -> None:
    """SV-17: a question and a loud health of one task are one item; quiet tasks are none."""
    task = await bound(it)
    quiet = await it.create("Rest a while")
    await it.settle(quiet)
    tools(it).said = {
        "plan": replace(b.PLAN, state=PlanState.BLOCKED),
        "calls": (replace(b.CALL, state=CallState.ORPHANED),),
    }
    await it.settle(task)
    (item,) = (await call(it, "attention"))["items"]
    assert item["kind"] == "blocked"
    await call(it, "task.wait", task=task, kind="human", question="which attic?")
    answer = await call(it, "attention")
    assert [each["kind"] for each in answer["items"]] == ["human wait"]
    assert answer["suppressed"] == [{"task": task, "health": "blocked", "by": "human wait"}]
    await it.settle(task)
    assert (await call(it, "attention"))["suppressed"] == []


async def test_foreign_observations_are_kept_bounded_and_decide_nothing(it: World) -> None:
    task = await it.started()
    one = {
        "source": "watcher",
        "subject": "page",
        "seen_at": NOW.isoformat(),
        "facts": {"generating": True, "calls": 2},
    }
    answer = await call(it, "observe.import", "k1", task=task, observations=[one])
    assert (answer["taken"], answer["known"]) == (1, 0)
    again = await call(it, "observe.import", task=task, observations=[one])
    assert (again["taken"], again["known"]) == (0, 1)
    said = await call(it, "observe.list", task=task)
    assert said["observations"][0]["rank"] == 5
    assert said["observations"][0]["facts"] == {"calls": "2", "generating": "true"}
    future = one | {"seen_at": (NOW + timedelta(hours=1)).isoformat()}
    await call(it, "observe.import", task=task, observations=[future])
    assert [flaw["flaw"] for flaw in (await call(it, "observe.list", task=task))["flaws"]] == ["future"]
    it.executor.finish()
    await it.settle(task)
    assert len(it.executor.turns) == 2, "hearsay holds no turn"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"facts": {}}, "observations.0.facts"),
        ({"facts": {"mood": "good"}}, "observations.0.facts"),
        ({"facts": {"plan": "dreamy"}}, "observations.0.facts"),
        ({"facts": {"calls": "many"}}, "observations.0.facts"),
        ({"facts": {"active_at": "noon"}}, "observations.0.facts"),
        ({"seen_at": "2026-03-01T12:00:00"}, "observations.0.seen_at"),
        ({"source": "a b"}, "observations.0.source"),
        ({"subject": "a\x00"}, "observations.0.subject"),
    ],
)
async def test_an_observation_that_is_none_is_refused(it: World, change: dict[str, Any], field: str) -> None:
    task = await it.create()
    one = {"source": "w", "subject": "page", "seen_at": NOW.isoformat(), "facts": {"generating": True}} | change
    with pytest.raises(Mistake) as refused:
        await call(it, "observe.import", task=task, observations=[one])
    assert str(refused.value.field).startswith(field)


async def test_of_one_subject_the_newest_are_kept(it: World) -> None:
    task = await it.create()
    for page in range(5):
        many = [
            {"source": "w", "subject": "page", "facts": {"calls": page * 500 + n},
             "seen_at": (NOW + (page * 500 + n) * timedelta(milliseconds=1)).isoformat()}
            for n in range(500)
        ]  # fmt: skip
        await call(it, "observe.import", task=task, observations=many)
    kept = it.ledger.sightings(task, 10_000)
    assert len(kept) == SIGHTINGS_KEPT
    assert dict(kept[0].facts)["calls"] == "2499"
    assert dict(kept[-1].facts)["calls"] == "500"


async def test_a_plan_is_dry_and_shows_every_rung(it: World) -> None:
    task = await it.create()
    before = it.desk.last_event()
    plan = await call(it, "dispatch.plan", task=task)
    assert it.desk.last_event() == before
    assert [rung["rung"] for rung in plan["rungs"]][:3] == ["terminal", "held", "run_stopped"]
    assert {rung["rung"] for rung in plan["rungs"] if rung["holds"]} == {"lease"}
    assert plan["because"] is None
    assert len(plan["fence"]) == 64
    await call(it, "hold")
    assert (await call(it, "dispatch.plan", task=task))["because"]["rung"] == "held"


async def test_execute_sends_one_turn_of_exactly_the_task(it: World) -> None:
    task = await it.create(auto_resume=AutoResume.MANUAL)
    await it.settle(task)
    assert not it.executor.turns
    for wrong in (task[:-1] + ("0" if task[-1] != "0" else "1"), "t-" + "0" * 26):
        with pytest.raises(Mistake, match="whole"):
            await call(it, "dispatch.execute", task=task, confirm_task=wrong)
    with pytest.raises(Mistake):
        await call(it, "dispatch.execute", task=task, confirm_task=task[-8:])
    with pytest.raises(Refused, match="not what was planned"):
        await call(it, "dispatch.execute", task=task, confirm_task=task, fence="0" * 64)
    plan = await call(it, "dispatch.plan", task=task)
    sent = await call(it, "dispatch.execute", "k", task=task, confirm_task=task, fence=plan["fence"])
    assert sent["result"]["state"] in ("armed", "acknowledged")
    assert it.executor.turns == (sent["result"]["command"],)
    with pytest.raises(Refused, match="under way"):
        await call(it, "dispatch.execute", task=task, confirm_task=task)
    assert len(it.executor.turns) == 1


async def test_execute_with_a_key_is_one_send(it: World) -> None:
    task = await it.create(auto_resume=AutoResume.MANUAL)
    await it.settle(task)
    await call(it, "dispatch.execute", "k", task=task, confirm_task=task)
    it.executor.finish()
    await it.settle(task)
    again = await call(it, "dispatch.execute", "k", task=task, confirm_task=task)
    assert again["replayed"]
    assert len(it.executor.turns) == 1


async def test_orchestration_serves_the_longest_unserved_first_and_changes_nothing(it: World) -> None:
    served, fresh, held = [await it.create(name) for name in ("served", "fresh", "held")]
    await it.settle(served)
    it.executor.finish()
    await call(it, "task.pause", task=held)
    before = it.desk.last_event()
    plan = await call(it, "orchestrate")
    assert plan["selected"] == fresh
    assert [row["task"] for row in plan["considered"]][-1] == served
    assert next(r for r in plan["considered"] if r["task"] == held)["because"]["rung"] == "paused"
    assert it.desk.last_event() == before
    with pytest.raises(Mistake, match="twice"):
        await call(it, "orchestrate", tasks=f"{fresh},{fresh[-9:]}")
    assert (await call(it, "orchestrate", tasks=held))["selected"] is None


async def test_a_job_is_a_service_when_the_operator_says_so(it: World) -> None:
    tools(it).said = {"jobs": (b.JOB,)}
    task = await bound(it)
    (job,) = (await call(it, "job.list", task=task))["jobs"]
    assert (job["state"], job["service"]) == ("running", False)
    await call(it, "job.mark-service", "k", task=task, job=JOB)
    assert (await call(it, "job.list", task=task))["jobs"][0]["service"]
    assert it.desk.task(task).tools[0].services == (JOB,)
    await call(it, "job.mark-service", task=task, job=JOB, unmark=True)
    assert not (await call(it, "job.list", task=task))["jobs"][0]["service"]
    await call(it, "tool.unbind", task=task)
    with pytest.raises(Refused, match="no session"):
        await call(it, "job.mark-service", task=task, job=JOB)


async def test_the_sessions_of_tool_servers_are_listed(it: World) -> None:
    (session,) = (await call(it, "tool.list"))["sessions"]
    assert (session["server"], session["session"], session["state"]) == ("local", SESSION, "active")


async def test_the_lease_is_passed_on_by_the_protocol(it: World) -> None:
    task = await it.started()
    it.executor.finish(status="blocked", needs="a person: which way?")
    await it.settle(task)
    places = await call(it, "lease.list", task=task)
    first = places["holder"]
    told = (await call(it, "lease.register", task=task, identity="https://chat.example/c/2"))["result"]
    second = told["conversation"]
    with pytest.raises(Refused, match="that place already"):
        await call(it, "lease.register", task=task, identity="https://chat.example/c/2")
    with pytest.raises(Refused, match="another conversation holds"):
        await call(it, "lease.claim", task=task, conversation=second)
    beat = await call(it, "lease.heartbeat", task=task, lease_number=1)
    assert beat["result"]["conversation"] == first
    with pytest.raises(Refused, match="later lease"):
        await call(it, "lease.heartbeat", task=task, lease_number=7)
    with pytest.raises(Refused, match="looked at twice"):
        await call(it, "lease.takeover", task=task, conversation=second)
    assert (await call(it, "reconcile", task=task))["wanting"]["rung"] == "fence"
    it.clock.move(4 * S)
    await call(it, "reconcile", task=task)
    with pytest.raises(Refused, match="was not handed"):
        await call(it, "lease.takeover", task=task, conversation=second)
    await call(it, "lease.handoff", task=task, conversation=second)
    taken = await call(it, "lease.takeover", task=task, conversation=second)
    assert taken["result"]["conversation"] == second
    assert taken["result"]["lease_number"] == 2
    assert taken["result"]["outside"] == "our lease alone"
    places = await call(it, "lease.list", task=task)
    assert {row["id"]: row["state"] for row in places["conversations"]} == {first: "superseded", second: "active"}
    await call(it, "lease.abandon", task=task, conversation=second)
    assert (await call(it, "lease.list", task=task))["holder"] is None


async def test_a_takeover_waits_for_what_the_old_place_does(it: World) -> None:
    tools(it).said = {"jobs": (b.JOB,)}
    task = await bound(it, auto_resume=AutoResume.MANUAL)
    await it.settle(task)
    place = (await call(it, "lease.register", task=task, identity="elsewhere"))["result"]["conversation"]
    for _ in range(2):
        await call(it, "reconcile", task=task)
        it.clock.move(4 * S)
    with pytest.raises(Refused, match="a job of it runs"):
        await call(it, "lease.takeover", task=task, conversation=place)
    tools(it).said = {}
    with pytest.raises(Refused, match="changed since"):
        await call(it, "lease.takeover", task=task, conversation=place)
    for _ in range(2):
        await call(it, "reconcile", task=task)
        it.clock.move(4 * S)
    taken = await call(it, "lease.takeover", task=task, conversation=place)
    assert taken["result"]["lease_number"] == 1
    assert "any client" in taken["result"]["outside"]


async def test_only_the_operator_supervises(it: World) -> None:
    task = await it.started()
    agent = Caller(Role.AGENT, "agent", task, 1)
    from tenuto.surfaces import supervising

    for name in supervising.VERBS:
        with pytest.raises(NotAllowed):
            await verbs.call(it.desk, agent, name, {"task": task})


async def test_health_goes_with_the_task_through_its_life(it: World) -> None:
    """Quiet all along: starting, running, resting, waiting, completed."""
    task = await it.create(auto_resume=AutoResume.MANUAL)
    seen = []

    async def health() -> None:
        await it.settle(task)
        (row,) = (await call(it, "task.list"))["tasks"]
        seen.append(row["health"]["value"])
        assert (await call(it, "task.explain", task=task))["health"]["value"] == row["health"]["value"]

    await health()
    await call(it, "task.continue", task=task)
    await health()
    it.executor.finish()
    await health()
    await call(it, "task.wait", task=task, kind="human", question="which?")
    await health()
    await call(it, "task.complete", task=task, evidence="commit abc")
    await health()
    assert seen == ["starting", "running", "resting", "waiting", "completed"]
    shown = await call(it, "task.show", task=task)
    assert set(shown["clocks"]) >= {"looked", "progressed", "call_heartbeat", "job_updated", "plan_moved", "network"}
    assert not [e for e in it.desk.events(0, 1000, task_id=task) if e.fact.kind == "task.health_changed"]
    assert Health.SUSPECT not in seen
