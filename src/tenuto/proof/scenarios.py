"""The paths that are walked while something is killed: small worlds, each with one task that comes to a known end.

A scenario is driven again from its beginning in every life of the supervisor, so each of its steps can be taken
twice: verbs carry keys, and what is waited for stays true once it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tenuto.engine.desk import Caller, Done, Order
from tenuto.engine.spawning import Spawn
from tenuto.model.fact import FactKind as Fact
from tenuto.model.lifecycle import TaskState
from tenuto.model.message import MessagePolicy
from tenuto.model.snapshot import Role
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, AutoResume
from tenuto.proof import chains, elsewhere, merging, talks
from tenuto.proof.person import OPERATOR, Person
from tenuto.proof.stage import Stage

Script = Callable[[Person], Awaitable[None]]

WORKING = "say working 'summary: a step'"
COMPLETE = "say complete 'summary: all of it' 'evidence: the file of effects'"


async def _nothing(person: Person) -> None:
    """Only wait for the end."""


def _leave(stage: Stage) -> None:
    """Nothing is broken."""


@dataclass(frozen=True)
class Scenario:
    """One path. `turns` and `check` are shell text (see stage), `expects` facts that an undisturbed life records.

    `leaves` are kinds of attention that the operator does not act on, `standby` has a second supervisor wait from
    the beginning, `lives` is how many lives it takes undisturbed. With `agency` the agent also tells what only programs
    with a protocol tell: limits, and leave that it asks. `met` is what happens outside whenever a point is passed,
    `patience` how many seconds one life may take at least. With `elsewhere` it is worked on by an executor in a process
    of its own, over the wire; with `talks` by a program with a session, which plays this.
    """

    name: str
    turns: str
    script: Script = _nothing
    expects: frozenset[Fact] = frozenset()
    resumable: bool = True
    acceptance: Callable[[Stage], Acceptance] = lambda stage: Acceptance()
    check: str = "exit 0"
    goal: TaskState = TaskState.COMPLETED
    auto_resume: AutoResume = AutoResume.ON
    max_attempts: int | None = None
    program: str | None = None
    env: tuple[str, ...] = ()
    policy: Mapping[str, object] = field(default_factory=dict)
    leaves: frozenset[str] = frozenset()
    before: Callable[[Stage], None] = _leave
    mend: Callable[[Stage], None] = _leave
    standby: bool = False
    lives: int = 1
    agency: bool = False
    met: Mapping[str, Callable[[Stage], None]] = field(default_factory=dict)
    patience: float = 0.0
    elsewhere: bool = False
    talks: str | None = None

    def order(self, stage: Stage) -> Order:
        """What is asked for."""
        return Order(
            title=self.name,
            objective=f"the {self.name} path",
            cwd=str(stage.cwd),
            agent=self._agent(stage),
            acceptance=self.acceptance(stage),
            auto_resume=self.auto_resume,
            max_attempts=self.max_attempts,
        )

    def _agent(self, stage: Stage) -> Agent:
        if self.talks is not None:
            return talks.agent(stage)
        on = elsewhere.ON if self.elsewhere else None
        return Agent("program", (self.program or str(stage.agent),), self.resumable, self.env, on)

    def set_up(self, stage: Stage) -> None:
        """Make what it needs before its first life."""
        stage.set_up(self.turns, self.check)
        if self.elsewhere:
            elsewhere.ready(stage)
        if self.talks is not None:
            talks.ready(stage, self.talks)
        self.before(stage)


def done_at(count: int, otherwise: str = WORKING) -> str:
    """Turns that end with *complete* from the `count`-th on."""
    return f"if [ $n -ge {count} ]; then {COMPLETE}; else {otherwise}; fi"


def checked(stage: Stage) -> Acceptance:
    return Acceptance(AcceptanceKind.CHECK, (str(stage.check),))


def _file(_: Stage) -> Acceptance:
    return Acceptance(AcceptanceKind.FILE, path="made")


# -- scripts


async def _pause(person: Person) -> None:
    await person.effects(1)
    await person.once("pause", lambda key: person.desk.pause(OPERATOR, person.task_id, key=key))
    person.stage.mark("go")
    await person.ended(1)
    await person.once("resume", lambda key: person.desk.resume(OPERATOR, person.task_id, key=key))


async def _hold(person: Person) -> None:
    await person.effects(1)
    if not (person.stage.home / "lifted").exists():
        await person.desk.hold(OPERATOR)
    person.stage.mark("go")
    await person.ended(1)
    person.stage.mark("lifted")
    await person.desk.hold(OPERATOR, lift=True)


async def _continue_each(person: Person) -> None:
    """A manual task is asked for every one of its turns, a recovery too."""
    number = 0
    while not person.task.terminal:
        number += 1
        key = f"continue {number}"
        await person.once(key, lambda key: person.desk.continue_(OPERATOR, person.task_id, key=key))
        await person.ended(number)


async def _anyway(person: Person) -> None:
    """The question stays open, so every turn past it is asked for, a recovery too."""
    await person.happened(Fact.WAIT_OPENED)
    number = 0
    while not person.task.terminal:
        number += 1
        key = f"anyway {number}"
        await person.once(key, lambda key: person.desk.continue_(OPERATOR, person.task_id, anyway=True, key=key))
        await person.ended(number + 1)


async def _cancel(person: Person) -> None:
    await person.effects(1)
    await person.once("cancel", lambda key: person.desk.cancel(OPERATOR, person.task_id, reason="enough", key=key))


async def _path(person: Person) -> None:
    await person.happened(Fact.WAIT_OPENED)
    (person.stage.cwd / "ready").touch()
    person.ring()


async def _say(person: Person) -> None:
    await person.effects(1)
    await person.once("say", lambda key: person.desk.say(OPERATOR, person.task_id, "use the blue one", key=key))
    person.stage.mark("go")


async def _say_now(person: Person) -> None:
    """Words that are wanted now, to a program that takes none in its turn: they make the next one."""
    await person.effects(1)
    await person.once("say", lambda key: _now(person, key))
    person.stage.mark("go")


async def _say_in_pause(person: Person) -> None:
    """Words of the operator to a task that is paused and idle: one turn is made for them.

    A turn that was cut short leaves the task as paused as it was, and its operator has it go on.
    """
    await person.effects(1)
    await person.once("pause", lambda key: person.desk.pause(OPERATOR, person.task_id, key=key))
    person.stage.mark("go")
    await person.ended(1)
    await person.once("say", lambda key: _now(person, key))
    await person.ended(2)
    await person.once("resume", lambda key: person.desk.resume(OPERATOR, person.task_id, key=key))


async def _now(person: Person, key: str) -> Done:
    return await person.desk.say(OPERATOR, person.task_id, "use the blue one", policy=MessagePolicy.STEER_NOW, key=key)


async def _checkpoint(person: Person) -> None:
    await person.effects(1)
    await person.once("ask", lambda key: person.desk.request_checkpoint(OPERATOR, person.task_id, key=key))
    person.stage.mark("go")


async def _claim_in_turn(person: Person) -> None:
    await person.effects(1)
    agent = Caller(Role.AGENT, "its agent", person.task_id, person.task.lease_number)
    await person.once("claim", lambda key: person.desk.complete(agent, person.task_id, "said during the turn", key=key))
    person.stage.mark("go")


async def _spawn(person: Person) -> None:
    """One more task, asked for under one key in every life; both come to their end."""
    await _child(person, Spawn("a part of the spawn path", parent=person.task_id))


async def _hand_over(person: Person) -> None:
    """A successor that begins in its parent's slot, and in no other."""
    await _child(person, Spawn("what comes after", parent=person.task_id, hand_over=True))


async def _child(person: Person, asked: Spawn) -> None:
    await person.effects(1)
    await person.once("spawn", lambda key: person.desk.spawn(OPERATOR, asked, key))
    person.stage.mark("go")
    await person.until(lambda: all(task.terminal for task in person.desk.tasks()))


async def _ready(person: Person) -> None:
    await person.effects(1)
    await person.once("ready", lambda key: person.desk.ready(OPERATOR, person.task_id, "all of it", key=key))
    person.stage.mark("go")


async def _stop(person: Person) -> None:
    await person.effects(1)
    if person.life == 1:
        person.stop()
        return
    person.stage.mark("go")


# -- what is broken before, and mended by the operator


def _program_away(stage: Stage) -> None:
    stage.agent.rename(stage.cwd / "agent")


def _program_back(stage: Stage) -> None:
    away = stage.cwd / "away"
    if away.exists():
        away.rename(stage.cwd / "agent")


def _values(stage: Stage) -> None:
    file = stage.home / "env"
    file.touch(mode=0o600)
    file.write_text("TENUTO_PROOF_VALUE=1\n", "ascii")


def _check_away(stage: Stage) -> None:
    stage.check.rename(f"{stage.check}.away")


def _check_back(stage: Stage) -> None:
    away = Path(f"{stage.check}.away")
    if away.exists():
        away.rename(stage.check)


SECOND = timedelta(seconds=1)
FACTS = frozenset

ALL: tuple[Scenario, ...] = (
    Scenario("plain", done_at(3), expects=FACTS({Fact.ATTEMPT_ARMED, Fact.COMMAND_ACKNOWLEDGED, Fact.WAKE_ADDED})),
    Scenario(
        "slow",
        f"sleep 0.2; {done_at(2)}",
    ),
    Scenario(
        "cut-short",
        f"if [ $n -eq 2 ]; then kill -9 $$; fi; {done_at(3)}",
        expects=FACTS({Fact.CONVERSATION_SUPERSEDED}),
    ),
    Scenario(
        "cut-short-person",
        f"if [ $n -eq 1 ]; then kill -9 $$; fi; {done_at(2)}",
        resumable=False,
        expects=FACTS({Fact.WAIT_OPENED, Fact.WAIT_CLOSED}),
    ),
    Scenario(
        "time-limit",
        f"if [ $n -eq 1 ]; then await never; fi; {done_at(2)}",
        policy={"turn_limit": SECOND / 4, "interrupt_grace": SECOND / 10},
        expects=FACTS({Fact.CONVERSATION_SUPERSEDED}),
    ),
    Scenario(
        "blocked",
        done_at(2, "say blocked 'needs: which colour, from the operator'"),
        expects=FACTS({Fact.WAIT_OPENED, Fact.WAIT_CLOSED, Fact.MESSAGE_DELIVERED}),
    ),
    Scenario("silent", done_at(2, "echo nothing to say")),
    Scenario(
        "stall",
        done_at(3),
        policy={"stall_warn": 1, "stall_pause": 2},
        expects=FACTS({Fact.TASK_STALL_WARNED, Fact.TASK_STALLED, Fact.TASK_RESUMED}),
    ),
    Scenario("pause", f"await go; {done_at(2)}", script=_pause, expects=FACTS({Fact.TASK_PAUSED, Fact.TASK_RESUMED})),
    Scenario("hold", f"await go; {done_at(2)}", script=_hold),
    Scenario("continue", done_at(2), script=_continue_each, auto_resume=AutoResume.MANUAL),
    Scenario(
        "anyway",
        done_at(2, "say blocked 'needs: which colour, from the operator'"),
        script=_anyway,
        leaves=FACTS({"human wait"}),
        expects=FACTS({Fact.WAIT_OPENED}),
    ),
    Scenario("check", COMPLETE, acceptance=checked, expects=FACTS({Fact.TASK_CLAIMED, Fact.TASK_COMPLETED})),
    Scenario(
        "check-fails",
        COMPLETE,
        acceptance=checked,
        check='n=0; while read -r line; do n=$((n + 1)); done < "$home/effects"; [ $n -ge 2 ]',
        expects=FACTS({Fact.TASK_CHECK_FAILED, Fact.MESSAGE_DELIVERED}),
    ),
    Scenario(
        "check-missing",
        COMPLETE,
        acceptance=checked,
        before=_check_away,
        mend=_check_back,
        expects=FACTS({Fact.WAIT_OPENED, Fact.COMMAND_FAILED}),
    ),
    Scenario(
        "check-cut-short",
        COMPLETE,
        acceptance=checked,
        check='n=0; while read -r line; do n=$((n + 1)); done < "$home/checks"; if [ $n -eq 1 ]; then kill -9 $$; fi',
    ),
    Scenario(
        "file",
        f"if [ $n -ge 2 ]; then echo x > made; fi; {COMPLETE}",
        acceptance=_file,
        expects=FACTS({Fact.TASK_CHECK_FAILED}),
    ),
    Scenario(
        "claim-in-turn",
        f"await go; {COMPLETE}",
        script=_claim_in_turn,
        acceptance=checked,
        expects=FACTS({Fact.TASK_CLAIMED}),
    ),
    Scenario(
        "lingers",
        "await never",
        script=_claim_in_turn,
        acceptance=checked,
        policy={"ready_grace": SECOND / 2, "interrupt_grace": SECOND / 10},
        expects=FACTS({Fact.TASK_CLAIMED}),
    ),
    Scenario(
        "cancel",
        "await never",
        script=_cancel,
        goal=TaskState.CANCELLED,
        expects=FACTS({Fact.TASK_CANCELLED}),
    ),
    Scenario(
        "cancel-deaf",
        "trap '' TERM; await never; await never",
        script=_cancel,
        goal=TaskState.CANCELLED,
        policy={"interrupt_grace": SECOND / 10},
    ),
    Scenario("cap", done_at(2), max_attempts=1, expects=FACTS({Fact.WAIT_OPENED, Fact.TASK_POLICY})),
    Scenario(
        "dependency",
        done_at(2, "say blocked 'needs: path:ready'"),
        script=_path,
        expects=FACTS({Fact.WAIT_OPENED, Fact.WAIT_CLOSED}),
    ),
    Scenario(
        "message",
        f"await go; {done_at(2)}",
        script=_say,
        expects=FACTS({Fact.MESSAGE_STORED, Fact.MESSAGE_CARRIED, Fact.MESSAGE_DELIVERED}),
    ),
    Scenario(
        "message-now",
        f"await go; {done_at(2, 'echo nothing to say')}",
        script=_say_now,
        expects=FACTS({Fact.MESSAGE_CARRIED, Fact.MESSAGE_DELIVERED}),
    ),
    Scenario(
        "message-in-pause",
        f"await go; {done_at(2)}",
        script=_say_in_pause,
        expects=FACTS({Fact.TASK_PAUSED, Fact.MESSAGE_CARRIED, Fact.MESSAGE_DELIVERED}),
    ),
    Scenario("spawn", f"await go; {done_at(3)}", script=_spawn, expects=FACTS({Fact.TASK_SPAWNED})),
    Scenario("hand-over", f"await go; {done_at(3)}", script=_hand_over, expects=FACTS({Fact.TASK_SPAWNED})),
    Scenario("ready", f"await go; {WORKING}", script=_ready, expects=FACTS({Fact.TASK_READY})),
    Scenario(
        "checkpoint",
        "await go; if [ $n -ge 2 ]; then printf '```tenuto-report\\ncompleted: all\\n```\\n'; fi; " + done_at(2),
        script=_checkpoint,
        expects=FACTS({Fact.REPORT_RECORDED}),
    ),
    Scenario(
        "lease",
        f"sleep 0.4; {done_at(2)}",
        policy={"lease_life": 3 * SECOND / 10},
        expects=FACTS({Fact.CONVERSATION_CLAIMED}),
    ),
    Scenario(
        "unstartable",
        f"if [ $n -eq 1 ]; then mv agent away; fi; {done_at(2)}",
        program="./agent",
        before=_program_away,
        mend=_program_back,
        expects=FACTS({Fact.COMMAND_FAILED, Fact.WAIT_OPENED}),
    ),
    Scenario(
        "unnamed",
        f'if [ $n -eq 1 ]; then rm "$home/env"; fi; {done_at(2)}',
        env=("TENUTO_PROOF_VALUE",),
        before=_values,
        mend=_values,
        expects=FACTS({Fact.COMMAND_FAILED, Fact.WAIT_OPENED}),
    ),
    Scenario(
        "limit",
        f'if [ $n -eq 1 ]; then : > "$home/hindered.$TENUTO_COMMAND"; exit 1; fi; {done_at(3)}',
        policy={"limit_buffer": SECOND / 10, "limit_jitter": SECOND / 20, "limit_unknown": (SECOND / 5,)},
        expects=FACTS({Fact.LIMIT_MET, Fact.LIMIT_OVER, Fact.TASK_HINDERED}),
        agency=True,
    ),
    Scenario(
        "permission",
        f'echo "$TENUTO_COMMAND" > "$home/ask.$n"; await "answer.$n"; {done_at(2)}',
        expects=FACTS({Fact.PERMISSION_ASKED, Fact.PERMISSION_ANSWERED}),
        agency=True,
    ),
    Scenario(
        "chain",
        COMPLETE,
        script=chains.walk,
        before=chains.queue,
        patience=240.0,
        expects=FACTS({Fact.CHAIN_ADVANCED, Fact.CHAIN_RECORDED, Fact.CHAIN_SWEPT, Fact.CHAIN_ENDED}),
    ),
    Scenario(
        "chain-phases",
        f"{chains.COMMITS}; {COMPLETE}",
        script=chains.phases,
        before=chains.repository,
        patience=240.0,
        expects=FACTS({Fact.WORKTREE_MADE, Fact.WORKTREE_REMOVED, Fact.PHASE_OPENED, Fact.PHASE_MERGED}),
    ),
    Scenario(
        "chain-merges",
        f"{merging.WORKS}; {COMPLETE}",
        script=merging.walk,
        before=merging.remote,
        patience=240.0,
        expects=FACTS({Fact.PROPOSAL_OPENED, Fact.PROPOSAL_GATED, Fact.REVIEW_SAID, Fact.PROPOSAL_MERGED}),
    ),
    Scenario(
        "merge-revoked",
        f"{merging.WORKS}; {COMPLETE}",
        script=merging.revoked,
        before=merging.remote,
        met={"merge.armed": merging.throw},
        patience=240.0,
        expects=FACTS({Fact.COMMAND_FAILED, Fact.PROPOSAL_MERGED}),
    ),
    Scenario(
        "elsewhere",
        done_at(2),
        acceptance=checked,
        expects=FACTS({Fact.TASK_CLAIMED, Fact.COMMAND_ACKNOWLEDGED}),
        elsewhere=True,
    ),
    Scenario(
        "elsewhere-cancel",
        "await never",
        script=_cancel,
        goal=TaskState.CANCELLED,
        expects=FACTS({Fact.TASK_CANCELLED}),
        elsewhere=True,
    ),
    Scenario("talk", "", talks="plain", expects=FACTS({Fact.COMMAND_ACKNOWLEDGED, Fact.WAKE_ADDED})),
    Scenario("talk-asks", "", talks="asks", expects=FACTS({Fact.PERMISSION_ASKED, Fact.PERMISSION_ANSWERED})),
    Scenario("talk-steered", "", talks="steered", script=talks.steer, expects=FACTS({Fact.MESSAGE_DELIVERED})),
    Scenario(
        "talk-cut",
        "",
        talks="deaf",
        script=_cancel,
        goal=TaskState.CANCELLED,
        expects=FACTS({Fact.TASK_CANCELLED}),
    ),
    Scenario("stopped", f"await go; {done_at(2)}", script=_stop, lives=2),
    Scenario("two", done_at(2), standby=True),
)

BY_NAME: Mapping[str, Scenario] = {scenario.name: scenario for scenario in ALL}
