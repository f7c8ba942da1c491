"""The table of verbs: what each takes, who may use it, and what it answers.

HTTP, the command line and whatever comes later call this table, so that names, bounds and errors cannot differ between
faces. A mistake in the parameters becomes one `Mistake` that names the field; what is allowed is the desk's to say.
An agent is held to its own task before anything is looked up, so that it cannot learn what else there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from tenuto.engine.desk import Caller, Desk, Order
from tenuto.engine.spawning import Spawn
from tenuto.engine.tokens import Wanted
from tenuto.model.faults import Mistake, NotAllowed
from tenuto.model.ids import CommandId
from tenuto.model.message import MessagePolicy
from tenuto.model.permission import Verdict
from tenuto.model.snapshot import Role
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, AutoResume, ReportKind, WaitKind
from tenuto.surfaces import adopting, chaining, importing, merging, phasing, present, supervising, waiting
from tenuto.surfaces.parameters import (
    PAGE,
    After,
    Amount,
    Answer,
    Argument,
    Instant,
    Label,
    Line,
    Name,
    Nothing,
    Number,
    Objective,
    OneCommand,
    OneRun,
    OneTask,
    Params,
    Path,
    Said,
    Title,
    Variable,
    Verb,
    after_of,
    moment,
    no_nul,
    own,
)

__all__ = ["VERBS", "Verb", "after_of", "allowed", "call", "mistake", "own", "parsed", "spooled"]

# -- parameters


class Listed(Params):
    """Which rows of a list."""

    unfinished: bool = False


class ListedTasks(Listed):
    """Which tasks."""

    run: Name | None = None


class ListedCommands(Params):
    """Which commands."""

    task: Name | None = None
    only_open: bool = False


class AgentParams(Params):
    """What works on a task. `env` holds names of variables, never values; `on` names the executor that carries it."""

    adapter: Label = "program"
    argv: Annotated[list[Argument], Field(min_length=1, max_length=256)]
    resumable: bool = False
    env: Annotated[list[Variable], Field(max_length=64, default_factory=list)]
    on: Annotated[str, StringConstraints(pattern=r"^(host|agent|ext):[a-z0-9][a-z0-9._-]{0,63}$")] | None = None


class AcceptanceParams(Params):
    """What must hold before a claim of completion ends the task."""

    kind: Literal["none", "check", "file", "commit"] = "none"
    argv: Annotated[list[Argument], Field(max_length=256, default_factory=list)]
    path: Path | None = None


class Create(Params):
    """A run with one task. Without a title the objective's first line is one. Policy durations are in seconds."""

    objective: Objective
    title: Title = ""
    cwd: Path
    agent: AgentParams
    acceptance: AcceptanceParams = AcceptanceParams(argv=[])
    auto_resume: Literal["on", "manual"] = "on"
    max_attempts: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    policy: Annotated[dict[Label, Amount], Field(max_length=64, default_factory=dict)]
    coordinator: bool = False


class Spawned(Params):
    """One more task. What is left out comes from the playbook, else from the parent.

    `playbook` is NAME or SCOPE/NAME; the server reads it. `force` is the reason for beginning work that is under way.
    """

    prompt: Objective
    title: Title = ""
    playbook: Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(no_nul)] | None = None
    run: Name | None = None
    parent: Name | None = None
    cwd: Path | None = None
    agent: AgentParams | None = None
    auto_close: bool | None = None
    unattended: bool | None = None
    hand_over: bool = False
    force: Annotated[Line, StringConstraints(min_length=1)] | None = None


class Ready(OneTask):
    """A line about what is ready to be closed."""

    note: Line


class NewToken(Params):
    """A token to be made: its role, what it is called, the task it speaks for, and its life in seconds."""

    role: Literal["operator", "coordinator", "agent", "executor"]
    name: Label
    task: Name | None = None
    ttl: Annotated[float, Field(gt=0, le=315_360_000, allow_inf_nan=False)] | None = None


class SettledExecutor(Params):
    """An executor, and a command that only it knows."""

    executor: Label
    command: Label


class OneToken(Params):
    """A token, by its name or its identifier."""

    token: Label


class Followed(OneTask):
    """A task, and the number of the last event that is known."""

    after: After = "0"


class ExplainedAt(OneTask):
    """A task, and a past instant with its offset."""

    at: Instant | None = None


class Resumed(OneTask):
    """A task or a run; `stalled` also clears the pause for no progress."""

    stalled: bool = False


class Continued(OneTask):
    """A task; `anyway` passes what the operator may pass."""

    anyway: bool = False


class Cancelled(OneTask):
    """A task or a run, and why."""

    reason: Line = ""


class Waiting(OneTask):
    """A durable reason not to continue; `until` is an instant with its offset.

    `on` is a task, a path, `ref into branch`, or `any` or `all` of the task's children, with names where only some
    are meant.
    """

    kind: Literal["human", "permission", "limit", "task", "path", "commit", "time", "children"] = "human"
    question: Line = ""
    on: Line | None = None
    until: Instant | None = None


class Answered(OneTask):
    """An answer; `wait` names the question where there are several.

    `verdict` answers a question of leave: this once, this very wish for the whole task, or no with the words given.
    """

    answer: Said | None = None
    wait: Name | None = None
    verdict: Literal["allow", "allow_task", "deny"] | None = None


class Completed(OneTask):
    """A reference that proves completion, and a line about it."""

    evidence: Line
    summary: Line = ""


class Failed(OneTask):
    """Why a task failed."""

    reason: Line


class ReportLine(Params):
    """One line of a report."""

    name: Label
    value: Line


class Reported(OneTask):
    """A structured report."""

    lines: Annotated[list[ReportLine], Field(min_length=1, max_length=200)]


class PolicySet(OneTask):
    """Numbers to override, by name (`max-attempts`, `auto-resume`, ...); durations in seconds."""

    changes: Annotated[dict[Label, Number | Amount], Field(min_length=1, max_length=64)]


class EventsAfter(Params):
    """A page of events: those after a number (`n` or `epoch-n`), of one task or run."""

    after: After = "0"
    limit: Annotated[int, Field(ge=1, le=PAGE)] = 100
    task: Name | None = None
    run: Name | None = None


class Sent(OneTask):
    """Words for a task: for the record, for its next turn, or for now; `corrective` is why they cannot be spaced.

    From within a turn the task is one of the same run, or `coordinator`.
    """

    text: Said
    policy: Literal["record_only", "next_turn", "steer_now"] = "next_turn"
    corrective: Line | None = None


class Coordinated(OneRun):
    """A run, and the task that coordinates it from now on; none: it has no coordinator."""

    coordinator: Name | None = None


class Released(OneCommand):
    """A person's verdict on an ambiguous command."""

    verdict: Literal["happened", "not-happened"]


# -- handlers


async def _status(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.status(
        desk.registry(), desk.leadership(), desk.standing(), desk.counts(), desk.troubles(), desk.now()
    )


async def _whoami(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    run_id = None if caller.task_id is None else desk.task(caller.task_id).run_id
    opened = [verb.name for verb in VERBS.values() if caller.role in verb.roles]
    return present.whoami(caller, run_id, opened)


async def _hold(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.done("hold", await desk.hold(caller))


async def _unhold(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.done("unhold", await desk.hold(caller, lift=True))


async def _stop(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.done("stop", await desk.stop(caller))


async def _create(desk: Desk, caller: Caller, params: Create, key: str | None) -> Answer:
    title = params.title.strip() or next((line.strip() for line in params.objective.splitlines() if line.strip()), "")
    agent, acceptance = params.agent, params.acceptance
    if acceptance.kind == "check" and not acceptance.argv:
        raise Mistake("name the program that checks the work", field="acceptance.argv")
    if acceptance.kind == "file" and not acceptance.path:
        raise Mistake("name the file that must be there", field="acceptance.path")
    order = Order(
        title=title[:200],
        objective=params.objective,
        cwd=params.cwd,
        agent=Agent(agent.adapter, tuple(agent.argv), agent.resumable, tuple(agent.env), agent.on),
        acceptance=Acceptance(AcceptanceKind(acceptance.kind), tuple(acceptance.argv), acceptance.path),
        auto_resume=AutoResume(params.auto_resume),
        max_attempts=params.max_attempts,
        policy={name.replace("-", "_"): value for name, value in params.policy.items()},
        coordinator=params.coordinator,
    )
    return present.done("run.create", await desk.create(caller, order, key))


async def _spawn(desk: Desk, caller: Caller, params: Spawned, key: str | None) -> Answer:
    agent = params.agent
    parent = params.parent
    if parent is not None:
        parent = desk.task_id(parent) if caller.role is Role.OPERATOR else own(desk, caller, parent)
    run = params.run
    if run is not None:
        if caller.role is not Role.OPERATOR:
            raise NotAllowed("an agent spawns in its own run", field="run")
        run = desk.run_id(run)
    asked = Spawn(
        prompt=params.prompt,
        title=params.title,
        playbook=params.playbook,
        run=run,
        parent=parent,
        cwd=params.cwd,
        agent=None
        if agent is None
        else Agent(agent.adapter, tuple(agent.argv), agent.resumable, tuple(agent.env), agent.on),
        auto_close=params.auto_close,
        unattended=params.unattended,
        hand_over=params.hand_over,
        force=params.force,
    )
    return present.done("task.spawn", await desk.spawn(caller, asked, key))


async def _ready(desk: Desk, caller: Caller, params: Ready, key: str | None) -> Answer:
    return present.done("task.ready", await desk.ready(caller, own(desk, caller, params.task), params.note, key=key))


async def _slots(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.slots(desk.slots())


async def _tokens(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.tokens(desk.tokens(), desk.now())


async def _executors(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.executors(desk.executors())


async def _settle_executor(desk: Desk, caller: Caller, params: SettledExecutor, key: str | None) -> Answer:
    done = await desk.settle_executor(caller, params.executor, params.command, key)
    return present.done("executor.settle", done)


async def _new_token(desk: Desk, caller: Caller, params: NewToken, key: str | None) -> Answer:
    task = None if params.task is None else desk.task_id(params.task)
    life = None if params.ttl is None else timedelta(seconds=params.ttl)
    wanted = Wanted(Role(params.role), params.name, task, life)
    return present.done("token.new", await desk.make_token(caller, wanted, key))


async def _revoke_token(desk: Desk, caller: Caller, params: OneToken, key: str | None) -> Answer:
    return present.done("token.revoke", await desk.revoke_token(caller, params.token, key))


async def _runs(desk: Desk, caller: Caller, params: Listed, key: str | None) -> Answer:
    return present.runs(desk.runs(unfinished=params.unfinished))


async def _run(desk: Desk, caller: Caller, params: OneRun, key: str | None) -> Answer:
    run_id = desk.known_run(caller, params.run) or desk.run_id(params.run)
    return present.run_whole(desk.run(run_id), desk.tasks(run_id=run_id))


async def _coordinate(desk: Desk, caller: Caller, params: Coordinated, key: str | None) -> Answer:
    return present.done("run.coordinate", await desk.coordinate(caller, params.run, params.coordinator, key=key))


async def _tasks(desk: Desk, caller: Caller, params: ListedTasks, key: str | None) -> Answer:
    run_id = desk.known_run(caller, params.run)
    return present.tasks(desk.tasks(run_id=run_id, unfinished=params.unfinished))


async def _show(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    shown = await desk.show(desk.known(caller, params.task))
    return present.shown(shown, desk.kept(shown.task.objective))


async def _assignment(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    task = desk.task(own(desk, caller, params.task))
    return present.assignment(task, desk.kept(task.objective))


async def _follow(desk: Desk, caller: Caller, params: Followed, key: str | None) -> Answer:
    task_id = desk.known(caller, params.task)
    after = after_of(params.after)
    return present.followed(await desk.explain(task_id), desk.events(after, PAGE, task_id=task_id), after)


async def _explain(desk: Desk, caller: Caller, params: ExplainedAt, key: str | None) -> Answer:
    task_id, at = desk.known(caller, params.task), moment(params.at, "at")
    if at is None:
        return present.explained(await desk.explain(task_id))
    return present.explained_at(desk.task(task_id), at, desk.explained_at(task_id, at))


async def _pause(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.done("task.pause", await desk.pause(caller, params.task, key))


async def _resume(desk: Desk, caller: Caller, params: Resumed, key: str | None) -> Answer:
    return present.done("task.resume", await desk.resume(caller, params.task, stalled=params.stalled, key=key))


async def _continue(desk: Desk, caller: Caller, params: Continued, key: str | None) -> Answer:
    return present.done("task.continue", await desk.continue_(caller, params.task, anyway=params.anyway, key=key))


async def _cancel(desk: Desk, caller: Caller, params: Cancelled, key: str | None) -> Answer:
    return present.done("task.cancel", await desk.cancel(caller, params.task, reason=params.reason, key=key))


async def _wait(desk: Desk, caller: Caller, params: Waiting, key: str | None) -> Answer:
    task_id = own(desk, caller, params.task)
    until = moment(params.until, "until")
    kind = WaitKind(params.kind)
    if kind in (WaitKind.HUMAN, WaitKind.PERMISSION) and not params.question.strip():
        raise Mistake("say what is asked of a person", field="question")
    question = params.question.strip() or f"waiting for a {kind}: {params.on or params.until or ''}".rstrip(": ")
    what = await desk.wait(caller, task_id, kind, question, subject=params.on, until=until, key=key)
    return present.done("task.wait", what)


async def _answer(desk: Desk, caller: Caller, params: Answered, key: str | None) -> Answer:
    verdict = Verdict(params.verdict) if params.verdict is not None else None
    said = params.answer or ""
    done = await desk.answer(caller, params.task, said, verdict=verdict, wait=params.wait, key=key)
    return present.done("task.answer", done)


async def _complete(desk: Desk, caller: Caller, params: Completed, key: str | None) -> Answer:
    task_id = own(desk, caller, params.task)
    what = await desk.complete(caller, task_id, params.evidence, summary=params.summary, key=key)
    return present.done("task.complete", what)


async def _fail(desk: Desk, caller: Caller, params: Failed, key: str | None) -> Answer:
    return present.done("task.fail", await desk.fail(caller, own(desk, caller, params.task), params.reason, key=key))


async def _report(desk: Desk, caller: Caller, params: Reported, key: str | None) -> Answer:
    lines = tuple((line.name, line.value) for line in params.lines)
    return present.done("task.report", await desk.report(caller, own(desk, caller, params.task), lines, key=key))


async def _policy(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.policy(desk.policy(params.task))


async def _set_policy(desk: Desk, caller: Caller, params: PolicySet, key: str | None) -> Answer:
    changes = {name: value if isinstance(value, str) else f"{value:.15g}" for name, value in params.changes.items()}
    return present.done("policy.set", await desk.set_policy(caller, params.task, changes, key=key))


async def _attention(desk: Desk, caller: Caller, params: Nothing, key: str | None) -> Answer:
    return present.items(desk.attention(), desk.hushed())


async def _events(desk: Desk, caller: Caller, params: EventsAfter, key: str | None) -> Answer:
    after = after_of(params.after)
    task_id = None if params.task is None else desk.task_id(params.task)
    run_id = None if params.run is None else desk.run_id(params.run)
    return present.events(desk.events(after, params.limit, task_id=task_id, run_id=run_id), after)


async def _say(desk: Desk, caller: Caller, params: Sent, key: str | None) -> Answer:
    policy = MessagePolicy(params.policy)
    what = await desk.say(caller, params.task, params.text, policy=policy, corrective=params.corrective, key=key)
    return present.done("message.send", what)


async def _messages(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    found = desk.messages(desk.known(caller, params.task))
    return present.messages([(row, None if row.text is None else desk.kept(row.text)) for row in found])


async def _ask_report(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.done("checkpoint.request", await desk.request_checkpoint(caller, params.task, key=key))


async def _reports(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    kept = [row for row in desk.reports(desk.known(caller, params.task)) if row.kind is not ReportKind.SIGNAL]
    return present.reports(kept)


async def _commands(desk: Desk, caller: Caller, params: ListedCommands, key: str | None) -> Answer:
    task_id = None if params.task is None else desk.task_id(params.task)
    return present.commands(desk.commands(task_id=task_id, only_open=params.only_open))


async def _command(desk: Desk, caller: Caller, params: OneCommand, key: str | None) -> Answer:
    return {"command": present.command(desk.command(CommandId(desk.resolve("command", params.command))))}


async def _reconcile(desk: Desk, caller: Caller, params: OneCommand, key: str | None) -> Answer:
    return present.done("command.reconcile", await desk.reconcile(caller, params.command))


async def _release(desk: Desk, caller: Caller, params: Released, key: str | None) -> Answer:
    what = await desk.release(caller, params.command, happened=params.verdict == "happened", key=key)
    return present.done("command.release", what)


# -- the table


LEADING = frozenset({Role.OPERATOR, Role.COORDINATOR})
ANYBODY = frozenset({Role.OPERATOR, Role.COORDINATOR, Role.AGENT})

VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("status", "How the supervisor and its registry stand", Nothing, _status),
        Verb("whoami", "Tell what the caller's token opens", Nothing, _whoami, ANYBODY),
        Verb("hold", "Continue nothing anywhere until the hold is lifted", Nothing, _hold),
        Verb("unhold", "Lift the hold", Nothing, _unhold),
        Verb("stop", "Ask the supervisor to stop; nothing is cancelled", Nothing, _stop),
        Verb("run.create", "Make a run with one task", Create, _create),
        Verb("run.list", "List runs, newest first", Listed, _runs),
        Verb("run.show", "Show a run and its tasks", OneRun, _run, LEADING),
        Verb("run.coordinate", "Make a task its run's coordinator, or none", Coordinated, _coordinate),
        Verb("task.spawn", "Make one more task, by a playbook or as its parent", Spawned, _spawn, ANYBODY),
        Verb("task.ready", "Say that a task's work can be closed", Ready, _ready, ANYBODY, spooled=True),
        Verb("slots", "Show who holds a slot, and who stands in line", Nothing, _slots),
        Verb("executor.list", "List the executors that have been connected", Nothing, _executors),
        Verb("executor.settle", "Settle what only an executor knows", SettledExecutor, _settle_executor),
        Verb("token.list", "List the tokens that were made by hand", Nothing, _tokens),
        Verb("token.new", "Make a token; it is told this once", NewToken, _new_token),
        Verb("token.revoke", "Take a token back", OneToken, _revoke_token),
        Verb("task.list", "List tasks, newest first", ListedTasks, _tasks, LEADING),
        Verb("task.show", "Show everything about a task", OneTask, _show, ANYBODY),
        Verb("task.assignment", "Read a task's objective as a whole", OneTask, _assignment, ANYBODY),
        Verb("task.follow", "Show how a task stands and what happened since", Followed, _follow, ANYBODY),
        Verb("task.explain", "Say why a task is not being continued", ExplainedAt, _explain, ANYBODY),
        Verb("task.pause", "Stop future automatic continuation", OneTask, _pause),
        Verb("task.resume", "Clear the operator's pause", Resumed, _resume),
        Verb("task.continue", "Ask for one more turn", Continued, _continue),
        Verb("task.cancel", "Stop a task, or a run, for good", Cancelled, _cancel),
        Verb("task.wait", "Record a durable reason not to continue", Waiting, _wait, ANYBODY, spooled=True),
        Verb("task.answer", "Answer an open question", Answered, _answer),
        Verb(
            "task.complete", "End a task as complete, or claim that it is", Completed, _complete, ANYBODY, spooled=True
        ),
        Verb("task.fail", "End a task as failed", Failed, _fail, ANYBODY, spooled=True),
        Verb("task.report", "Record a structured report", Reported, _report, ANYBODY, spooled=True),
        Verb("policy.show", "Show every number in force and its source", OneTask, _policy),
        Verb("policy.set", "Override numbers of a task or a run", PolicySet, _set_policy),
        Verb("attention", "List what only a person can settle", Nothing, _attention),
        Verb("events", "Read a page of what happened", EventsAfter, _events),
        Verb("message.send", "Say something to a task, by a delivery policy", Sent, _say, ANYBODY),
        Verb("message.list", "List what was said to a task", OneTask, _messages, ANYBODY),
        Verb("checkpoint.request", "Ask a task for a report in its next turn", OneTask, _ask_report),
        Verb("checkpoint.show", "Show what a task reported, newest first", OneTask, _reports, ANYBODY),
        Verb("command.list", "List commands, newest first", ListedCommands, _commands),
        Verb("command.show", "Show one command", OneCommand, _command),
        Verb("command.reconcile", "Look again at what a command hangs on", OneCommand, _reconcile),
        Verb("command.release", "Give a verdict on an ambiguous command", Released, _release),
        *supervising.VERBS.values(),
        *waiting.VERBS.values(),
        *chaining.VERBS.values(),
        *phasing.VERBS.values(),
        *merging.VERBS.values(),
        *adopting.VERBS.values(),
        *importing.VERBS.values(),
    )
}


# -- calling


def allowed(verb: Verb, caller: Caller) -> None:
    """Raises NotAllowed unless the caller's role opens this verb."""
    if caller.role not in verb.roles:
        raise NotAllowed(f"a token of the role {caller.role} does not open {verb.name}")


def parsed(verb: Verb, raw: Mapping[str, Any], *, lenient: bool = False) -> Params:
    """The parameters as a checked value; `lenient` reads numbers and truths from words, as a query string holds them.

    Raises Mistake naming the field.
    """
    try:
        return verb.params.model_validate(dict(raw), strict=not lenient)
    except ValidationError as error:
        raise mistake(error) from None


def mistake(error: ValidationError) -> Mistake:
    """The first thing that is wrong with some parameters. What was given is not repeated."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part)[:64] for part in first["loc"]) or None
    said = first["msg"].removeprefix("Value error, ")
    return Mistake(f"{field}: {said}" if field else said, field=field)


async def call(
    desk: Desk, caller: Caller, name: str, raw: Mapping[str, Any], key: str | None = None, *, lenient: bool = False
) -> Answer:
    """Carry out a verb by its name. Raises the faults of `tenuto.model.faults`, and nothing else that is expected."""
    verb = VERBS.get(name)
    if verb is None:
        raise Mistake(f"there is no verb '{name[:60]}'", field="verb")
    allowed(verb, caller)
    return await verb.act(desk, caller, parsed(verb, raw, lenient=lenient), key)


async def spooled(desk: Desk, caller: Caller, name: str, raw: Mapping[str, Any], key: str) -> Answer:
    """Carry out a verb that an agent left in the spool; only some verbs may be left there.

    The task is the caller's own where none is named.
    """
    verb = VERBS.get(name)
    if verb is None or not verb.spooled:
        raise Mistake(f"'{name[:60]}' cannot be left in the spool", field="verb")
    return await call(desk, caller, name, {"task": caller.task_id, **raw}, key)
