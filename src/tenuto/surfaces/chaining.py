"""The verbs of chains, as rows of the table: start, look, hand off, advance, sweep, stop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from tenuto.core.chain import Checks, blocker_of
from tenuto.engine.chains import HandOff, Start
from tenuto.engine.desk import Caller, Desk
from tenuto.model.chain import Caps, Outcome, SourcePlace
from tenuto.model.ids import ChainId
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent
from tenuto.surfaces import present
from tenuto.surfaces.merging import Merges, wish
from tenuto.surfaces.parameters import (
    Answer,
    Argument,
    Label,
    Line,
    Name,
    OneTask,
    Params,
    Path,
    Title,
    Variable,
    Verb,
    no_nul,
    own,
)
from tenuto.surfaces.present import chains as told

ANYBODY = frozenset({Role.OPERATOR, Role.COORDINATOR, Role.AGENT})
Said = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(no_nul)]
Goal = Annotated[str, StringConstraints(min_length=1, max_length=8192), AfterValidator(no_nul)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class ListedChains(Params):
    """Which chains."""

    unfinished: bool = False


class OneChain(Params):
    """A chain, by its identifier or a part of it."""

    chain: Name


class ChainAgent(Params):
    """What works on the units, as for any task."""

    adapter: Label = "program"
    argv: Annotated[list[Argument], Field(min_length=1, max_length=256)]
    resumable: bool = False
    env: Annotated[list[Variable], Field(max_length=64, default_factory=list)]
    on: Annotated[str, StringConstraints(pattern=r"^(host|agent|ext):[a-z0-9][a-z0-9._-]{0,63}$")] | None = None


class ChainSource(Params):
    """Where the units live: a queue file, a list with its log, a configured database by its name, or issues.

    `query` says which issues: `label:NAME`, `search:WORDS` or `issues:1,2,3`.
    """

    kind: Literal["queue", "log", "sql", "github"]
    location: Path
    query: Said | None = None


class Started(Params):
    """A chain. At least one of its caps is needed; durations are in seconds, cost in millionths."""

    goal: Goal
    repo: Said
    selector: Said = "all"
    source: ChainSource
    cwd: Path
    title: Title = ""
    agent: ChainAgent | None = None
    playbook: Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(no_nul)] | None = None
    authorization: Annotated[dict[Label, bool], Field(max_length=32, default_factory=dict)]
    merging: Merges | None = None
    attempt_cap: Annotated[int, Field(ge=1, le=20)] = 10
    max_units: Count | None = None
    max_tasks: Count | None = None
    max_life: Annotated[float, Field(gt=0, le=315_360_000, allow_inf_nan=False)] | None = None
    max_cost: Annotated[int, Field(ge=1, le=10**15)] | None = None
    worktrees: bool = False
    phases: bool = False
    base: Said | None = None
    remote: Said = "origin"


class Recording(OneTask):
    """What became of a unit: done with evidence, or blocked with who follows it, on what, and until when."""

    outcome: Literal["done", "blocked"]
    evidence: Annotated[str, StringConstraints(max_length=2000), AfterValidator(no_nul)] | None = None
    tracked_by: Said | None = None
    blocked_on: Said | None = None
    resume_when: Said | None = None
    checks: Literal["green", "red", "none"] = "none"
    pull: Annotated[int, Field(ge=1, lt=2**53)] | None = None
    branch: Said | None = None


class Stopping(OneChain):
    """Why a chain is stopped."""

    reason: Line = ""


def _id(desk: Desk, given: str) -> ChainId:
    return ChainId(desk.resolve("chain", given))


async def _list(desk: Desk, caller: Caller, params: ListedChains, key: str | None) -> Answer:
    return told.chains(desk.chains.chains(unfinished=params.unfinished))


async def _start(desk: Desk, caller: Caller, params: Started, key: str | None) -> Answer:
    agent = params.agent
    asked = Start(
        goal=params.goal,
        repo=params.repo,
        selector=params.selector,
        source=SourcePlace(params.source.kind, params.source.location, params.source.query),
        cwd=params.cwd,
        title=params.title,
        caps=Caps(
            params.max_units,
            params.max_tasks,
            None if params.max_life is None else timedelta(seconds=params.max_life),
            params.max_cost,
        ),
        attempt_cap=params.attempt_cap,
        authorization=tuple(sorted(params.authorization.items())),
        agent=None
        if agent is None
        else Agent(agent.adapter, tuple(agent.argv), agent.resumable, tuple(agent.env), agent.on),
        playbook=params.playbook,
        merging=wish(params.merging),
        worktrees=params.worktrees,
        phases=params.phases,
        base=params.base,
        remote=params.remote,
    )
    return present.done("chain.start", await desk.chains.start(caller, asked, key))


async def _status(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    chain = _id(desk, params.chain)
    foreseen = await desk.chains.foresee(chain)
    last = None if foreseen.chain.swept is None else desk.chains.text(foreseen.chain.swept)
    return told.standing(foreseen, desk.chains.links(chain), await desk.chains.sweep(chain), last)


async def _next(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    return told.foreseen(await desk.chains.foresee(_id(desk, params.chain)))


async def _unit(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    link = desk.chains.link_of(own(desk, caller, params.task))
    return told.foreseen(await desk.chains.foresee(link.chain_id)) | {"link": told.link(link)}


def _word(params: Recording, *, only_record: bool) -> HandOff:
    parts = (params.tracked_by, params.blocked_on, params.resume_when)
    return HandOff(
        outcome=Outcome(params.outcome),
        evidence=params.evidence,
        blocker=None if parts == (None, None, None) else blocker_of(*parts),
        checks=Checks(params.checks),
        only_record=only_record,
        pull=params.pull,
        branch=params.branch,
    )


async def _record(desk: Desk, caller: Caller, params: Recording, key: str | None) -> Answer:
    task = own(desk, caller, params.task)
    return present.done("chain.record", await desk.chains.hand_off(caller, task, _word(params, only_record=True)))


async def _hand_off(desk: Desk, caller: Caller, params: Recording, key: str | None) -> Answer:
    task = own(desk, caller, params.task)
    return present.done("chain.handoff", await desk.chains.hand_off(caller, task, _word(params, only_record=False)))


async def _advance(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    return present.done("chain.advance", await desk.chains.advance(caller, _id(desk, params.chain)))


async def _sweep(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    return told.swept(await desk.chains.sweep(_id(desk, params.chain)))


async def _stop(desk: Desk, caller: Caller, params: Stopping, key: str | None) -> Answer:
    return present.done("chain.stop", await desk.chains.stop(caller, _id(desk, params.chain), params.reason))


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("chain.list", "List chains, newest first", ListedChains, _list),
        Verb("chain.start", "Begin a chain and its first task", Started, _start),
        Verb("chain.status", "Show how a chain stands, and why it waits", OneChain, _status),
        Verb("chain.next", "Show what a chain's next step would be; nothing is done", OneChain, _next),
        Verb("chain.unit", "Show a task's unit, and what comes after it", OneTask, _unit, ANYBODY),
        Verb("chain.record", "Record what became of a task's unit at its source", Recording, _record, ANYBODY),
        Verb("chain.handoff", "Record a unit and give the next one to a successor", Recording, _hand_off, ANYBODY),
        Verb("chain.advance", "Make a chain's next step now", OneChain, _advance),
        Verb("chain.sweep", "List every unit with its evidence; nothing is put right", OneChain, _sweep),
        Verb("chain.stop", "End a chain; its task goes on", Stopping, _stop),
    )
}
