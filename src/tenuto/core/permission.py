"""Leave that an agent's program asks for: who answers, what the answer holds for, and when it is too late.

A question becomes a wait on a person, unless a rule of the policy, an answer of before for the very same wish, or the
want of anybody to ask answers it. Nobody to ask is a no, and never consent. A program is not left waiting for hours: it
is told no after a while and the question stays open, and an answer that comes later holds for the next time it asks.
What is told to the program is a command like any other; an answer is only for the request it was given to.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase

from tenuto.core.draft import Draft, New, text_of
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, Command, CommandKind
from tenuto.model.decision import AnswerAsk, Because, Rung
from tenuto.model.evidence import Asking, CommandFacts, Mark
from tenuto.model.fact import FactKind
from tenuto.model.ids import PermissionId
from tenuto.model.lifecycle import CommandState
from tenuto.model.message import MessageKind, MessagePolicy, Party
from tenuto.model.permission import Permission, Verdict
from tenuto.model.policy import Policy
from tenuto.model.reconciliation import Asked, Finding, Seen, Unasked
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import TextKind, Wait, WaitKind, WakeKind

NOBODY = "Nobody can be asked in this run, so this was not allowed. Do without, or end your turn and say what you need."
LATER = (
    "Nobody has answered yet. The question stays open and you will be told the answer. Do what can be done without it, "
    "then end your turn."
)
REFUSED = "This was not allowed."

#: Whose programs take words along with a no; to the others they are told as a message.
TAKES_WORDS = frozenset({"claude"})


# -- what is found


def findings(snapshot: Snapshot, command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    """The questions of a turn under way that nobody knows yet, and those it does not wait with any more."""
    if command.kind is not CommandKind.SEND or snapshot.live is None or command.attempt_id != snapshot.live.id:
        return ()
    if facts.asks is None or facts.mark is not Mark.ACCEPTED or snapshot.task.agent.in_page:
        return ()  # a card in a page is answered there and nowhere else: core/pages.py
    known = {row.request: row for row in snapshot.permissions if row.command_id == command.id}
    new = tuple(Asked(command, ask) for ask in facts.asks if ask.request not in known)
    open_ = {ask.request for ask in facts.asks}
    being_told = {open_one.target for open_one in snapshot.commands if open_one.kind is CommandKind.ANSWER}
    gone = tuple(
        Unasked(row)
        for row in known.values()
        if row.told_at is None and row.request not in open_ and row.request not in being_told
    )
    return (*new, *gone)


def ruled(policy: Policy, tool: str, what: str) -> Verdict | None:
    """What the rules of the policy say; a rule that forbids is stronger than any that allows. None: ask."""
    if any(_holds(rule, tool, what) for rule in policy.deny):
        return Verdict.DENY
    return Verdict.ALLOW if any(_holds(rule, tool, what) for rule in policy.allow) else None


def _holds(rule: str, tool: str, what: str) -> bool:
    """Whether a rule, `TOOL` or `TOOL: PATTERN`, is about this wish."""
    named, colon, pattern = rule.partition(":")
    return fnmatchcase(tool, named.strip()) and (not colon or fnmatchcase(what, pattern.strip()))


# -- what the rows become


def asked(draft: Draft, command: Command, ask: Asking) -> None:
    """A question is written down, and answered by what needs no person, or asked of one."""
    if command.attempt_id is None:
        return
    row = Permission(
        id=PermissionId(draft.new("permission")),
        revision=1,
        task_id=draft.task.id,
        attempt_id=command.attempt_id,
        command_id=command.id,
        request=ask.request,
        tool=ask.tool[:200],
        what=ask.what[:2000],
        fingerprint=ask.fingerprint,
        asked_at=draft.now,
    )
    draft.note(FactKind.PERMISSION_ASKED, permission=row.id, tool=row.tool, what=row.what[:500])
    kept = next((one for one in draft.snapshot.permissions if _grants(one, row)), None)
    rule = ruled(draft.before.run.policy, ask.tool, ask.what)
    if rule is Verdict.DENY:
        row = _answered(draft, row, Verdict.DENY, "a rule of the policy")
    elif kept is not None:
        row = _answered(draft, row, Verdict.ALLOW, f"{kept.answered_by}, before")
        if kept.verdict is Verdict.ALLOW:
            _put(draft, _closed(kept, "used", draft.now))
    elif rule is not None:
        row = _answered(draft, row, rule, "a rule of the policy")
    elif draft.task.unattended:
        row = _answered(draft, row, Verdict.DENY, "nobody to ask")
    else:
        row = replace(row, wait_id=draft.wait(WaitKind.PERMISSION, row.question, attempt=command.attempt_id).id)
    _put(draft, row)


def _grants(kept: Permission, row: Permission) -> bool:
    """Whether an answer of before holds for this question: for the task, or once and not yet used."""
    if kept.fingerprint != row.fingerprint or (kept.command_id == row.command_id and kept.request == row.request):
        return False
    return kept.verdict is Verdict.ALLOW_TASK or (kept.verdict is Verdict.ALLOW and kept.parked_at is not None)


def _answered(draft: Draft, row: Permission, verdict: Verdict, by: str) -> Permission:
    draft.note(FactKind.PERMISSION_ANSWERED, permission=row.id, verdict=verdict, by=by, what=row.what[:200])
    return replace(row, verdict=verdict, answered_by=by, answered_at=draft.now)


def answer(
    snapshot: Snapshot, wait: Wait, verdict: Verdict, words: str, by: str, now: datetime, new: New
) -> Commit | Because | None:
    """A person's answer to a question: where its turn still waits the program is told, else it holds for next time."""
    row = next((one for one in snapshot.permissions if one.wait_id == wait.id), None)
    if snapshot.task.terminal or row is None:
        return Because(Rung.TERMINAL, "the turn that asked is over", "nothing; it asks again if it needs to")
    draft = Draft(snapshot, now, new)
    waiting = asked_now(snapshot, row)
    told_by_message = bool(words) and not (waiting and snapshot.task.agent.adapter in TAKES_WORDS)
    done = replace(_answered(draft, row, verdict, by), revision=row.revision + 1)
    if not waiting or told_by_message:
        message = draft.message(
            by, MessageKind.ANSWER, _told(verdict, words), text_kind=TextKind.ANSWER, party=Party.OPERATOR,
            policy=MessagePolicy.STEER_NOW if waiting else MessagePolicy.NEXT_TURN,
        )  # fmt: skip
        done = replace(done, words=message.text)
    elif words:
        text = text_of(TextKind.ANSWER, words, snapshot, now, new)
        draft.puts.append(text)
        done = replace(done, words=text.id)
    draft.close_wait(wait, by, done.words)
    if not waiting:
        if verdict is Verdict.DENY:
            done = _closed(done, "answered after its turn", now, again=True)
        draft.wake(WakeKind.EVENT, "what it asked leave for was answered", now)
    _put(draft, done)
    draft.look_now()
    return draft.commit()


def _told(verdict: Verdict, words: str) -> str:
    """An answer in words, for an agent that is told it in a prompt."""
    said = "No." if verdict is Verdict.DENY else "Yes, you may; ask again, and it is allowed."
    return f"{said} {words}".strip()


def asked_now(snapshot: Snapshot, row: Permission) -> bool:
    """Whether the turn that asked is under way and waits with this question."""
    live = snapshot.live_command
    return live is not None and live.id == row.command_id and row.told_at is None and row.parked_at is None


def told(draft: Draft, command: Command) -> None:
    """The program has its answer."""
    row = _of(draft, command)
    if row is None:
        return
    row = replace(row, revision=row.revision + 1, told_at=draft.now)
    if row.verdict is not None and row.verdict is not Verdict.ALLOW_TASK and row.parked_at is None:
        row = _closed(row, "told", draft.now, again=True)
    _put(draft, row)


def not_told(draft: Draft, command: Command, why: str, *, revoked: bool) -> None:
    """The program could not be told: an answer that never went out goes out again, any other is too late."""
    row = _of(draft, command)
    if row is not None and not revoked:
        _put(draft, _closed(row, why[:500], draft.now))
        _close_wait(draft, row, why)


def unasked(draft: Draft, row: Permission) -> None:
    """The program does not wait with it any more, and was not answered by us."""
    _close_wait(draft, row, "its program does not ask any more")
    _put(draft, _closed(row, "withdrawn by its program", draft.now))


def turn_over(draft: Draft, ended: Attempt, *, by_itself: bool) -> None:
    """The turn that asked is over. What it was told no for now stays open, where the turn came to its own end."""
    for row in draft.snapshot.permissions:
        if row.attempt_id != ended.id or row.verdict is Verdict.ALLOW_TASK:
            continue
        if by_itself and row.parked_at is not None and not draft.task.terminal:
            continue
        _close_wait(draft, row, "the turn that asked is over")
        _put(draft, _closed(row, "the turn that asked is over", draft.now))


def task_over(draft: Draft) -> None:
    """Nothing is granted to a task that is over."""
    for row in draft.snapshot.permissions:
        _put(draft, _closed(row, "the task ended", draft.now))


def parked(seen: Seen, now: datetime, new: New) -> Commit | None:
    """Nobody has answered for long: the programs of these questions are told no for now, and the questions stay."""
    draft = Draft(seen.snapshot, now, new)
    for row in seen.snapshot.permissions:
        if _overdue(seen, row, now):
            _put(draft, replace(row, revision=row.revision + 1, parked_at=now))
            draft.note(FactKind.PERMISSION_PARKED, permission=row.id, what=row.what[:200])
    return draft.commit()


def _overdue(seen: Seen, row: Permission, now: datetime) -> bool:
    wait = seen.snapshot.run.policy.permission_wait
    return row.verdict is None and asked_now(seen.snapshot, row) and now >= row.asked_at + wait


def overdue(seen: Seen, now: datetime) -> bool:
    """Whether a program stands waiting for longer than it should."""
    return any(_overdue(seen, row, now) for row in seen.snapshot.permissions)


def next_parking(seen: Seen) -> datetime | None:
    """When the next program that waits for leave is told no for now."""
    wait = seen.snapshot.run.policy.permission_wait
    rows = (row for row in seen.snapshot.permissions if row.verdict is None and asked_now(seen.snapshot, row))
    return min((row.asked_at + wait for row in rows), default=None)


def deliverable(seen: Seen) -> AnswerAsk | None:
    """The answer that is to be told to a program now."""
    snapshot = seen.snapshot
    sent = snapshot.live_command
    if sent is None or sent.state is not CommandState.ACKNOWLEDGED or not seen.connected:
        return None
    under_way = {command.target for command in snapshot.commands if command.kind is CommandKind.ANSWER}
    for row in snapshot.permissions:
        if row.command_id != sent.id or row.told_at is not None or row.request in under_way:
            continue
        if row.verdict is not None:
            given = {"nobody to ask": NOBODY, "a rule of the policy": REFUSED}
            words = given.get(row.answered_by or "", "") if row.verdict is Verdict.DENY else ""
            return AnswerAsk(row.id, row.request, row.verdict is not Verdict.DENY, words, row.words)
        if row.parked_at is not None:
            return AnswerAsk(row.id, row.request, allow=False, words=LATER, text=None)
    return None


def _of(draft: Draft, command: Command) -> Permission | None:
    """The question that an answering command is about."""
    return next((row for row in draft.snapshot.permissions if f"ask:{row.id}" in command.scopes), None)


def _close_wait(draft: Draft, row: Permission, why: str) -> None:
    for wait in draft.snapshot.waits:
        if wait.id == row.wait_id:
            draft.close_wait(wait, why)


def _closed(row: Permission, outcome: str, now: datetime, *, again: bool = False) -> Permission:
    """The row closed; `again` where this commit has given it its revision already."""
    return replace(row, revision=row.revision + (0 if again else 1), closed_at=now, outcome=outcome)


def _put(draft: Draft, row: Permission) -> None:
    draft.puts.append(row)
    others = tuple(one for one in draft.snapshot.permissions if one.id != row.id)
    draft.snapshot = replace(draft.snapshot, permissions=others if row.closed_at is not None else (*others, row))
