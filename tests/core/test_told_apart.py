"""More small things of the core, each found by changing it and seeing nobody notice: what is told, to whom, and when.

Two cases that look alike come to different ends here, and what must not be concluded is not.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.core import test_chain as chaining
from tests.core import test_delivery as delivering
from tests.core import test_permission as permitting
from tests.core import test_phases as phasing
from tests.core import test_takeover as taking
from tests.support import builders as b

from tenuto.core import (
    arm,
    attention,
    chain,
    delivery,
    neighbours,
    permission,
    phases,
    progress,
    replacing,
    resets,
    rungs,
    slots,
    supervision,
    takeover,
)
from tenuto.core import playbook as playbooks
from tenuto.core.draft import Draft
from tenuto.core.settle import settle
from tenuto.model.chain import Outcome, Parent, Standing
from tenuto.model.change import Commit
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Rung, SteerTurn
from tenuto.model.evidence import Mark, Observation, Presence, Rank
from tenuto.model.fact import Event, Fact, FactKind
from tenuto.model.faults import Mistake
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.lifecycle import CommandState, DeliveryEvent, DeliveryState, LeaseState, PhaseState, TaskState
from tenuto.model.message import MessageKind, MessagePolicy
from tenuto.model.permission import Permission
from tenuto.model.phase import Landing
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Living, Undone
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Claim, Progress, Wait, WaitKind, WakeKind
from tenuto.model.work import Standing as Stands

ALIVE, UNKNOWN = Presence.ALIVE, Presence.UNKNOWN


def fact(draft: Draft, kind: FactKind) -> Fact:
    (only,) = [one for one in draft.facts if one.kind is kind]
    return only


# -- words


@pytest.mark.parametrize("event", [DeliveryEvent.UNSENT, DeliveryEvent.TURNED_AWAY, DeliveryEvent.DOUBTED])
def test_a_delivery_that_did_not_happen_is_told_by_what_became_of_it(event: DeliveryEvent) -> None:
    message = b.a_message(state=DeliveryState.CARRIED, carried_by=b.SEND.id)
    draft = Draft(b.with_message(message), b.NOW, b.new)
    draft.deliver(message, event)
    assert dict(fact(draft, FactKind.MESSAGE_RETRIED).data) == {"message": message.id, "event": event}


@pytest.mark.parametrize("policy", MessagePolicy)
def test_words_that_are_stored_are_told_with_their_sender(policy: MessagePolicy) -> None:
    draft = Draft(b.IDLE, b.NOW, b.new)
    row = draft.message("sam", MessageKind.WORDS, "look again", policy)
    told = {"message": row.id, "kind": MessageKind.WORDS, "sender": "sam"}
    assert dict(fact(draft, FactKind.MESSAGE_STORED).data) == told


def test_when_words_for_the_next_turn_come_is_not_foretold_while_a_turn_is_under_way() -> None:
    """The moment of the next look is no end of the turn."""
    words = b.a_message(policy=MessagePolicy.NEXT_TURN)
    foretold = delivery.prospect(delivering.live(b.with_live()), words, b.NOW)
    assert (foretold.way, foretold.by) == (delivery.Way.NEXT_TURN, None)
    assert "is under way" in (foretold.because or "")


@pytest.mark.parametrize("missing", ["turn", "conversation", "command", "epoch", "words"])
def test_words_are_put_into_a_turn_that_is_there_with_all_that_belongs_to_it(missing: str) -> None:
    seen = delivering.live()
    words = () if missing == "words" else (delivering.WORDS.id,)
    intent = SteerTurn((delivering.WORDS.id,), "turn 1")
    whole = arm.steer(seen, intent, CommandId("c-1"), "look", (delivering.WORDS.id,), b.NOW, b.new)
    assert whole is not None
    assert whole.command.target == "turn 1"
    gone: dict[str, dict[str, Any]] = {
        "turn": {"live": None}, "conversation": {"conversation": None}, "command": {"live_command": None},
    }  # fmt: skip
    less = replace(seen, snapshot=replace(seen.snapshot, **gone.get(missing, {})))
    less = replace(less, epoch=None if missing == "epoch" else 1)
    assert arm.steer(less, intent, CommandId("c-1"), "look", words, b.NOW, b.new) is None


# -- turns and what they come to


def test_whose_usage_a_turn_takes_is_kept_as_soon_as_it_was_sent() -> None:
    sent = b.see(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE, proof={"model": "large"}))
    after = b.After(settle(replace(sent, account="lab@x"), b.NOW, b.new))
    assert (after.task.account, after.task.model) == ("lab@x", "large")
    silent = b.see(
        b.with_task(b.with_live(b.SEND), account="lab@x", model="large"), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE)
    )
    kept = b.After(settle(silent, b.NOW, b.new)).task
    assert (kept.account, kept.model) == ("lab@x", "large"), "who says nothing takes nothing back"


def test_a_turn_whose_session_is_gone_gives_its_task_a_fresh_one() -> None:
    after = b.settled(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.FAILED, reason="session gone: nobody knows it"))
    assert after.task.session_over == b.TALK.id
    assert after.task.fresh_sessions == 1
    assert after.task.standing is Stands.HINDERED
    assert set(after.wakes) == {WakeKind.EVENT}


def test_a_stopped_tasks_turn_is_a_persons_only_once_its_stop_lies_back() -> None:
    grace = b.RUN.policy.interrupt_grace
    stopped = b.with_live(snapshot=b.with_task(state=TaskState.CANCELLED, ended_at=b.NOW - 6 * grace))
    look = b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, ALIVE, ALIVE)
    assert len(b.settled(stopped, look).asked) == 1
    assert b.settled(b.with_task(stopped, ended_at=b.NOW - 5 * grace), look).nothing
    assert b.settled(b.with_task(stopped, ended_at=None), look).nothing, "nobody knows since when"


@pytest.mark.parametrize(("jobs", "why"), [(("a",), "job a ended well"), (("a", "b", "c"), "3 jobs ended well")])
def test_jobs_that_moved_a_task_are_named_or_counted(jobs: tuple[str, ...], why: str) -> None:
    account = progress.account(Progress(cursor="w0"), None, None, POLICY, b.NOW, jobs)
    assert (account.progress.reason, account.moved, account.external) == (why, True, True)


def test_what_says_that_it_is_ready_says_who_closes_it() -> None:
    ready = b.with_task(ready_at=b.NOW, ready_note="all done", auto_close=False)
    by_hand = rungs.ready(b.see(ready), b.NOW)
    assert by_hand is not None
    assert (by_hand.until, by_hand.change.partition(" --")[0]) == (None, f"tenuto complete {b.TASK.id}")
    itself = rungs.ready(b.see(b.with_task(ready, auto_close=True)), b.NOW)
    assert itself is not None
    assert (itself.until, itself.change) == (b.NOW + POLICY.ready_grace, "it closes by itself")


def test_a_slot_is_held_by_who_is_active_and_claims_nothing() -> None:
    claim = Claim("commit abc", "done", None, b.NOW)
    for state in TaskState:
        assert slots.holds(replace(b.TASK, state=state)) == (state is TaskState.ACTIVE)
        assert not slots.holds(replace(b.TASK, state=state, claim=claim))


@pytest.mark.parametrize(
    ("written", "look", "kept"),
    [
        (None, 10 * b.S, arm.NET),
        (3 * b.MIN, 10 * b.S, 3 * b.MIN),
        (10 * b.S, 10 * b.S, 10 * b.S),
        (9 * b.S, 10 * b.S, arm.NET),
        (arm.NET, 10 * b.S, arm.NET),
        (arm.NET + b.S, 10 * b.S, arm.NET),
        (3 * b.MIN, arm.SOON, 3 * b.MIN),
        (None, arm.SOON + b.S, arm.SOON + b.S),
    ],
)
def test_a_look_that_comes_soon_is_written_only_where_nothing_later_is(
    written: timedelta | None, look: timedelta, kept: timedelta
) -> None:
    before = None if written is None else b.NOW + written
    for rung in Rung:
        said = arm.netted(before, b.NOW + look, Because(rung, "why", "what"), b.NOW)
        assert said == b.NOW + (kept if rung in arm.POLLED else look)
    assert arm.netted(before, b.NOW + look, None, b.NOW) == b.NOW + look
    assert arm.netted(before, None, Because(Rung.SLOT, "why", "what"), b.NOW) is None


# -- leases, and who takes them over


def test_who_opens_a_conversation_supersedes_only_who_held_it() -> None:
    first = b.After(arm.open_conversation(b.see(replace(b.IDLE, conversation=None)), "host", b.NOW, b.new))
    assert first.one(Conversation).state is LeaseState.ACTIVE
    assert FactKind.CONVERSATION_SUPERSEDED not in first.told
    again = b.After(arm.open_conversation(b.see(b.with_task(session_over=b.TALK.id)), "host", b.NOW, b.new))
    assert again.commit is not None
    superseded = [one for one in again.commit.facts if one.kind is FactKind.CONVERSATION_SUPERSEDED]
    assert [one.data["conversation"] for one in superseded] == [b.TALK.id]
    assert again.one(Conversation, lambda row: row.id == b.TALK.id).state is LeaseState.SUPERSEDED


def test_a_lease_is_prolonged_for_its_holder_alone() -> None:
    renewed = supervision.heartbeat(b.IDLE, 1, b.NOW, b.new)
    assert isinstance(renewed, Commit)
    assert b.After(renewed).one(Conversation).expires_at == b.NOW + POLICY.lease_life
    nobody = supervision.heartbeat(replace(b.IDLE, conversation=None), 1, b.NOW, b.new)
    assert isinstance(nobody, Because)
    assert "nobody holds" in nobody.sentence


@pytest.mark.parametrize(("subject", "said"), [(b.SESSION.subject, b.SESSION.subject), (None, "any session")])
def test_which_session_is_bound_no_more_is_told(subject: str | None, said: str) -> None:
    made = supervision.unbind(b.with_tools(), subject, "sam", b.NOW, b.new)
    assert isinstance(made, Commit)
    (told,) = [one for one in made.facts if one.kind is FactKind.TASK_TOOLS]
    assert told.data["what"] == f"not bound to {said} any more"


def test_a_takeover_under_way_is_found_among_the_commands() -> None:
    one = taking.open_one()
    assert takeover.underway(replace(b.IDLE, commands=(b.SEND, one))) == one
    assert takeover.underway(replace(b.IDLE, commands=(b.SEND,))) is None


def test_a_takeover_whose_session_cannot_be_seen_is_waited_for() -> None:
    """Neither done nor in doubt: the server answered, and what it says of the session was not read yet."""
    command = taking.open_one()
    proof = {"session": taking.BOUND.subject, "run": taking.NEW}
    looked = b.seen_of(command, Mark.ACCEPTED, proof=proof)
    facts = b.facts(command, Mark.ACCEPTED, proof=proof)
    waited = (Living(command, orphaned=False, unsure=True),)
    assert takeover.findings(command, facts, looked, ()) == waited
    unread = replace(taking.session(taking.NEW), state=None)
    assert not unread.readable
    assert takeover.findings(command, facts, looked, (unread,)) == waited


def test_who_performs_a_takeover_is_unsure_only_where_it_cannot_be_told() -> None:
    for performer in (ALIVE, UNKNOWN):
        found = taking.see(taking.open_one(CommandState.ARMED), Mark.CLAIMED, performer=performer).found.findings
        assert [one.unsure for one in found if isinstance(one, Living)] == [performer is UNKNOWN]


def test_a_takeover_that_was_revoked_says_why_or_that_it_was() -> None:
    armed = taking.open_one(CommandState.ARMED)
    for proof, why in (("r_x", "why"), (None, "it was revoked before it began")):
        found = taking.see(armed, Mark.REVOKED, proof=proof).found.findings
        assert [(one.reason, one.revoked) for one in found if isinstance(one, Undone)] == [(why, True)]


def test_a_takeover_names_the_run_that_it_shuts_out() -> None:
    world = replace(taking.world(taking.open_one()), commands=())
    for run in (taking.OLD, None):
        session = taking.session(run)
        tool = Observation("local-shell", Rank.JOURNAL, taking.BOUND.subject, b.NOW, session)
        looked = b.see(world, tool, b.workspace())
        samples = tuple(b.sampled(looked, age * b.S) for age in (2, 8))
        ready = b.see(replace(world, samples=samples), tool, b.workspace())
        made = replacing.armed(ready, taking.HEIR, session, CommandId("c-new"), "local-shell", b.NOW, b.new)
        assert isinstance(made, arm.Written), made
        assert made.command.target == f"{taking.BOUND.subject} {run or takeover.NOBODY}"


def test_a_question_about_a_takeover_is_as_long_as_a_question_may_be() -> None:
    command = replace(taking.open_one(), target=f"real:{'s' * 3000} {taking.OLD}")
    world = replace(taking.world(command), heir=None)
    draft = Draft(world, b.NOW, b.new)
    takeover.take_effect(draft, command, b.see(world), None)
    (wait,) = [row for row in draft.puts if isinstance(row, Wait)]
    assert (wait.kind, len(wait.question)) == (WaitKind.HUMAN, 2000)


# -- leave that is asked


def test_an_answer_that_could_not_be_told_is_too_late_unless_it_never_went_out() -> None:
    row = permitting.a_row()
    telling = replace(b.HALT, scopes=(f"ask:{row.id}",))
    for revoked in (False, True):
        draft = Draft(permitting.with_row(row), b.NOW, b.new)
        permission.not_told(draft, telling, "its program is gone", revoked=revoked)
        closed = [each for each in draft.puts if isinstance(each, Permission)]
        assert [(each.closed_at, each.outcome) for each in closed] == (
            [] if revoked else [(b.NOW, "its program is gone")]
        )
        assert bool(draft.snapshot.waits) == revoked
        other = Draft(permitting.with_row(row), b.NOW, b.new)
        permission.not_told(other, replace(b.HALT, scopes=("ask:e-other",)), "it is gone", revoked=revoked)
        assert other.puts == [], "of a question that nobody knows nothing is written"


def test_a_question_that_is_closed_has_its_next_revision() -> None:
    row = permitting.a_row(revision=4)
    for close in (
        lambda draft: permission.unasked(draft, row),
        permission.task_over,
        lambda draft: permission.turn_over(draft, b.LIVE, by_itself=False),
    ):
        draft = Draft(permitting.with_row(row), b.NOW, b.new)
        close(draft)
        assert [each.revision for each in draft.puts if isinstance(each, Permission)] == [5]


# -- chains and their phases


@pytest.mark.parametrize(
    ("standing", "unit"), [(Standing.ELIGIBLE, None), (Standing.BLOCKED, "U-4"), (Standing.COMPLETE, None)]
)
def test_nothing_is_handed_over_without_a_unit_that_can_be_begun(standing: Standing, unit: str | None) -> None:
    found = chain.Resolution(standing, unit, "so it is", ())
    refused = chain.advance(chaining.WHOLE, found, "rev-8", Outcome.DONE, Parent())
    assert isinstance(refused, chain.NotAdvanced)
    assert "so it is" in refused.why


def test_only_a_merge_can_be_lost_with_its_base() -> None:
    now = phasing.NOW
    for state in (PhaseState.OPEN, PhaseState.CLOSED):
        one = replace(phasing.phase(1), state=state, reason="as it is")
        assert phases.lost(one, now + b.H) == one
    landing = Landing("c1", "merge", ("c1",))
    merged = replace(phasing.phase(1), state=PhaseState.MERGED, landing=landing, settled_at=now)
    again = phases.lost(merged, now + b.H)
    assert (again.state, again.landing, again.reason) == (
        PhaseState.OPEN, None, "the base was rewritten without it",
    )  # fmt: skip
    reverted = replace(merged, state=PhaseState.REVERTED, undone_by=("c2",), reason="reverted by c2")
    open_ = phases.lost(reverted, now + b.H)
    assert (open_.state, open_.landing, open_.undone_by, open_.reason) == (PhaseState.OPEN, None, (), "reverted by c2")


# -- what is told to whom


def coordinator(*facts: Fact) -> Snapshot:
    events = tuple(Event(1, number, b.NOW, one) for number, one in enumerate(facts, start=1))
    return replace(b.IDLE, run=replace(b.RUN, coordinator=b.TASK.id), news=events)


def test_a_coordinator_hears_of_the_others_what_they_came_to() -> None:
    other = TaskId("t-other")
    told = neighbours.news(
        coordinator(
            Fact(FactKind.TASK_COMPLETED, task_id=other, data={"reason": "all done", "reference": "commit abc"}),
            Fact(FactKind.TASK_COMPLETED, task_id=b.TASK.id, data={"reason": "my own"}),
            Fact(FactKind.TASK_COMPLETED, task_id=None, data={"reason": "of nobody"}),
            Fact(FactKind.TASK_PROGRESSED, task_id=other, data={"why": "a new commit", "head": "h2"}),
            Fact(FactKind.TASK_PROGRESSED, task_id=other, data={"why": "a line of its own", "head": None}),
            Fact(FactKind.WAKE_ADDED, task_id=other, data={"reason": "no news"}),
            Fact(FactKind.TASK_FAILED, task_id=other),
        ),
        b.NOW,
    )
    assert told is not None
    assert told.upto == 7
    assert [line.partition(f"{other} ")[2] for line in told.lines] == [
        "is completed: all done (reference: commit abc)",
        "made durable progress: a new commit (HEAD h2)",
        "failed: -",
    ]
    nothing = coordinator(Fact(FactKind.TASK_FAILED, task_id=b.TASK.id), Fact(FactKind.WAKE_ADDED, task_id=other))
    assert neighbours.news(nothing, b.NOW) is None


def test_attention_is_in_the_same_order_whoever_asks() -> None:
    """The oldest first; of the same moment what is about no task, then by task, whatever it is."""
    first, second = TaskId("t-a"), TaskId("t-b")
    waits = [
        b.a_wait(WaitKind.HUMAN, task_id=second),
        b.a_wait(WaitKind.PERMISSION, task_id=first),
        b.a_wait(WaitKind.HUMAN, task_id=first),
        b.a_wait(WaitKind.HUMAN, task_id=TaskId("t-z"), opened_at=b.NOW - b.H),
    ]
    for given in (waits, waits[::-1]):
        items = attention.queue(given, (), (), ("its disk is full",), b.NOW - b.MIN)
        assert [(item.task_id, item.kind) for item in items] == [
            ("t-z", "human wait"), (None, "supervisor"), (first, "human wait"), (first, "permission wait"),
            (second, "human wait"),
        ]  # fmt: skip


def test_a_cap_is_mended_by_its_name() -> None:
    waits = [b.a_wait(WaitKind.CAP, subject="r-1 max-cost"), b.a_wait(WaitKind.CAP)]
    mends = {item.mend for item in attention.queue(waits, (), (), (), b.NOW)}
    assert mends == {"tenuto policy set r-1 max-cost=N", f"tenuto policy set {b.TASK.id} max-attempts=N"}


# -- what is read


@pytest.mark.parametrize(
    "value",
    ["3", '" "', '""', f'"{"x" * 4097}"', '"a\\u0000b"', '["a"]', "true"],
    ids=["number", "blank", "empty", "long", "null", "list", "truth"],
)
def test_a_text_in_a_playbook_is_a_text_of_some_length(value: str) -> None:
    front = "+++\naccept-file = {}\n+++\n\nLook."
    assert playbooks.read("user", "one", front.format(f'"{"x" * 4096}"')).acceptance.path == "x" * 4096
    with pytest.raises(Mistake, match="accept-file"):
        playbooks.read("user", "one", front.format(value))


@pytest.mark.parametrize(
    ("said", "hour"), [("17:30", 17), ("23:30", 23), ("5:30pm", 17), ("12:30pm", 12), ("17:30pm", None)]
)
def test_a_clock_has_twenty_four_hours_and_halves_of_twelve(said: str, hour: int | None) -> None:
    seen = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    told = resets.read(f"resets at {said} (UTC)", seen, UTC, lambda _name: UTC)
    assert told == (None if hour is None else datetime(2026, 3, 1, hour, 30, tzinfo=UTC))
