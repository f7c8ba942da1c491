"""Still more small things of the core that could be changed without anybody noticing: limits, refusals, looks, ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core import test_chain as chaining
from tests.core import test_delivery as delivering
from tests.core import test_limits as limiting
from tests.core import test_permission as permitting
from tests.core import test_phases as phasing
from tests.core import test_takeover as taking
from tests.support import builders as b

from tenuto.core import (
    arm,
    attention,
    authority,
    chain,
    classify,
    closing,
    control,
    delivery,
    hindrances,
    limits,
    neighbours,
    orchestrate,
    permission,
    phases,
    replacing,
    rungs,
    signal,
    signs,
    slots,
    supervision,
    takeover,
    wake,
)
from tenuto.core import pages as paging
from tenuto.core import playbook as playbooks
from tenuto.core.draft import Draft
from tenuto.model.chain import Board, Unit, UnitState
from tenuto.model.chain import Standing as Stands
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import AnswerAsk, Because, Rung
from tenuto.model.evidence import Asking, Hindrance, Mark, Observation, PageFacts, Presence, Rank, WorkspaceKind
from tenuto.model.fact import Event, Fact, FactKind
from tenuto.model.faults import Mistake
from tenuto.model.health import Assessment, Confidence, Health
from tenuto.model.ids import AttemptId, ChainId, CommandId, PermissionId, TaskId
from tenuto.model.lifecycle import CommandState, DeliveryState, LeaseState, RunState, TaskState
from tenuto.model.limit import UsageLimit
from tenuto.model.message import Message, MessageKind, MessagePolicy, Party
from tenuto.model.permission import Permission, Verdict
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Acknowledgement, Asked, CannotComeTrue, Doubtful, Named, Undone
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import CallState, ClaimState
from tenuto.model.work import (
    Acceptance,
    AcceptanceKind,
    Disposition,
    DispositionSource,
    Standing,
    Task,
    Text,
    Wait,
    WaitKind,
    WakeKind,
)

ALIVE, GONE, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.UNKNOWN
CHAT = replace(b.RESUMABLE, on="ext:browser")
OTHER = TaskId("t-other")


def noted(commit: Commit | None, kind: FactKind) -> list[dict[str, Any]]:
    assert commit is not None
    return [dict(one.data) for one in commit.facts if one.kind is kind]


def made(outcome: object) -> Commit:
    assert isinstance(outcome, Commit), outcome
    return outcome


# -- health and attention


def health(value: Health, **fields: Any) -> Assessment:
    return replace(Assessment(value, Confidence.MEDIUM, "11", "why", "look", b.NOW - b.H), **fields)


def test_health_is_told_when_it_becomes_loud_or_quiet_again() -> None:
    def told(before: Health | None, after: Health) -> int:
        snapshot = b.with_task(health=None if before is None else health(before))
        commit = arm.rest(b.see(snapshot), None, None, b.NOW, b.new, health=health(after, row="12"))
        return len(noted(commit, FactKind.TASK_HEALTH))

    assert told(Health.RUNNING, Health.SUSPECT) == told(Health.SUSPECT, Health.RUNNING) == 1
    assert told(Health.SUSPECT, Health.NEEDS_HUMAN) == told(None, Health.SUSPECT) == 1
    assert told(Health.RUNNING, Health.RESTING) == told(None, Health.RUNNING) == 0
    assert told(Health.SUSPECT, Health.SUSPECT) == 0, "another row of the same is no news"


def test_only_a_loud_task_that_goes_on_stands_in_attention_and_once() -> None:
    loud = health(Health.SUSPECT)
    tasks = [
        replace(b.TASK, id=TaskId("t-loud"), health=loud),
        replace(b.TASK, id=TaskId("t-asks"), health=loud),
        replace(b.TASK, id=TaskId("t-quiet"), health=health(Health.RUNNING)),
        replace(b.TASK, id=TaskId("t-new"), health=None),
        replace(b.TASK, id=TaskId("t-over"), health=loud, state=TaskState.FAILED),
        replace(b.TASK, id=TaskId("t-quiet-asks"), health=health(Health.WAITING)),
        replace(b.TASK, id=TaskId("t-new-asks"), health=None),
    ]
    waits = [b.a_wait(task_id=TaskId(name)) for name in ("t-asks", "t-quiet-asks", "t-new-asks")]
    items = attention.queue(waits, (), tasks, (), b.NOW)
    assert [item.task_id for item in items if item.kind == "suspect"] == ["t-loud"]
    hushed = attention.hushed(items, tasks)
    assert [(one.task_id, one.health, one.by) for one in hushed] == [("t-asks", Health.SUSPECT, "human wait")]


def case(snapshot: Snapshot, *looks: Observation) -> classify.Case:
    return classify.of(b.see(snapshot, *looks), b.NOW - b.H, b.NOW)


def test_a_call_that_outlived_its_server_is_in_flight() -> None:
    orphan = replace(b.CALL, state=CallState.ORPHANED)
    assert case(b.with_tools(), b.tools(calls=(orphan,))).in_flight
    assert not case(b.with_tools(), b.tools()).in_flight


def test_nothing_rests_while_a_command_of_it_is_open() -> None:
    assert classify.classify(case(b.IDLE)).row == "14c"
    check = replace(b.CHECK, state=CommandState.SUBMITTED, submitted_at=b.NOW)
    assert classify.classify(case(replace(b.IDLE, commands=(check,)))).value is not Health.RESTING


def test_a_tool_card_is_no_matter_while_something_moves_beside_it() -> None:
    def said(still: int) -> str:
        moved = (b.NOW - still * b.S).isoformat()
        row = b.sighting(source="page", rank=2, send_ready="true", tool_card="true", page_changed_at=moved)
        snapshot = b.with_task(standing=Standing.CUT_SHORT)
        return classify.classify(case(replace(snapshot, sightings=(row,)))).why

    limit = int(POLICY.suspect_page.total_seconds())
    assert "tool card" not in said(limit - 1)
    assert "tool card" in said(limit)


def test_a_quiet_episode_stays_word_for_word_and_a_loud_one_keeps_its_beginning() -> None:
    later: dict[str, Any] = {"why": "another", "since": b.NOW}
    quiet = health(Health.RUNNING)
    assert classify.episode(quiet, replace(quiet, **later)) == quiet
    assert classify.episode(quiet, replace(quiet, confidence=Confidence.LOW, **later)) == replace(
        quiet, confidence=Confidence.LOW, why="another"
    )
    loud = health(Health.SUSPECT)
    assert classify.episode(loud, replace(loud, **later)) == replace(loud, why="another")


# -- verbs


def test_an_answer_goes_to_the_program_of_the_turn_under_way() -> None:
    seen = b.see(b.with_live(), b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, ALIVE, ALIVE))
    intent = AnswerAsk(PermissionId("e-1"), "7", True, "", None)

    def armed(**less: Any) -> arm.Written | None:
        epoch = less.pop("epoch", 1)
        world = replace(seen, snapshot=replace(seen.snapshot, **less), epoch=epoch)
        return arm.answer(world, intent, CommandId("c-1"), b.NOW, b.new)

    whole = armed()
    assert whole is not None
    assert (whole.command.kind, whole.command.target, whole.command.scopes) == (CommandKind.ANSWER, "7", ("ask:e-1",))
    assert armed(live=None) is armed(live_command=None) is armed(epoch=None) is None


@pytest.mark.parametrize("note", [None, "tests pass"])
def test_what_was_ready_long_enough_claims_to_be_complete(note: str | None) -> None:
    said = note or "completion-ready"
    plain = b.After(arm.close_ready(b.see(b.with_task(ready_at=b.NOW, ready_note=note)), b.NOW, b.new))
    assert plain.task.state is TaskState.COMPLETED
    assert plain.task.disposition is not None
    assert (plain.task.disposition.reference, plain.task.disposition.verified) == (said, False)
    judged = b.with_task(b.claimed(AcceptanceKind.FILE), claim=None, ready_at=b.NOW, ready_note=note)
    claimed = b.After(arm.close_ready(b.see(judged), b.NOW, b.new)).task
    assert claimed.state is TaskState.ACTIVE
    assert claimed.claim is not None
    assert claimed.claim.evidence == said


def test_an_answer_about_an_earlier_turn_settles_its_doubt_while_another_is_under_way() -> None:
    doubt = replace(b.DOUBTFUL, id=CommandId("c-old"), attempt_id=b.LAST.id)
    wait = b.a_wait(attempt_id=b.LAST.id)
    world = replace(b.with_live(), commands=(doubt,), waits=(wait,))
    after = b.After(made(control.answer(world, wait, "it happened", "sam", b.NOW, b.new)))
    assert after.command(doubt.id) is CommandState.RELEASED
    under_way = replace(world, live=replace(b.LIVE, id=b.LAST.id))
    kept = b.After(made(control.answer(under_way, wait, "it happened", "sam", b.NOW, b.new)))
    assert not kept.all(Command), "the turn under way is not given up by an answer"


def test_who_completes_a_task_without_a_word_is_named() -> None:
    for summary, reason in (("", "completed by the operator"), ("well done", "well done")):
        outcome = control.complete(b.IDLE, DispositionSource.OPERATOR, "commit abc", summary, b.NOW, b.new)
        ending = b.After(made(outcome)).task.disposition
        assert ending is not None
        assert ending.reason == reason


def test_a_released_turn_takes_along_what_it_was_told_no_for_now() -> None:
    row = permitting.a_row(parked_at=b.NOW - b.MIN)
    world = permitting.with_row(row, b.with_live(b.DOUBTFUL))
    outcome = control.release(world, b.DOUBTFUL, "sam", happened=True, now=b.NOW, new=b.new)
    assert b.After(made(outcome)).one(Permission).closed_at == b.NOW


def test_a_task_that_ends_with_something_under_way_is_looked_at() -> None:
    check = replace(b.CHECK, state=CommandState.SUBMITTED, submitted_at=b.NOW)
    for world, look in (
        (replace(b.IDLE, commands=(check,)), b.NOW), (b.with_live(), b.NOW), (b.IDLE, None),
    ):  # fmt: skip
        outcome = control.cancel(b.with_task(world, look_at=b.NOW + b.H), "sam", "", b.NOW, b.new)
        assert b.After(made(outcome)).task.look_at == look


def test_tokens_of_a_turn_are_added_to_those_of_before() -> None:
    draft = Draft(b.with_task(b.with_live(), tokens=10), b.NOW, b.new)
    draft.end_attempt(AttemptOutcome.TURN_END, tokens_in=3, tokens_out=4)
    assert draft.task.tokens == 17


def test_words_wait_for_the_moment_that_was_given_to_them() -> None:
    draft = Draft(b.IDLE, b.NOW, b.new)
    later = draft.message("sam", MessageKind.WORDS, "look", not_before=b.NOW + b.H)
    assert (later.not_before, draft.message("sam", MessageKind.WORDS, "look").not_before) == (b.NOW + b.H, b.NOW)


def test_a_wake_keeps_who_asked_for_it() -> None:
    row = wake.added(b.IDLE, WakeKind.MESSAGE, "words", b.NOW, b.NOW, b.new, asked_by="sam")
    woken = replace(b.IDLE, wakes=(row,))
    again = wake.added(woken, WakeKind.MESSAGE, "more words", b.NOW, b.NOW, b.new)
    assert (again.id, again.asked_by) == (row.id, "sam")
    assert wake.added(woken, WakeKind.MESSAGE, "words", b.NOW, b.NOW, b.new, asked_by="kim").asked_by == "kim"


def test_corrective_words_do_not_wait_for_the_spacing_of_words() -> None:
    seen = delivering.live(b.with_task(b.with_live(), steered_at=b.NOW - b.S))
    plain = b.a_message(policy=MessagePolicy.STEER_NOW)
    due = b.NOW - b.S + POLICY.live_spacing
    for message, by in ((plain, due), (replace(plain, corrective="it deletes the wrong files"), b.NOW)):
        foretold = delivery.prospect(seen, message, b.NOW)
        assert (foretold.way, foretold.by) == (delivery.Way.STEER, by)


# -- limits and pages


def test_a_limit_that_is_over_holds_nobody_and_one_of_every_model_names_none() -> None:
    row = limiting.a_limit()
    assert limits.applies(row, limiting.ACCOUNT, None)
    assert not limits.applies(replace(row, closed_at=b.NOW), limiting.ACCOUNT, None)
    assert "models" not in limits.sentence(row)
    assert "of opus models" in limits.sentence(replace(row, model="opus"))


def test_a_limit_that_holds_already_is_not_met_again_by_looking_at_a_page() -> None:
    facts = PageFacts(shown=True, state="limit")
    for known in (limiting.a_limit(account="lab@x"), limiting.a_limit(account="other@x")):
        world = replace(b.IDLE, limits=(known,))
        draft = Draft(world, b.NOW, b.new)
        paging.settle(draft, replace(b.see(world), found=replace(b.found(world), page=facts), account="lab@x"))
        assert any(isinstance(row, UsageLimit) for row in draft.puts) == (known.account != "lab@x")


def test_a_card_is_asked_about_for_a_chat_that_goes_on_alone() -> None:
    card = Asking("1", "page", "may it write?", "f" * 64)
    chat = b.with_task(b.with_live(), agent=CHAT)
    for world, asked in ((chat, 1), (b.with_task(chat, state=TaskState.CANCELLED), 0), (b.with_live(), 0)):
        draft = Draft(world, b.NOW, b.new)
        paging.settle(draft, replace(b.see(world), found=replace(b.found(world), cards=(card,))))
        assert len([row for row in draft.puts if isinstance(row, Wait)]) == asked


def test_several_tabs_of_one_conversation_hold_its_turn() -> None:
    def said(**facts: Any) -> Because | None:
        page = PageFacts(shown=True, state="ready", composer="empty", **facts)
        return paging.page(replace(b.see(b.IDLE), found=replace(b.found(b.IDLE), page=page)), b.NOW)

    held = said(several=True)
    assert held is not None
    assert (held.rung, "several tabs" in held.sentence) == (Rung.PAGE, True)
    assert said() is None


def test_only_tries_to_close_the_page_of_the_last_turn_count() -> None:
    over = b.with_task(agent=CHAT, state=TaskState.COMPLETED, ended_at=b.NOW - b.MIN)

    def closes(number: int, **fields: Any) -> Command:
        made_ = replace(b.CHECK, kind=CommandKind.PAGE_CLOSE, state=CommandState.FAILED, id=CommandId(f"c-{number}"))
        return replace(made_, **fields)

    def wanted(*checks: Command) -> bool:
        return closing.wanted(replace(over, checks=checks), b.NOW)

    tried = tuple(closes(number) for number in range(closing.TRIES))
    assert wanted()
    assert wanted(*tried[1:])
    assert not wanted(*tried)
    assert not wanted(closes(9, state=CommandState.ACKNOWLEDGED))
    before = {"attempt_id": AttemptId("a-before"), "state": CommandState.ACKNOWLEDGED}
    assert wanted(closes(9, **before), replace(b.CHECK, state=CommandState.ACKNOWLEDGED))


# -- leave that is asked


def test_a_question_that_goes_away_takes_its_own_wait_alone_along() -> None:
    row = permitting.a_row()
    world = permitting.with_row(row)
    other = b.a_wait(WaitKind.HUMAN, "which colour?")
    draft = Draft(replace(world, waits=(other, *world.waits)), b.NOW, b.new)
    permission.unasked(draft, row)
    assert draft.snapshot.waits == (other,)


def test_words_that_go_along_with_an_answer_are_kept() -> None:
    world = b.with_task(permitting.with_row(permitting.a_row()), agent=replace(b.RESUMABLE, adapter="claude"))
    after = permitting.answered(world, Verdict.DENY, "rather read it")
    assert after.one(Text).body == "rather read it"
    assert after.one(Permission).words == after.one(Text).id
    assert not after.all(Message)


def test_what_is_asked_for_is_cut_to_what_a_row_holds() -> None:
    draft = Draft(b.with_live(), b.NOW, b.new)
    permission.asked(draft, b.ACKNOWLEDGED, Asking("7", "t" * 300, "w" * 3000, "f" * 64))
    (row,) = [each for each in draft.puts if isinstance(each, Permission)]
    assert (row.tool, row.what) == ("t" * 200, "w" * 2000)


def test_a_question_is_known_by_the_turn_that_asks_it() -> None:
    other = permitting.a_row(command_id=CommandId("c-before"))
    found = b.found(permitting.with_row(other), permitting.asks(permitting.WISH)).findings
    assert [each.ask for each in found if isinstance(each, Asked)] == [permitting.WISH]
    known = b.found(permitting.with_row(permitting.a_row()), permitting.asks(permitting.WISH)).findings
    assert not [each for each in known if isinstance(each, Asked)]


def test_who_is_told_no_for_now_is_told_of() -> None:
    row = permitting.a_row(asked_at=b.NOW - POLICY.permission_wait)
    parked = permission.parked(b.see(permitting.with_row(row)), b.NOW, b.new)
    assert noted(parked, FactKind.PERMISSION_PARKED) == [{"permission": row.id, "what": row.what}]


# -- chains, phases and playbooks


def test_branches_of_a_chain_begin_with_its_own_name() -> None:
    assert authority.namespace(ChainId("h-1")) == "tenuto/h-1/"


def test_a_unit_that_was_never_tried_is_tried_once_where_the_cap_is_one() -> None:
    board = Board((Unit("U-1", UnitState.ELIGIBLE), Unit("U-2", UnitState.ELIGIBLE)), None)
    assert chain.resolve(board, None, frozenset(), {}, 1).unit == "U-1"
    assert chain.resolve(board, None, frozenset(), {"U-1": 1}, 1).unit == "U-2"
    assert chain.resolve(board, None, frozenset(), {"U-1": 1, "U-2": 1}, 1).standing is Stands.BLOCKED


def test_a_sweep_says_by_what_a_unit_is_done() -> None:
    board = Board((Unit("U-1", UnitState.DONE), Unit("U-2", UnitState.DONE, evidence="commit abc")), None)
    swept = chain.sweep(board, {}, {}, chaining.CURSOR.attempt_cap)
    assert [one.evidence for one in swept] == ["the source says so", "commit abc"]


def test_only_where_phases_count_a_task_is_told_of_its_pull_request() -> None:
    for counts in (True, False):
        told = phases.worktree_told("work-1", phasing.BASE.branch, phases=counts)
        assert ("phase_open" in told) == counts
        assert "on branch work-1" in told


def test_a_playbooks_program_is_of_the_adapter_that_it_names() -> None:
    text = '+++\nprogram = ["agent"]\n{}+++\n\nLook.\n'
    for line, adapter in (("", "program"), ('agent = "claude"\n', "claude")):
        agent = playbooks.read("user", "one", text.format(line)).agent
        assert agent is not None
        assert agent.adapter == adapter


@pytest.mark.parametrize("value", ["3", '"long"', "[1]", "true", "{ turn-limit = true }"])
def test_numbers_of_a_playbook_are_a_table(value: str) -> None:
    with pytest.raises(Mistake, match="a table of numbers"):
        playbooks.read("user", "one", f"+++\npolicy = {value}\n+++\n\nLook.\n")


# -- what is found


def test_a_conversation_is_named_by_a_turn_that_was_seen_to_begin() -> None:
    for mark, named in ((Mark.ACCEPTED, 1), (Mark.ENDED, 1), (Mark.BEGUN, 0), (Mark.CLAIMED, 0)):
        more: dict[str, Any] = {"ending": b.ending()} if mark is Mark.ENDED else {}
        look = b.seen_of(b.SUBMITTED, mark, ALIVE, ALIVE, proof={"session": "s-outside"}, **more)
        found = b.found(b.with_live(b.SUBMITTED), look).findings
        assert [one.identity for one in found if isinstance(one, Named)] == ["s-outside"] * named


def test_what_is_said_of_words_that_were_not_taken_is_handed_on() -> None:
    steer = delivering.STEER
    world = replace(b.with_live(), commands=(steer,))

    def found(mark: Mark, command: Command = steer, **fields: Any) -> tuple[object, ...]:
        looked = b.seen_of(command, mark, GONE, GONE, **fields)
        return b.found(replace(world, commands=(command,)), looked).findings

    assert [one.reason for one in found(Mark.REVOKED, reason="too late") if isinstance(one, Undone)] == ["too late"]
    assert [one.reason for one in found(Mark.REVOKED) if isinstance(one, Undone)] == ["it was not begun"]
    assert [one.why for one in found(Mark.BEGUN, reason="torn") if isinstance(one, Doubtful)] == ["torn"]
    nowhere = found(Mark.ACCEPTED, replace(steer, target=None))
    assert not any(isinstance(one, Acknowledgement) for one in nowhere), "no turn is not the turn it was meant for"
    assert any(isinstance(one, Doubtful) for one in nowhere)


def test_a_wait_for_a_task_that_is_not_named_cannot_come_true() -> None:
    found = b.found(b.with_wait(WaitKind.TASK, subject=None)).findings
    assert [one.why for one in found if isinstance(one, CannotComeTrue)] == [
        "there is no task named that it could wait for"
    ]


def test_what_says_nothing_of_health_is_not_kept() -> None:
    looked = b.workspace()
    assert b.found(b.IDLE, b.acceptance(True), looked).observations == (looked,)


def test_a_report_of_a_little_ahead_of_our_clock_is_believed() -> None:
    for ahead, believed in ((signs.SKEW, True), (signs.SKEW + b.S, False)):
        found = signs.gathered((), [b.tools(active_at=b.NOW + ahead)], POLICY, b.NOW)
        assert ("active_at" in found) == believed


def test_a_job_that_nobody_dates_leaves_the_clock_of_jobs_to_the_others() -> None:
    undated = replace(b.JOB, updated_at=None)
    assert dict(signs.said(b.tools(jobs=(b.JOB, undated))))["job_updated_at"] == (b.NOW - b.MIN).isoformat()
    assert "job_updated_at" not in dict(signs.said(b.tools(jobs=(undated,))))


def test_a_block_in_a_fence_that_was_never_closed_stands_once() -> None:
    text = "````\n```tenuto\nstatus: working\n```\n````python\ncode\n"
    for end in ("````\n", ""):
        assert signal.blocks_in(text + end) == (signal.RawBlock(signal.Kind.SIGNAL, "status: working"),)


def test_an_unreadable_line_is_told_whole_or_cut_visibly() -> None:
    for line, told in (("?? what", "?? what"), ("?" * 80, "?" * 80), ("?" * 81, "?" * 79 + "…")):
        read = signal.read_report([line])
        assert isinstance(read, signal.NoReport)
        assert read.detail == told


# -- rungs


def test_what_is_at_work_in_a_tool_session_holds_until_the_next_look() -> None:
    def held(**fields: Any) -> tuple[Because | None, Because | None]:
        seen = b.see(b.with_tools(), b.tools(**fields))
        return rungs.busy(seen, b.NOW), rungs.tool(seen, b.NOW)

    orphan = replace(b.CALL, state=CallState.ORPHANED)
    for fields, of_busy, of_tool in (
        ({"calls": (b.CALL,)}, "a tool call is in flight", "a tool call is in flight"),
        ({"calls": (orphan,)}, "a tool call is in flight", "may have outlived the server"),
        ({"jobs": (b.JOB,)}, "a job of it runs", None),
        ({"claim": ClaimState.PENDING}, "about to be continued", None),
    ):
        for said, wanted in zip(held(**fields), (of_busy, of_tool), strict=True):
            if wanted is None:
                assert said is None
            else:
                assert said is not None
                assert wanted in said.sentence
                assert (said.rung, said.until) == (Rung.TOOL, b.NOW + rungs.TOOL_LOOK)
    assert held() == (None, None)


def test_words_of_the_operator_pass_a_stall() -> None:
    stalled = b.with_task(stalled_at=b.NOW)
    assert rungs.stalled(b.see(stalled), b.NOW) is not None
    row = wake.added(stalled, WakeKind.MESSAGE, "words", b.NOW, b.NOW, b.new, asked_by="sam")
    assert rungs.stalled(b.see(replace(stalled, wakes=(row,))), b.NOW) is None
    theirs = replace(row, asked_by=None)
    assert rungs.stalled(b.see(replace(stalled, wakes=(theirs,))), b.NOW) is not None


def test_a_look_that_saw_another_workspace_is_a_look_all_the_same() -> None:
    seen = b.see(b.IDLE, b.workspace())
    members = tuple(each for each in seen.found.members if not each.startswith("workspace "))
    before = replace(b.sampled(seen, 8 * b.S, "0" * 64), members=(*members, "workspace other"))
    said = rungs.twice(replace(seen, snapshot=replace(b.IDLE, samples=(before,))), b.NOW)
    assert said is not None
    assert "changed since the last look" in said.sentence


def test_since_when_a_turn_has_its_slot_is_since_it_is_live() -> None:
    turn = replace(b.LIVE, live_at=b.NOW - b.MIN, scheduled_at=b.NOW - 2 * b.MIN)
    assert slots.occupancy(b.TASK, turn, b.ACKNOWLEDGED, POLICY, b.NOW).since == b.NOW - b.MIN
    early = replace(turn, live_at=None)
    assert slots.occupancy(b.TASK, early, b.ACKNOWLEDGED, POLICY, b.NOW).since == b.NOW - 2 * b.MIN


# -- what follows


def child(name: str, **fields: Any) -> Task:
    ending = Disposition("all done", DispositionSource.AGENT, TaskState.ACTIVE, "commit abc", True)
    return replace(b.TASK, id=TaskId(name), state=TaskState.COMPLETED, disposition=ending, ended_at=b.NOW, **fields)


def test_children_that_ended_end_the_wait_for_them() -> None:
    wait = b.a_wait(WaitKind.CHILDREN, "its children")
    world = replace(b.IDLE, waits=(wait,), children=(child("t-a"), child("t-b", told_at=b.NOW - b.H)))
    after = b.settled(world)
    closed = after.one(Wait)
    assert (closed.id, closed.closed_at, closed.closed_by) == (wait.id, b.NOW, "1 of its children ended")
    assert set(after.wakes) == {WakeKind.DEPENDENCY}
    assert after.one(Message).kind is MessageKind.NEWS
    assert after.one(Task, lambda row: row.id == "t-a").told_at == b.NOW


def test_a_limit_that_moved_moves_its_wait() -> None:
    row = limiting.a_limit(met_by=b.TASK.id)
    wait = b.a_wait(WaitKind.LIMIT, subject=row.id, until=b.NOW + b.MIN)
    world = replace(limiting.under(row, snapshot=b.IDLE), waits=(wait,))
    moved = b.settled(world).one(Wait)
    assert (moved.id, moved.closed_at) == (wait.id, None)
    assert moved.until == limits.own_moment(row, world.task, POLICY)


def test_a_wait_that_cannot_come_true_becomes_a_persons() -> None:
    wait = b.a_wait(WaitKind.TASK, "until the parser is there", subject=b.TASK.id)
    after = b.settled(replace(b.IDLE, waits=(wait,)))
    assert after.one(Wait, lambda row: row.id == wait.id).closed_at == b.NOW
    assert [question.startswith("it waits for itself") for question in after.asked] == [True]


@pytest.mark.parametrize(
    ("party", "kind", "by"),
    [
        (Party.OPERATOR, MessageKind.WORDS, "sam"),
        (Party.OPERATOR, MessageKind.ANSWER, None),
        (Party.TENUTO, MessageKind.WORDS, None),
    ],
)
def test_words_that_were_not_taken_ask_in_the_name_of_the_operator_alone(
    party: Party, kind: MessageKind, by: str | None
) -> None:
    steer = delivering.STEER
    words = b.a_message(
        kind, DeliveryState.CARRIED, carried_by=steer.id, party=party, sender="sam", policy=MessagePolicy.STEER_NOW
    )
    world = b.with_message(words, replace(b.with_live(), commands=(steer,)))
    after = b.settled(world, b.seen_of(steer, Mark.REVOKED))
    assert after.wakes[WakeKind.MESSAGE].asked_by == by
    assert after.one(Message).policy is MessagePolicy.NEXT_TURN


def test_a_turn_says_what_it_says_or_nothing() -> None:
    quiet = b.settled(b.with_live(), b.ended(b.ACKNOWLEDGED, "status: working"))
    assert quiet.one(Attempt).detail is None
    done = "status: complete\nsummary: all done\nevidence: commit abc"
    told = b.settled(b.with_task(b.with_live(), acceptance=b.claimed().task.acceptance), b.ended(b.ACKNOWLEDGED, done))
    assert told.one(Attempt).detail == "all done"
    assert (told.task.standing, told.task.standing_reason) == (Standing.COMPLETE, "all done")


def test_a_check_that_is_lost_after_its_claim_was_taken_back_asks_nobody() -> None:
    check = replace(b.CHECK, state=CommandState.SUBMITTED, submitted_at=b.NOW)
    after = b.settled(replace(b.IDLE, commands=(check,)), b.seen_of(check, Mark.NONE))
    assert after.command(check.id) is CommandState.RELEASED
    assert not after.asked
    assert after.task.claim is None


def test_a_turn_that_was_not_sent_for_a_task_that_is_over_leads_to_nothing() -> None:
    for mendable in (True, False):
        look = b.seen_of(b.SEND, Mark.FAILED, reason="no such program", mendable=mendable)
        after = b.settled(b.cancelled(b.with_live(b.SEND)), look)
        assert after.one(Attempt).outcome is AttemptOutcome.UNSENT
        assert not after.wakes
        assert not after.all(Wait)


# -- who works where


def test_a_lease_that_nobody_held_supersedes_nobody() -> None:
    claimed = made(supervision.claim(replace(b.IDLE, conversation=None), taking.HEIR, b.NOW, b.new))
    assert not noted(claimed, FactKind.CONVERSATION_SUPERSEDED)
    assert b.After(claimed).one(Conversation).state is LeaseState.ACTIVE
    refused = supervision.claim(b.IDLE, taking.HEIR, b.NOW, b.new)
    assert isinstance(refused, Because)
    assert "another conversation holds" in refused.sentence


def test_a_hand_over_is_offered_to_a_candidate_and_told() -> None:
    offered = made(supervision.hand_off(b.IDLE, taking.HEIR, "sam", b.NOW, b.new))
    assert b.After(offered).one(Conversation).handoff_to == taking.HEIR.id
    assert noted(offered, FactKind.CONVERSATION_OFFERED) == [
        {"conversation": b.TALK.id, "to": taking.HEIR.id, "by": "sam"}
    ]
    gone = replace(taking.HEIR, state=LeaseState.ABANDONED)
    refused = supervision.hand_off(b.IDLE, gone, "sam", b.NOW, b.new)
    assert isinstance(refused, Because)
    assert "candidate of the same task" in refused.sentence


def test_a_takeover_holds_only_for_as_long_as_what_was_seen() -> None:
    held = replace(b.TALK, handoff_to=taking.HEIR.id)
    world = replace(b.IDLE, conversation=held)
    looked = b.see(world, b.workspace())
    samples = tuple(b.sampled(looked, age * b.S) for age in (2, 8))
    ready = b.see(replace(world, samples=samples), b.workspace())
    written = made(supervision.take_over(ready, taking.HEIR, b.NOW, b.new))
    assert written.valid_until == b.NOW + POLICY.arm_within
    assert len(noted(written, FactKind.CONVERSATION_SUPERSEDED)) == 1
    once = supervision.may_take_over(looked, b.NOW)
    assert once is not None
    assert once.change.startswith("tenuto reconcile")
    everything = replace(world, registry=replace(world.registry, held_at=b.NOW, held_by="sam"))
    because = supervision.may_take_over(b.see(everything, b.workspace()), b.NOW)
    assert because is not None
    assert (because.rung, because.change) == (Rung.HELD, "tenuto unhold")


def test_what_is_told_twice_is_kept_once() -> None:
    one = supervision.Told("eyes", "page", b.NOW, (("generating", "true"),))
    other = replace(one, seen_at=b.NOW + b.S)
    taken = supervision.observed(b.IDLE, (one, other, one), "sam", b.NOW, b.new)
    assert (taken.taken, taken.known) == (2, 1)
    known = supervision.observed(b.IDLE, (), "sam", b.NOW, b.new)
    assert (known.commit, known.taken, known.known) == (None, 0, 0)


def test_a_takeover_where_nobody_holds_the_lease_gives_it_to_its_heir() -> None:
    command = taking.open_one()
    world = replace(taking.world(command), conversation=None)
    draft = Draft(world, b.NOW, b.new)
    command = replace(command, digest=takeover.ground(b.see(world, b.workspace()).found.members))
    takeover.take_effect(draft, command, b.see(world, b.workspace()), None)
    (talk,) = [row for row in draft.puts if isinstance(row, Conversation)]
    assert (talk.id, talk.state) == (taking.HEIR.id, LeaseState.ACTIVE)
    assert [one.kind for one in draft.facts] == [FactKind.CONVERSATION_CLAIMED]


def test_a_task_whose_takeover_was_armed_is_looked_at() -> None:
    world = b.with_task(replace(taking.world(taking.open_one()), commands=()), look_at=b.NOW + b.H)
    tool = Observation("local-shell", Rank.JOURNAL, taking.BOUND.subject, b.NOW, taking.session(taking.OLD))
    looked = b.see(world, tool, b.workspace())
    ready = b.see(
        replace(world, samples=tuple(b.sampled(looked, age * b.S) for age in (2, 8))), tool, b.workspace()
    )  # fmt: skip
    session = taking.session(taking.OLD)
    written = replacing.armed(ready, taking.HEIR, session, CommandId("c-new"), "local-shell", b.NOW, b.new)
    assert isinstance(written, arm.Written), written
    assert b.After(written.commit).task.look_at == b.NOW


# -- a coordinator, and a plan


def hearing(*facts: Fact, **fields: Any) -> Snapshot:
    events = tuple(Event(1, number, b.NOW, one) for number, one in enumerate(facts, start=1))
    return replace(b.IDLE, run=replace(b.RUN, coordinator=b.TASK.id), news=events, **fields)


def test_a_coordinator_is_told_when_it_can_hear() -> None:
    ended = Fact(FactKind.TASK_FAILED, task_id=OTHER, data={"reason": "no disk"})
    assert neighbours.news(hearing(ended), b.NOW) is not None
    unread = b.a_message(MessageKind.NEWS)
    for deaf in (
        replace(hearing(ended), run=b.RUN),
        b.with_task(hearing(ended), state=TaskState.COMPLETED),
        hearing(ended, live=b.LIVE),
        hearing(),
        hearing(ended, messages=(unread,)),
        hearing(ended, messages=(replace(unread, state=DeliveryState.RETRY_WAIT),)),
    ):
        assert neighbours.news(deaf, b.NOW) is None
    assert neighbours.news(hearing(ended, messages=(replace(unread, state=DeliveryState.CARRIED),)), b.NOW) is not None


def test_a_page_full_of_no_news_is_passed_over_and_less_is_left() -> None:
    own = Fact(FactKind.TASK_FAILED, task_id=b.TASK.id)
    full = neighbours.news(hearing(*[own] * neighbours.PAGE), b.NOW)
    assert full is not None
    assert (full.lines, full.upto) == ((), neighbours.PAGE)
    assert neighbours.news(hearing(*[own] * (neighbours.PAGE - 1)), b.NOW) is None


def test_a_coordinator_is_told_every_line_under_one_heading() -> None:
    head, *lines = neighbours.body(["- a", "- b"]).split("\n")
    assert lines == ["- a", "- b"]
    assert head.endswith(":")


def test_a_plan_selects_who_was_served_longest_ago_and_may_be_served() -> None:
    def one(name: str, served: int | None = None, **fields: Any) -> Snapshot:
        world = b.with_wake()
        last = None if served is None else b.NOW - served * b.S
        return replace(world, task=replace(world.task, id=TaskId(name), last_served_at=last, **fields))

    lately = b.see(one("t-lately", 4))
    before = b.see(one("t-before", 600))
    plan = orchestrate.plan([lately, before], b.NOW)
    assert (plan.selected, plan.at) == ("t-before", b.NOW)
    assert [(each.task.id, each.because is None) for each in plan.considered] == [
        ("t-before", True), ("t-lately", False),
    ]  # fmt: skip
    cooling = plan.considered[1].because
    assert cooling is not None
    assert (cooling.rung, cooling.until) == (Rung.SPACING, b.NOW + b.S)
    assert orchestrate.plan([b.see(one("t-never")), before], b.NOW).selected == "t-never"
    assert orchestrate.plan([], b.NOW).selected is None
    with pytest.raises(ValueError, match="twice"):
        orchestrate.plan([before, before], b.NOW)


def test_a_plan_passes_over_who_would_be_held_after_everything_that_is_done_by_itself() -> None:
    world = replace(b.with_wake(), conversation=None)
    assert orchestrate.plan([b.see(world)], b.NOW).selected == b.TASK.id
    gone = orchestrate.plan([b.see(world, b.workspace(None, WorkspaceKind.MISSING))], b.NOW)
    assert gone.selected is None
    assert gone.considered[0].because is not None
    assert gone.considered[0].because.rung is Rung.EVIDENCE
    stopped = replace(world, run=replace(world.run, state=RunState.STOPPED, stopped_at=b.NOW))
    assert orchestrate.plan([b.see(stopped)], b.NOW).selected is None


# -- what hinders a program


@pytest.mark.parametrize(
    ("program", "code", "text", "by"),
    [
        ("claude", "rate_limit", "You've HIT YOUR limit", Hindrance.LIMIT),
        ("claude", "rate_limit", "slow down", Hindrance.OVERLOAD),
        ("codex", "rate_limit", "You've hit your limit", None),
        ("codex", "unauthorized", "", Hindrance.LOGIN),
        ("claude", "unauthorized", "", None),
        ("pi", "error", "overloaded", Hindrance.OVERLOAD),
        ("pi", "error", "no such file", None),
        ("pi", "other", "overloaded", None),
        ("acp", "429", "quota exhausted, try again later", Hindrance.LIMIT),
        ("acp", "429", "", Hindrance.OVERLOAD),
        ("nobody", "429", "", None),
    ],
)
def test_a_failure_hinders_by_the_words_of_its_own_program(
    program: str, code: str, text: str, by: Hindrance | None
) -> None:
    assert hindrances.of(program, ["unheard-of", code], text) is by
    assert hindrances.of(program, [], text) is None, "a text alone is never enough"


def test_a_limit_is_for_one_family_of_models_where_its_name_says_so() -> None:
    named = {name: hindrances.model_of(name) for name in ("seven_day_opus", "seven_day_sonnet", "five_hour", "", None)}
    assert named == {"seven_day_opus": "opus", "seven_day_sonnet": "sonnet", "five_hour": None, "": None, None: None}


def test_a_program_that_waits_for_its_children_is_not_judged_before_they_ended() -> None:
    plain = b.with_task(
        agent=replace(b.TASK.agent, resumable=False), acceptance=Acceptance(AcceptanceKind.CHECK, ("true",))
    )
    wait = b.a_wait(WaitKind.CHILDREN, "its children", subject="all")
    under_way = replace(b.TASK, id=TaskId("t-a"))
    world = replace(b.with_live(snapshot=plain), waits=(wait,), children=(under_way,))
    at_its_end = b.ended(b.ACKNOWLEDGED, exit_code=0)
    assert b.settled(world, at_its_end).task.claim is None
    assert b.settled(replace(world, waits=()), at_its_end).task.claim is not None
