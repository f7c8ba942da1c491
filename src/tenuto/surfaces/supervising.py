"""The verbs of supervision, as rows of the table: evidence, looks, plan and execute, tool sessions, the lease."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from tenuto.core.supervision import Told
from tenuto.engine.desk import Caller, Desk
from tenuto.model.faults import Mistake
from tenuto.model.tools import PageName
from tenuto.surfaces import present
from tenuto.surfaces.parameters import Answer, Instant, Label, Name, OneTask, Params, Path, Verb, moment, no_nul

Source = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9._:-]+$")]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
Word = Annotated[str, StringConstraints(max_length=60, pattern=r"^[A-Za-z0-9._:+-]*$")]
Whole = Annotated[str, StringConstraints(pattern=r"^t-[0-9a-z]{26}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Session = Annotated[str, StringConstraints(pattern=r"^s_[0-9a-f]{24}$")]
Address = Annotated[str, StringConstraints(max_length=400, pattern=r"^https?://[^\s\x00-\x1f\x7f]{1,392}$")]
WindowName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Job = Annotated[str, StringConstraints(pattern=r"^job_[0-9a-f]{12}$")]
Identity = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Observed(Params):
    """One foreign observation: whose eyes, of what, at which instant, and what was seen, by the names of evidence."""

    source: Source
    subject: Subject
    seen_at: Instant
    facts: Annotated[dict[Label, Word | bool | int], Field(min_length=1, max_length=32)]


class Observing(OneTask):
    """Foreign observations; they are kept at rank 5 and decide no send."""

    observations: Annotated[list[Observed], Field(min_length=1, max_length=500)]


class Executed(OneTask):
    """One send: the task named whole once more, and the fence of the plan it was decided on, where one was made."""

    confirm_task: Whole
    fence: Digest | None = None


class Orchestrated(Params):
    """The tasks to consider, each once, parted by commas; all unfinished ones where none is named."""

    tasks: Annotated[str, StringConstraints(max_length=22_000, pattern=r"^[0-9A-Za-z,-]*$")] = ""


class Looked(Params):
    """A directory whose own tool server is looked for too."""

    cwd: Path | None = None


class Bound(OneTask):
    """A session of a tool server."""

    session: Session
    server: Source = "local"


class Unbound(OneTask):
    """A session of a tool server, or all of the task's."""

    session: Session | None = None
    server: Source = "local"


class Watched(OneTask):
    """A page, by its exact address; `by` is the witness that watches it, `window` the only one that counts."""

    url: Address
    by: Source
    window: WindowName | None = None


class Unwatched(OneTask):
    """A page as it was named when it began to be watched, or all of the task's."""

    url: Address | None = None
    by: Source | None = None
    window: WindowName | None = None


class Serviced(OneTask):
    """A job that is meant to run for ever; `unmark` takes that back."""

    job: Job
    unmark: bool = False


class Registered(OneTask):
    """A place where the task could be worked: what the outside calls it, and the executor that reaches it."""

    identity: Identity
    executor: Source | None = None


class Placed(OneTask):
    """A conversation of the task, by its identifier or a part of it."""

    conversation: Name


class Succeeding(Placed):
    """`by_hand`: the tool server's own run was seen to by somebody, or our lease alone shall be the fence."""

    by_hand: bool = False


class Beating(OneTask):
    """The number of the lease that is held."""

    lease_number: Annotated[int, Field(ge=1, le=1_000_000_000)]


async def _evidence(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.evidence(await desk.supervision.evidence(desk.task_id(params.task)))


async def _observe(desk: Desk, caller: Caller, params: Observing, key: str | None) -> Answer:
    told = []
    for number, each in enumerate(params.observations):
        seen_at = moment(each.seen_at, f"observations.{number}.seen_at")
        if seen_at is None:
            raise Mistake("an observation has a moment", field=f"observations.{number}.seen_at")
        facts = tuple((no_nul(name), _word(value)) for name, value in each.facts.items())
        told.append(Told(each.source, each.subject, seen_at, facts))
    done, taken, known = await desk.supervision.observe(caller, desk.task_id(params.task), told, key)
    return present.done("observe.import", done) | {"taken": taken, "known": known}


def _word(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _reconcile(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.reconciled(await desk.supervision.reconcile(caller, desk.task_id(params.task)))


async def _plan(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.planned(await desk.supervision.plan(desk.task_id(params.task)))


async def _execute(desk: Desk, caller: Caller, params: Executed, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    what = await desk.supervision.execute(caller, task_id, params.confirm_task, params.fence, key)
    return present.done("dispatch.execute", what)


async def _orchestrate(desk: Desk, caller: Caller, params: Orchestrated, key: str | None) -> Answer:
    named = [desk.task_id(each) for each in params.tasks.split(",") if each]
    return present.orchestrated(await desk.supervision.orchestrate(named))


async def _sessions(desk: Desk, caller: Caller, params: Looked, key: str | None) -> Answer:
    return present.sessions(await desk.supervision.sessions(params.cwd))


async def _bind(desk: Desk, caller: Caller, params: Bound, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    return present.done("tool.bind", await desk.supervision.bind(caller, task_id, params.server, params.session, key))


async def _unbind(desk: Desk, caller: Caller, params: Unbound, key: str | None) -> Answer:
    subject = None if params.session is None else f"{params.server}/{params.session}"
    task_id = desk.task_id(params.task)
    return present.done("tool.unbind", await desk.supervision.unbind(caller, task_id, subject, key))


async def _pages(desk: Desk, caller: Caller, params: Params, key: str | None) -> Answer:
    return present.pages_shown(*await desk.supervision.shown())


#: An address with a name or a password before its host, as a browser would read it.
_USERINFO = re.compile(r"https?:[/\\]*[^/\\?#]*@")


async def _watch(desk: Desk, caller: Caller, params: Watched, key: str | None) -> Answer:
    if _USERINFO.match(params.url):
        raise Mistake("an address is kept and shown: leave out the name and the password before its @", field="url")
    task_id, page = desk.task_id(params.task), PageName(params.url, params.window)
    return present.done("page.watch", await desk.supervision.watch_page(caller, task_id, params.by, page, key))


async def _unwatch(desk: Desk, caller: Caller, params: Unwatched, key: str | None) -> Answer:
    if (params.url is None) != (params.by is None):
        raise Mistake("a page that is watched is named by its address and its witness", field="by")
    subject = None if params.url is None else f"{params.by}/{PageName(params.url, params.window)}"
    task_id = desk.task_id(params.task)
    return present.done("page.unwatch", await desk.supervision.unwatch_page(caller, task_id, subject, key))


async def _jobs(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.jobs((await desk.supervision.evidence(desk.task_id(params.task))).tools)


async def _service(desk: Desk, caller: Caller, params: Serviced, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    what = await desk.supervision.mark_service(caller, task_id, params.job, params.unmark, key)
    return present.done("job.mark-service", what)


async def _places(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return present.places(desk.supervision.places(desk.task_id(params.task)))


async def _register(desk: Desk, caller: Caller, params: Registered, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    what = await desk.supervision.register(caller, task_id, params.identity, params.executor, key)
    return present.done("lease.register", what)


async def _claim(desk: Desk, caller: Caller, params: Placed, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    return present.done("lease.claim", await desk.supervision.claim(caller, task_id, params.conversation, key))


async def _heartbeat(desk: Desk, caller: Caller, params: Beating, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    return present.done("lease.heartbeat", await desk.supervision.heartbeat(caller, task_id, params.lease_number, key))


async def _hand_off(desk: Desk, caller: Caller, params: Placed, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    return present.done("lease.handoff", await desk.supervision.hand_off(caller, task_id, params.conversation, key))


async def _take_over(desk: Desk, caller: Caller, params: Succeeding, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    what = await desk.supervision.take_over(caller, task_id, params.conversation, key, by_hand=params.by_hand)
    return present.done("lease.takeover", what)


async def _abandon(desk: Desk, caller: Caller, params: Placed, key: str | None) -> Answer:
    task_id = desk.task_id(params.task)
    return present.done("lease.abandon", await desk.supervision.abandon(caller, task_id, params.conversation, key))


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("observe.list", "Judge a task's evidence now, and list what was recorded", OneTask, _evidence),
        Verb("observe.import", "Keep what somebody else saw; it decides no send", Observing, _observe),
        Verb("reconcile", "Look at everything of a task and record the look", OneTask, _reconcile),
        Verb("dispatch.plan", "Show every rung a send would meet; nothing is done", OneTask, _plan),
        Verb("dispatch.execute", "Send one fenced turn of a task that is named exactly", Executed, _execute),
        Verb("orchestrate", "Plan which task would be served next; nothing is done", Orchestrated, _orchestrate),
        Verb("tool.list", "List the sessions of tool servers that are known here", Looked, _sessions),
        Verb("tool.bind", "Let a session of a tool server count for a task", Bound, _bind),
        Verb("tool.unbind", "Let a session of a tool server not count any more", Unbound, _unbind),
        Verb("page.list", "List the pages that witnesses see now, each with its window", Params, _pages),
        Verb("page.watch", "Let what a witness sees of a page count for a task", Watched, _watch),
        Verb("page.unwatch", "Let a page not count any more", Unwatched, _unwatch),
        Verb("job.list", "List the background jobs of a task's tool sessions", OneTask, _jobs),
        Verb("job.mark-service", "Say that a job is meant to run for ever", Serviced, _service),
        Verb("lease.list", "List the places of a task, and who holds it", OneTask, _places),
        Verb("lease.register", "Make a place of a task known; it holds nothing yet", Registered, _register),
        Verb("lease.claim", "Take a lease that nobody holds", Placed, _claim),
        Verb("lease.heartbeat", "Prolong a lease that is held", Beating, _heartbeat),
        Verb("lease.handoff", "Name the place that may take the lease over", Placed, _hand_off),
        Verb("lease.takeover", "Pass the lease to another place, after two looks that agree", Succeeding, _take_over),
        Verb("lease.abandon", "Give up a place; the task goes on without it", Placed, _abandon),
    )
}
