"""The verbs of phases and of worktrees, as rows of the table: record a pull request, look, and take a worktree away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from tenuto.engine.chains import Opening
from tenuto.engine.desk import Caller, Desk
from tenuto.model.ids import ChainId, WorktreeId
from tenuto.model.snapshot import Role
from tenuto.surfaces import present
from tenuto.surfaces.parameters import Answer, Name, OneTask, Params, Verb, no_nul, own
from tenuto.surfaces.present import phases as told

ANYBODY = frozenset({Role.OPERATOR, Role.COORDINATOR, Role.AGENT})
Short = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(no_nul)]


class Opened(OneTask):
    """The pull request of a task's unit, by its number; its branch, where that is not the worktree's own."""

    pull: Annotated[int, Field(ge=1, le=2**31 - 1)]
    branch: Short | None = None
    url: Short | None = None


class OneChain(Params):
    """A chain, by its identifier or a part of it."""

    chain: Name


class Trees(Params):
    """Worktrees of a chain; without one, all that stand somewhere."""

    chain: Name | None = None


class OneTree(Params):
    """A worktree, by its identifier or a part of it."""

    worktree: Name


async def _open(desk: Desk, caller: Caller, params: Opened, key: str | None) -> Answer:
    task = own(desk, caller, params.task)
    said = Opening(params.pull, params.branch, params.url)
    return present.done("phase.open", await desk.chains.open_phase(caller, task, said))


async def _status(desk: Desk, caller: Caller, params: OneChain, key: str | None) -> Answer:
    chain = desk.chains.chain(ChainId(desk.resolve("chain", params.chain)))
    return told.standing(chain, desk.chains.phases(chain.id))


async def _trees(desk: Desk, caller: Caller, params: Trees, key: str | None) -> Answer:
    chain = None if params.chain is None else ChainId(desk.resolve("chain", params.chain))
    return told.worktrees(desk.chains.worktrees(chain))


async def _remove(desk: Desk, caller: Caller, params: OneTree, key: str | None) -> Answer:
    tree = WorktreeId(desk.resolve("worktree", params.worktree))
    return present.done("worktree.remove", await desk.chains.remove(caller, tree))


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("phase.open", "Record the pull request that was opened for a task's unit", Opened, _open, ANYBODY),
        Verb("phase.status", "Show how each pull request of a chain stands in its base", OneChain, _status),
        Verb("worktree.list", "List worktrees, where they are, and why they are kept", Trees, _trees),
        Verb("worktree.remove", "Take a worktree away if all of its work is elsewhere", OneTree, _remove),
    )
}
