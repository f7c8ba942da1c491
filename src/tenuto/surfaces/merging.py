"""The verbs of merging, as rows of the table: look at the gates, merge, give a verdict, and stop all of it.

What a chain may merge is said when it begins, and no verb changes it afterwards. A verdict is taken from the reviewer's
own token and from no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from tenuto.engine.chaining.asked import MergeWish
from tenuto.engine.desk import Caller, Desk
from tenuto.model.faults import Refused
from tenuto.model.forge import ForgePlace, MergeMethod
from tenuto.model.ids import ChainId
from tenuto.model.merging import MergeMode, Verdict
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent
from tenuto.surfaces import present
from tenuto.surfaces.parameters import (
    Answer,
    Argument,
    Label,
    Name,
    OneTask,
    Params,
    Path,
    Variable,
    Verb,
    no_nul,
    own,
)
from tenuto.surfaces.present import merging as told

ANYBODY = frozenset({Role.OPERATOR, Role.COORDINATOR, Role.AGENT})
Whole = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Short = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(no_nul)]


class Reviewer(Params):
    """What reviews, as for any task."""

    adapter: Label = "program"
    argv: Annotated[list[Argument], Field(min_length=1, max_length=256)]
    resumable: bool = False
    env: Annotated[list[Variable], Field(max_length=64, default_factory=list)]
    on: Annotated[str, StringConstraints(pattern=r"^(host|agent|ext):[a-z0-9][a-z0-9._-]{0,63}$")] | None = None


class Merges(Params):
    """What a chain merges: where, by which gate and reviewer, by itself or when it is asked.

    `forge` github with a repository, or git with the path or address of a remote.
    """

    forge: Literal["github", "git"]
    location: Path
    gate: Annotated[list[Argument], Field(min_length=1, max_length=256)]
    reviewer: Reviewer | None = None
    playbook: Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(no_nul)] | None = None
    mode: Literal["self", "asked"] = "self"
    method: Literal["merge", "squash", "rebase"] = "merge"
    base: Short | None = None
    branches: Short | None = None
    reviews: Annotated[int, Field(ge=1, le=100)] | None = None


class OneChain(Params):
    """A chain, by its identifier or a part of it."""

    chain: Name


class Switch(Params):
    """Whether chains may advance themselves."""

    on: bool


class Judged(OneTask):
    """What a reviewer says of the commit it was asked about."""

    verdict: Literal["pass", "block"]
    head: Whole
    findings: Annotated[str, StringConstraints(max_length=2000), AfterValidator(no_nul)] = ""


def wish(given: Merges | None) -> MergeWish | None:
    """What is asked for, as the engine takes it."""
    if given is None:
        return None
    by = given.reviewer
    return MergeWish(
        forge=ForgePlace(given.forge, given.location),
        gate=tuple(given.gate),
        mode=MergeMode(given.mode),
        method=MergeMethod(given.method),
        base=given.base,
        branches=given.branches,
        reviews=given.reviews,
        reviewer=None if by is None else Agent(by.adapter, tuple(by.argv), by.resumable, tuple(by.env), by.on),
        playbook=given.playbook,
    )


def _chain(desk: Desk, given: str) -> ChainId:
    return ChainId(desk.resolve("chain", given))


async def _gates(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    standing = await desk.chains.merging.standing(_chain(desk, params.chain))
    if standing is None:
        raise Refused("this chain merges nothing", field="chain")
    return told.standing(standing)


async def _merge(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    return present.done("chain.merge", await desk.chains.merge(caller, _chain(desk, params.chain)))


async def _switch(desk: Desk, caller: Caller, params: Switch, key: str | None) -> Answer:
    return present.done("chain.self-advancing", await desk.chains.merging.switch(caller, off=not params.on))


async def _verdict(desk: Desk, caller: Caller, params: Judged, key: str | None) -> Answer:
    task = own(desk, caller, params.task)
    said = Verdict(params.verdict)
    done = await desk.chains.merging.reviewing.verdict(caller, task, said, params.head, params.findings)
    return present.done("review.verdict", done)


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("chain.gates", "Show what a chain hands in to be merged, and the gates", OneChain, _gates),
        Verb("chain.merge", "Merge what a chain has handed in, if every gate holds", OneChain, _merge),
        Verb("chain.self-advancing", "Let chains advance themselves, or stop all of them", Switch, _switch),
        Verb("review.verdict", "Say of the commit under review: pass, or block with what has to change", Judged,
             _verdict, ANYBODY),
    )
}  # fmt: skip
