"""The Local Shell MCP witness: what its files say, what is lazy in them, and everything that may be wrong with them.

The inputs are small and of our own making; state directories that real servers left are read as well, as they were.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import builders as b
from tests.support.world import SetClock

from tenuto.core import classify, signs
from tenuto.model.evidence import Observation, Rank
from tenuto.model.health import Health
from tenuto.model.tools import CallState, ClaimState, Flaw, JobState, PlanState, SessionState, ToolBinding, ToolFacts
from tenuto.transports.localshell import files, jobs, servers, witness
from tenuto.transports.localshell.servers import Life, Server
from tenuto.transports.localshell.witness import LocalShellWitness

DATA = Path(__file__).parent.parent / "data" / "localshell"
T = datetime.fromtimestamp(1_780_000_000, UTC)
ONE, TWO = "s_" + "1" * 24, "s_" + "2" * 24
JOB1, JOB2 = "job_" + "1" * 12, "job_" + "2" * 12
S = timedelta(seconds=1)


@dataclass
class State:
    """A server's state directory, and a witness of it at some moment."""

    path: Path
    now: datetime = T + 30 * S
    life: Life = field(default_factory=lambda: Life(T - timedelta(days=1)))

    def session(self, name: str = ONE) -> dict[str, Any]:
        return dict(json.loads((self.path / "sessions" / f"{name}.json").read_text()))

    def write(self, tree: object, name: str = ONE) -> None:
        (self.path / "sessions" / f"{name}.json").write_text(json.dumps(tree))

    def change(self, name: str = ONE, **fields: Any) -> None:
        self.write(self.session(name) | fields, name)

    def plan(self, **fields: Any) -> None:
        self.change(plan=self.session()["plan"] | fields)

    def relist(self, **fields: Any) -> None:
        tree = json.loads((self.path / "jobs.json").read_text())
        (self.path / "jobs.json").write_text(json.dumps(tree | fields))

    def status(self, job: str, attempt: int = 1, **fields: Any) -> None:
        told = {"completed_at": T.timestamp() + 9, "error": None, "exit_code": 0, "log_truncated": False} | fields
        (self.path / "jobs" / f"{job}-attempt-{attempt}.status.json").write_text(json.dumps(told))

    def look(self, name: str = ONE, *, services: tuple[str, ...] = ()) -> ToolFacts:
        seer = LocalShellWitness(
            SetClock(self.now), lambda _cwd: [Server("local", self.path)], alive=lambda _: self.life
        )
        return seer.read(ToolBinding("local", name, services), None, self.now)

    def flaws(self, name: str = ONE) -> list[Flaw]:
        return [defect.flaw for defect in self.look(name).defects]


@pytest.fixture
def state(tmp_path: Path) -> State:
    path = tmp_path / "state"
    (path / "sessions").mkdir(parents=True)
    (path / "jobs").mkdir()
    shutil.copy(DATA / "session-v1.json", path / "sessions" / f"{ONE}.json")
    shutil.copy(DATA / "session-v2.json", path / "sessions" / f"{TWO}.json")
    shutil.copy(DATA / "jobs.json", path / "jobs.json")
    return State(path)


def test_both_versions_are_read(state: State) -> None:
    one, two = state.look(ONE), state.look(TWO)
    assert (one.version, two.version) == ("4.0", "4.1 to 5")
    assert one.run == "r_" + "1" * 24
    assert two.run is None
    for facts in (one, two):
        assert facts.state is SessionState.ACTIVE
        assert facts.plan is not None
        assert (facts.plan.state, facts.plan.done, facts.plan.steps) == (PlanState.ACTIVE, 1, 2)
        assert facts.active_at == T + 20 * S
        assert facts.due_at == T + 920 * S
        assert not facts.defects


def test_a_job_belongs_to_the_session_that_started_it(state: State) -> None:
    assert [job.id for job in state.look(ONE).jobs] == [JOB1]
    assert [job.id for job in state.look(TWO).jobs] == [JOB2]


def test_a_job_is_found_by_the_audit_log_when_the_activity_is_too_short(state: State) -> None:
    for name, given in ((ONE, {"session_run_id": "r_" + "1" * 24}), (TWO, {"logical_session_id": TWO})):
        state.change(name, activity_seq=300, activity=[])
        assert state.look(name).jobs == ()
        lines = [
            {
                "event": "mcp_tool_call_start",
                "tool": "job_start",
                "call_id": "c1",
                "arguments": {"keyword_args": given},
            },
            {"event": "mcp_tool_call_start", "tool": "job_start", "call_id": "c2", "arguments": {"keyword_args": {}}},
            {"event": "job_start", "job_id": JOB1, "parent_call_id": "c1"},
            {"event": "job_start", "job_id": JOB2, "parent_call_id": "c2"},
        ]
        broken = '{"event": "job_start", "job_id'
        (state.path / "audit.jsonl").write_text("\n".join([broken, *map(json.dumps, lines), broken]))
        assert [job.id for job in state.look(name).jobs] == [JOB1]


@pytest.mark.parametrize(("code", "ends"), [(0, JobState.SUCCEEDED), (3, JobState.FAILED), (None, JobState.FAILED)])
def test_the_status_file_of_the_attempt_is_the_truth(state: State, code: int | None, ends: JobState) -> None:
    state.status(JOB2, 1)  # an older attempt's says nothing
    assert state.look(TWO).jobs[0].state is JobState.RUNNING
    state.status(JOB2, 2, exit_code=code)
    (job,) = state.look(TWO).jobs
    assert (job.state, job.corrected, job.exit_code) == (ends, True, code)


def test_a_list_and_a_status_file_that_disagree_are_a_contradiction(state: State) -> None:
    tree = json.loads((state.path / "jobs.json").read_text())
    tree["jobs"][0] |= {"status": "succeeded", "exit_code": 0}
    state.relist(**tree)
    state.status(JOB1, exit_code=3)
    assert state.flaws() == [Flaw.CONTRADICTORY]


def test_a_service_is_marked_and_does_not_count(state: State) -> None:
    assert state.look().running
    assert not state.look(services=(JOB1,)).running


def call(state: State, age: int, name: str = ONE) -> CallState:
    beat = state.now.timestamp() - age
    state.change(name, in_flight_calls={"f" * 32: {"started_at": beat, "heartbeat_at": beat}})
    (found,) = state.look(name).calls
    return found.state


def test_a_call_in_flight_lives_is_orphaned_or_stale(state: State) -> None:
    state.now = T + timedelta(hours=3)
    assert call(state, 5) is CallState.LIVE
    assert call(state, 2400) is CallState.LIVE  # a heart that beats every 40 minutes
    state.life = Life(None)
    assert call(state, 2400) is CallState.ORPHANED
    assert call(state, 7200) is CallState.STALE
    state.life = Life(state.now - 60 * S)  # the server began after the call's last beat
    assert call(state, 61) is CallState.ORPHANED
    assert call(state, 59) is CallState.LIVE
    state.life = Life(None, told=False)
    assert call(state, 2400) is CallState.LIVE


@pytest.mark.parametrize(
    ("fields", "claim", "due"),
    [
        ({}, ClaimState.NONE, 920),
        ({"continuation_pending": True, "continuation_pending_since": 1_780_000_000.0 - 200}, ClaimState.PENDING, None),
        ({"continuation_pending": True, "continuation_pending_since": 1_780_000_000.0 - 300}, ClaimState.EXPIRED, 920),
        ({"continuation_count": 10}, ClaimState.EXHAUSTED, None),
        ({"continuation_retry_after": 1_780_002_000.0}, ClaimState.NONE, 2000),
        ({"status": "blocked"}, ClaimState.NONE, None),
    ],
)
def test_the_claim_is_as_it_stands_now(
    state: State, fields: dict[str, Any], claim: ClaimState, due: int | None
) -> None:
    state.now = T + 30 * S
    state.plan(**fields)
    facts = state.look()
    assert facts.claim is claim
    assert facts.due_at == (None if due is None else T + due * S)


def halve(path: Path) -> None:
    body = path.read_bytes()
    path.write_bytes(body[: len(body) // 2])


def swap(path: Path) -> None:
    other = path.with_name(f"{TWO}.json")
    body, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(body)


def link_out(path: Path) -> None:
    away = path.parent.parent.parent / "away.json"
    shutil.move(path, away)
    path.symlink_to(away)


def grow(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100 * 1024 * 1024)


def change(**fields: Any) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return act


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    path.write_bytes(b"\xff\x00\xfe")


def a_list(path: Path) -> None:
    path.write_text("[]")


def deepen(path: Path) -> None:
    path.write_text("[" * 200_000)


def twice(path: Path) -> None:
    tree = json.loads(path.read_text())
    path.write_text(json.dumps(tree | {"jobs": tree["jobs"] + tree["jobs"]}))


def odd(path: Path) -> None:
    tree = json.loads(path.read_text())
    tree["jobs"][0]["status"] = "pondering"
    path.write_text(json.dumps(tree))


SPOILED: dict[str, tuple[Callable[[Path], None], Flaw]] = {
    "cut in half": (halve, Flaw.UNREADABLE),
    "empty": (empty, Flaw.UNREADABLE),
    "not text": (garble, Flaw.UNREADABLE),
    "a list": (a_list, Flaw.UNREADABLE),
    "very deep": (deepen, Flaw.UNREADABLE),
    "swapped with another": (swap, Flaw.CONTRADICTORY),
    "a link out of the directory": (link_out, Flaw.UNREADABLE),
    "a pipe": (pipe, Flaw.UNREADABLE),
    "100 MiB": (grow, Flaw.UNREADABLE),
    "gone": (Path.unlink, Flaw.MISSING),
    "an older version": (change(version=0), Flaw.UNKNOWN_VERSION),
    "a newer version": (change(version=3), Flaw.UNKNOWN_VERSION),
    "a version in words": (change(version="2"), Flaw.UNKNOWN_VERSION),
    "version true": (change(version=True), Flaw.UNKNOWN_VERSION),
    "of the future": (change(updated_at=T.timestamp() + 3600), Flaw.FUTURE),
    "dated before there were such things": (change(updated_at=-1.0), Flaw.UNREADABLE),
    "dated never": (change(updated_at="yesterday"), Flaw.UNREADABLE),
    "a status nobody knows": (change(status="dreaming"), Flaw.UNREADABLE),
    "no activity at all": (change(activity=None), Flaw.UNREADABLE),
    "a call without a name": (change(in_flight_calls={"x": {}}), Flaw.UNREADABLE),
    "a plan of an unknown sort": (change(plan={"plan_id": "p", "status": "odd", "updated_at": 1.8e9}), Flaw.UNREADABLE),
    "over, with a call in flight": (
        change(status="completed", in_flight_calls={"f" * 32: {"started_at": 1.78e9, "heartbeat_at": 1.78e9}}),
        Flaw.CONTRADICTORY,
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_session_is_closed_and_says_why(state: State, how: str) -> None:
    spoil, flaw = SPOILED[how]
    assert not state.look().defects
    spoil(state.path / "sessions" / f"{ONE}.json")
    facts = state.look()
    assert [defect.flaw for defect in facts.defects] == [flaw], facts.defects
    assert all(len(defect.why) > 10 for defect in facts.defects)
    looked = Observation("local-shell", Rank.JOURNAL, facts.subject, b.NOW, facts)
    due = b.with_tools(b.with_wake(), facts.binding)
    assert b.decided(due, looked).intent is None, "what cannot be believed permits nothing"


#: What no field of a document should be.
STRANGE: tuple[Any, ...] = (
    None, True, -1, 10**400, 1e308, float("nan"), float("inf"), "", "x" * 5000, "\x00", [], {}, [[]], {"a": {}}, "on",
)  # fmt: skip


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    yield at
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, each in inner:
        yield from places(each, (*at, name))


@pytest.mark.parametrize("name", [f"sessions/{ONE}.json", f"sessions/{TWO}.json", "jobs.json"])
def test_whatever_stands_anywhere_is_read_or_said_to_be_wrong(state: State, name: str) -> None:
    """Every field of every document, made into every strange thing, or left out: never an exception, never a lie."""
    whole = (state.path / name).read_text()
    session = TWO if TWO in name else ONE
    before = state.look(session)
    for at in places(json.loads(whole)):
        for strange in (*STRANGE, ...):
            tree = json.loads(whole)
            held = tree
            for step in at[:-1]:
                held = held[step]
            if strange is ... and at and isinstance(held, dict):
                del held[at[-1]]
            elif strange is not ... and at:
                held[at[-1]] = strange
            elif strange is not ...:
                tree = strange
            (state.path / name).write_text(json.dumps(tree))
            facts = state.look(session)
            looked = Observation("local-shell", Rank.JOURNAL, facts.subject, state.now, facts)
            assert all(signs.objection(*said) is None for said in signs.said(looked)), (at, strange)
            if facts.state is not None and not facts.defects and name.startswith("sessions"):
                assert len(facts.calls) == len(before.calls) or at[0] == "in_flight_calls", (at, strange)


LISTS: dict[str, tuple[Callable[[Path], None], Flaw]] = {
    name: SPOILED[name]
    for name in ("cut in half", "empty", "a list", "a link out of the directory", "a pipe", "100 MiB")
} | {
    "a newer version": (change(version=3), Flaw.UNKNOWN_VERSION),
    "one job twice": (twice, Flaw.UNREADABLE),
    "a word nobody knows": (odd, Flaw.UNREADABLE),
}


@pytest.mark.parametrize("how", LISTS)
def test_a_spoiled_list_of_jobs_is_said_and_hides_no_job_that_its_copy_has(state: State, how: str) -> None:
    spoil, flaw = LISTS[how]
    shutil.copy(state.path / "jobs.json", state.path / "jobs.json.bak")
    spoil(state.path / "jobs.json")
    if flaw is Flaw.UNREADABLE and how == "100 MiB":
        assert jobs.LIST_LIMIT < 100 * 1024 * 1024
    facts = state.look()
    assert [defect.flaw for defect in facts.defects] == [flaw]
    if flaw is Flaw.UNREADABLE:
        assert [job.state for job in facts.jobs] == [JobState.RUNNING]


@pytest.mark.parametrize("how", ["cut in half", "a link out of the directory", "a pipe", "100 MiB"])
def test_a_spoiled_status_file_ends_no_job(state: State, how: str) -> None:
    state.status(JOB1)
    SPOILED[how][0](state.path / "jobs" / f"{JOB1}-attempt-1.status.json")
    facts = state.look()
    assert [job.state for job in facts.jobs] == [JobState.RUNNING]
    assert [defect.flaw for defect in facts.defects] == [Flaw.UNREADABLE]


@pytest.mark.parametrize("folder", ["sessions", "jobs"])
def test_a_directory_that_is_a_link_is_not_entered(state: State, folder: str) -> None:
    shutil.move(state.path / folder, state.path.parent / "elsewhere")
    (state.path / folder).symlink_to(state.path.parent / "elsewhere")
    assert state.flaws() == [Flaw.UNREADABLE]


def test_two_servers_with_one_session_are_a_doubt(state: State, tmp_path: Path) -> None:
    shutil.copytree(state.path, tmp_path / "copy")
    known = [Server("local", state.path), Server("other", tmp_path / "copy")]
    seer = LocalShellWitness(SetClock(), lambda _cwd: known, alive=lambda _: Life(None))
    facts = seer.read(ToolBinding("local", ONE), None, state.now)
    assert [defect.flaw for defect in facts.defects] == [Flaw.DUPLICATED]
    (tmp_path / "same").symlink_to(state.path)
    known[1] = Server("other", tmp_path / "same")
    assert not seer.read(ToolBinding("local", ONE), None, state.now).defects


def test_a_file_that_is_replaced_all_the_time_is_read_whole(state: State) -> None:
    path, over = state.path / "sessions" / f"{ONE}.json", threading.Event()
    trees = [json.dumps(state.session() | {"activity_seq": n, "label": "x" * 50_000 * (n % 2)}) for n in (3, 4)]

    def replace_it() -> None:
        for n in range(100_000):
            if over.is_set():
                return
            new = path.with_name(f".{ONE}.json.{n}.tmp")
            new.write_text(trees[n % 2])
            new.replace(path)

    other = threading.Thread(target=replace_it)
    other.start()
    try:
        seen = [state.look() for _ in range(200)]
    finally:
        over.set()
        other.join()
    assert not [facts.defects for facts in seen if facts.defects]
    assert {facts.sequence for facts in seen} <= {3, 4}


def test_nothing_is_written_and_no_lock_taken(state: State) -> None:
    def whole() -> dict[str, tuple[int, int]]:
        return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(state.path.rglob("*"))}

    before = whole()
    state.look()
    assert whole() == before


async def test_servers_are_found_by_name_environment_and_workspace(state: State, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    shutil.copytree(state.path, workspace / servers.USUAL)
    environ = {servers.THEIRS: str(tmp_path / "theirs"), servers.OURS: str(tmp_path / "ours")}
    found = servers.found({"mine": state.path}, environ, workspace)
    assert {server.name: server.state for server in found} == {
        "mine": state.path, "local": tmp_path / "ours", "workspace": workspace / servers.USUAL
    }  # fmt: skip
    seer = LocalShellWitness(
        SetClock(state.now), witness.configured({"mine": state.path}, {}), alive=lambda _: Life(None)
    )
    everything = await seer.sessions(str(workspace))
    assert [facts.subject for facts in everything] == [f"{n}/{s}" for n in ("mine", "workspace") for s in (ONE, TWO)]
    assert (await seer.look(ToolBinding("nobody", ONE), "/")).facts.defects[0].flaw is Flaw.MISSING  # type: ignore[union-attr]


def test_whether_a_server_lives_is_asked_of_its_process(tmp_path: Path) -> None:
    assert servers.alive(tmp_path) in (Life(None), Life(None, told=False))


def test_no_text_of_a_session_is_taken_along(state: State) -> None:
    """EC-17: identities, states and moments; never an objective, a step, a command or a result."""
    secret = "swordfish"
    tree = json.loads(json.dumps(state.session()).replace('"-"', f'"{secret}"'))
    state.write(tree)
    (state.path / "jobs.json").write_text((state.path / "jobs.json").read_text().replace('"-"', f'"{secret}"'))
    facts = state.look()
    assert facts.readable
    assert secret not in repr(facts)


def test_a_limit_is_a_limit(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{" + " " * 100 + "}")
    with files.directory(tmp_path) as folder:
        assert folder is not None
        assert files.document("x.json", folder, 102) == {}
        with pytest.raises(files.Unreadable, match="larger"):
            files.document("x.json", folder, 101)
        assert files.read("x.json", folder, 1, tail=True) == b"}"


# -- recorded directories of real servers

#: What servers 4.0.1 and 5.1.4 left on their disks, as it was: session files, lists of jobs, status files and clocks.
RECORDED: dict[str, str] = json.loads(lzma.decompress((DATA / "recorded.json.xz").read_bytes()))
#: directory of a record, and how the session that moves there is to be judged.
EXPECTED: dict[str, tuple[str, Health]] = {
    "v4.0.1/01-session-started": ("13a", Health.RUNNING),
    "v4.0.1/02-plan-started": ("13", Health.RUNNING),
    "v4.0.1/03-jobs-just-started": ("5", Health.RUNNING),
    "v4.0.1/04-status-files-before-refresh": ("5", Health.RUNNING),
    "v4.0.1/05-after-job-list": ("5", Health.RUNNING),
    "v4.0.1/06-in-flight": ("5", Health.RUNNING),
    "v4.0.1/07-before-takeover": ("5", Health.RUNNING),
    "v4.0.1/08-after-takeover": ("5", Health.RUNNING),
    "v4.0.1/09-plan-blocked": ("3", Health.BLOCKED),
    "v4.0.1/10-job-stopped": ("13", Health.RUNNING),
    "v4.0.1/11-job-retried": ("13", Health.RUNNING),
    "v4.0.1/12-plan-completed": ("4", Health.CLAIMED),
    "v4.0.1/13-session-finished": ("2", Health.CLAIMED),
    "v4.0.1/14-three-sessions": ("13a", Health.RUNNING),
    "v4.0.1/20-before-crash": ("5", Health.RUNNING),
    "v4.0.1/21-just-after-crash": ("5", Health.RUNNING),
    "v4.0.1/22-crash-plus-14s": ("5b", Health.NEEDS_HUMAN),
    "v4.0.1/23-restarted-takeover-refused": ("5b", Health.NEEDS_HUMAN),
    "v5.1.4/01-session-started": ("13a", Health.RUNNING),
    "v5.1.4/02-plan-updated": ("13", Health.RUNNING),
    "v5.1.4/03-jobs-started": ("5", Health.RUNNING),
    "v5.1.4/04-status-before-refresh": ("5", Health.RUNNING),
    "v5.1.4/05-after-job-list": ("5", Health.RUNNING),
    "v5.1.4/06-in-flight": ("5", Health.RUNNING),
    "v5.1.4/07-job-stopped": ("13", Health.RUNNING),
    "v5.1.4/08-finished": ("2", Health.CLAIMED),
    "v5.1.4/09-reopened-after-finish": ("4", Health.CLAIMED),
    "v5.1.4/20-before-crash": ("5", Health.RUNNING),
    "v5.1.4/21-just-after-crash": ("5", Health.RUNNING),
    "v5.1.4/22-crash-plus-14s": ("5b", Health.NEEDS_HUMAN),
} | {
    f"{version}-clock/{name}": judged
    for version in ("v4.0.1", "v5.1.4")
    for name, judged in {
        "30-plan-active": ("13", Health.RUNNING),
        "31-lease-due": ("10", Health.SUSPECT),
        "32-continuation-claimed": ("9", Health.RUNNING),
        "33-continuation-reserved": ("9", Health.RUNNING),
        "34-claim-expired-still-pending-on-disk": ("10", Health.SUSPECT),
        "35-claimed-again-after-ttl": ("9", Health.RUNNING),
        "36-continuation-failed-backoff": ("13", Health.RUNNING),
        "37-continuation-sent": ("13", Health.RUNNING),
        "38-continuations-exhausted": ("9b", Health.NEEDS_HUMAN),
    }.items()
}
#: How the other sessions of a directory are to be judged: one finished, one cancelled, one without a plan where nothing
#: was done for minutes, one that was just begun, and one that was opened again after its plan was done.
BESIDE: dict[str, tuple[str, Health]] = {
    "s_600576446eeaa569911683d4": ("2", Health.CLAIMED),
    "s_5297f46b2ffbe1be0865a150": ("16", Health.SUSPECT),
    "s_c19ac7ec8828e7b0362c2d92": ("16", Health.SUSPECT),
    "s_2479f54ace83ea336eb18b17": ("13a", Health.RUNNING),
    "s_00d1d286665957eefbcd0471": ("4", Health.CLAIMED),
}
#: How long after the last word the directory was kept, and since when its server lived then, where it had crashed.
CRASHED: dict[str, tuple[float, Life]] = {"22": (14, Life(None))}
#: The collection that the records come from, where it lies beside this checkout.
COLLECTION = Path(__file__).parents[3] / "shared" / "data" / "local-shell"


def test_every_record_has_its_judgement() -> None:
    """And is what it was. Where the collection is there, every directory of it is one of those that are judged."""
    there = {"/".join(path.split("/")[:2]) for path in RECORDED}
    assert there == set(EXPECTED)
    given = {f"{path.parent.name}/{path.name}" for path in COLLECTION.glob("v*/*") if path.is_dir()}
    assert given in (set(), there)
    assert not [path for path in RECORDED if given and (COLLECTION / path).read_text("utf-8") != RECORDED[path]]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_directory_is_judged_as_it_was(name: str, tmp_path: Path) -> None:
    """Each of its sessions, under the clock of the moment."""
    folder = tmp_path / name
    for path, body in RECORDED.items():
        if path.startswith(f"{name}/"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(body)
    trees = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "sessions").glob("*.json"))}
    moving = max(trees, key=lambda session: _moment(trees[session]))
    later, life = CRASHED.get(folder.name[:2], (0.1, Life(T)))
    beats = [each["heartbeat_at"] for each in trees[moving]["in_flight_calls"].values()]
    now = datetime.fromtimestamp(max([*(tree["updated_at"] for tree in trees.values()), *beats]) + later, UTC)
    if (folder / "CLOCK").exists():
        now = datetime.fromtimestamp(json.loads((folder / "CLOCK").read_text())["now"], UTC)
    if folder.name.startswith("23"):
        life = Life(now - S)  # another server, that began after the call
    seer = LocalShellWitness(SetClock(now), lambda _cwd: [Server("it", folder)], alive=lambda _: life)
    wrong = []
    for session in trees:
        facts = seer.read(ToolBinding("it", session), None, now)
        assert not facts.defects
        looked = Observation("local-shell", Rank.JOURNAL, facts.subject, now, facts)
        fresh = b.with_task(b.with_tools(b.IDLE, facts.binding), attempts=0, started_at=T, standing="new")
        snapshot = replace(fresh, last=None, conversation=None)
        said = classify.classify(classify.of(b.see(snapshot, looked, now=now), now - S, now))
        if (said.row, said.value) != (EXPECTED[name] if session == moving else BESIDE[session]):
            wrong.append((session, said))
    assert wrong == []


def _moment(tree: dict[str, Any]) -> tuple[bool, float]:
    """Which session is the one that moves: one with a call in flight, else the newest."""
    return bool(tree["in_flight_calls"]), float(tree["updated_at"])
