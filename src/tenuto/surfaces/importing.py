"""The verb that makes tasks of another program's unfinished work, as a row of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from tenuto.engine.desk import Caller, Desk, Done
from tenuto.engine.importing import MOST, Import
from tenuto.model.faults import Mistake
from tenuto.model.foreign import Item
from tenuto.model.work import Agent
from tenuto.surfaces import present
from tenuto.surfaces.parameters import Answer, Argument, Label, Params, Path, Title, Variable, Verb, moment, no_nul

Told = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(no_nul)]
Objective = Annotated[str, StringConstraints(min_length=1, max_length=256 * 1024), AfterValidator(no_nul)]


class Foreign(Params):
    """One piece of unfinished work, as its source tells it."""

    origin: Told
    objective: Objective
    cwd: Path
    state: Told
    title: Title = ""
    place: Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(no_nul)] | None = None
    session: Annotated[str, StringConstraints(pattern=r"^s_[0-9a-f]{24}$")] | None = None
    facts: Annotated[dict[Label, Told], Field(max_length=16, default_factory=dict)]
    seen_at: str | None = None


class ImportAgent(Params):
    """What is to work on all of it, as for any task."""

    adapter: Label = "program"
    argv: Annotated[list[Argument], Field(min_length=1, max_length=256)]
    resumable: bool = False
    env: Annotated[list[Variable], Field(max_length=64, default_factory=list)]
    on: Annotated[str, StringConstraints(pattern=r"^(host|agent|ext):[a-z0-9][a-z0-9._-]{0,63}$")] | None = None


class Importing(Params):
    """A source by its own name, and what of it is to be imported. `server` is how its tool server is called here."""

    source: Told
    items: Annotated[list[Foreign], Field(min_length=1, max_length=MOST)]
    agent: ImportAgent
    server: Label = "local"
    title: Title = ""


async def _import(desk: Desk, caller: Caller, params: Importing, key: str | None) -> Answer:
    items = []
    for number, each in enumerate(params.items):
        seen_at = moment(each.seen_at, f"items.{number}.seen_at") if each.seen_at is not None else None
        if seen_at is not None and seen_at.tzinfo is None:
            raise Mistake("a moment needs its offset", field=f"items.{number}.seen_at")
        facts = tuple(sorted(each.facts.items()))
        items.append(
            Item(
                each.origin, each.objective, each.cwd, each.state, each.title, each.place, each.session, facts, seen_at
            )
        )
    worked = params.agent
    agent = Agent(worked.adapter, tuple(worked.argv), worked.resumable, tuple(worked.env), worked.on)
    asked = Import(params.source, tuple(items), agent, params.server, params.title)
    done = await desk.importing.take(caller, asked, key)
    told = [{"origin": one.origin, "task": one.task_id, "why": one.why} for one in done.became]
    made = sum(1 for one in done.became if one.task_id is not None and one.why is None)
    answer = present.done("import", Done({"run": done.run_id, "made": made}))
    return answer | {"result": answer["result"] | {"items": told}}


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (Verb("import", "Make paused, manual tasks of another program's unfinished work", Importing, _import),)
}
