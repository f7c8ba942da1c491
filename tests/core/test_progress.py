"""The clock of durable progress: what resets it, what counts, what does neither."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support import builders as b

from tenuto.core import progress
from tenuto.model.evidence import WorkspaceFacts, WorkspaceKind
from tenuto.model.policy import POLICY
from tenuto.model.tools import Defect, Flaw, JobFacts, JobState, ToolFacts
from tenuto.model.work import Progress

BASE = Progress(cursor="w0", head="h0", without=2, streak=2, line="old")
SAME = WorkspaceFacts(WorkspaceKind.GIT, head="h0", cursor="w0")


def after(start: Progress, facts: WorkspaceFacts | None, line: str | None = None) -> progress.Account:
    return progress.account(start, facts, line, POLICY, b.NOW)


def test_a_commit_or_a_change_resets_everything() -> None:
    commit = after(BASE, WorkspaceFacts(WorkspaceKind.GIT, head="h1", cursor="w1"))
    assert (commit.moved, commit.external, commit.progress.reason) == (True, True, "a new commit")
    assert (commit.progress.without, commit.progress.streak, commit.progress.cursor) == (0, 0, "w1")
    assert (commit.progress.at, commit.progress.line) == (b.NOW, "old")
    dirty = after(BASE, replace(SAME, cursor="w1"), "said too")
    assert (dirty.progress.reason, dirty.progress.line) == ("changed files", "said too")


def test_a_first_measurement_is_no_progress() -> None:
    first = after(Progress(), SAME)
    assert (first.moved, first.progress.cursor, first.progress.without) == (False, "w0", 1)


def test_a_new_line_of_its_own_is_believed_a_few_times() -> None:
    said = after(BASE, SAME, "new")
    assert (said.moved, said.external, said.progress.without, said.progress.streak) == (True, False, 0, 3)
    assert after(said.progress, SAME, "newer").progress.without == 1
    assert not after(BASE, SAME, "old").moved, "it was said before"
    assert not after(BASE, SAME, None).moved


def test_no_line_of_its_own_ends_a_pause_for_want_of_progress() -> None:
    paused = after(replace(BASE, without=POLICY.stall_pause, streak=0), SAME, "a fresh line")
    assert not paused.moved
    assert paused.pause


@pytest.mark.parametrize("without, warn, pause", [(0, False, False), (1, False, False), (2, True, False),
                                                  (3, False, False), (4, False, False), (5, False, True),
                                                  (9, False, True)])  # fmt: skip
def test_the_warning_and_the_pause(without: int, warn: bool, pause: bool) -> None:
    account = after(replace(BASE, without=without), SAME)
    assert (account.warn, account.pause, account.progress.without) == (warn, pause, without + 1)


@pytest.mark.parametrize("kind", [WorkspaceKind.UNKNOWN, WorkspaceKind.UNREADABLE, WorkspaceKind.MISSING])
def test_what_could_not_be_measured_neither_counts_nor_resets(kind: WorkspaceKind) -> None:
    account = after(replace(BASE, without=5), WorkspaceFacts(kind))
    assert (account.progress.without, account.moved, account.warn, account.pause) == (5, False, False, False)
    assert after(BASE, WorkspaceFacts(WorkspaceKind.GIT, head="h0")).progress.without == 2


def test_a_plain_directory_that_was_put_off_counts_and_one_too_large_does_not() -> None:
    put_off = replace(BASE, without=0)
    assert not progress.measure_plain(put_off, POLICY)
    assert after(put_off, WorkspaceFacts(WorkspaceKind.PLAIN)).progress.without == 1
    due = replace(BASE, without=2)
    assert progress.measure_plain(due, POLICY)
    assert after(due, WorkspaceFacts(WorkspaceKind.PLAIN)).progress.without == 2
    assert progress.measure_plain(Progress(), POLICY)


def test_what_was_not_looked_at_at_all_counts() -> None:
    assert after(BASE, None).progress.without == 3


def test_the_baseline_is_taken_once() -> None:
    assert progress.baseline(Progress(), SAME) == Progress(cursor="w0", head="h0")
    assert progress.baseline(BASE, replace(SAME, cursor="w9")) is BASE
    assert progress.baseline(Progress(), None) == Progress()
    assert progress.baseline(Progress(), WorkspaceFacts(WorkspaceKind.UNKNOWN)) == Progress()


def test_a_job_that_ended_well_is_progress_and_nothing_else_of_a_tool_server_is() -> None:
    start = Progress(cursor="w1", without=4, streak=2)
    made = progress.account(start, None, None, POLICY, b.NOW, ("job_1",))
    assert (made.moved, made.external) == (True, True)
    assert (made.progress.without, made.progress.streak, made.progress.cursor) == (0, 0, "w1")
    assert made.progress.reason == "job job_1 ended well"
    unknown = WorkspaceFacts(WorkspaceKind.UNKNOWN)
    assert progress.account(start, unknown, None, POLICY, b.NOW, ("job_1",)).external, "it needs no workspace"


def test_which_jobs_count() -> None:
    since = b.NOW - b.MIN

    def job(name: str, **more: object) -> JobFacts:
        done = JobFacts(name, JobState.SUCCEEDED, 1, ended_at=b.NOW - 30 * b.S)
        return replace(done, **more)  # type: ignore[arg-type]

    jobs = (
        job("good"),
        job("at-the-end", ended_at=b.NOW),
        job("before", ended_at=since),
        job("undated", ended_at=None),
        job("future", ended_at=b.NOW + b.S),
        job("service", service=True),
        *(job(str(state), state=state) for state in JobState if state is not JobState.SUCCEEDED),
    )
    session = ToolFacts(b.SESSION, jobs=jobs)
    assert progress.jobs_done((session,), since, b.NOW) == ("at-the-end", "good")
    assert progress.jobs_done((session,), None, b.NOW) == ()
    flawed = replace(session, defects=(Defect(Flaw.CONTRADICTORY, "so"),))
    assert progress.jobs_done((flawed,), since, b.NOW) == ()
