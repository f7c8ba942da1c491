"""The verbs about agents' own sessions: list them, adopt one, and what hooks tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tenuto.engine.adopting import Adoption
from tenuto.engine.desk import Caller, Desk, Done
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, AutoResume
from tenuto.surfaces import present
from tenuto.surfaces.parameters import Answer, Argument, Label, Params, Path, Title, Variable, Verb
from tenuto.surfaces.present.adopting import agent_sessions

Session = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")]


class Sessions(Params):
    """Whose sessions, and of which directory."""

    agent: Literal["claude", "codex"]
    cwd: Path | None = None


class Adopted(Params):
    """A session by its whole name. Without an objective the task is to go on with what the session is about."""

    agent: Literal["claude", "codex"]
    session: Session
    argv: Annotated[list[Argument], Field(max_length=256, default_factory=list)]
    env: Annotated[list[Variable], Field(max_length=64, default_factory=list)]
    title: Title = ""
    objective: str = ""
    auto_resume: Literal["on", "manual"] = "manual"
    accept_check: Annotated[list[Argument], Field(max_length=256, default_factory=list)]


class AdoptedChat(Params):
    """A chat by its address. Without an objective the task is to go on with what the chat is about."""

    url: Annotated[str, StringConstraints(pattern=r"^https://[\x21-\x7e]{1,490}$")]
    cwd: Path
    on: Annotated[str, StringConstraints(pattern=r"^ext:[a-z0-9][a-z0-9._-]{0,63}$")] = "ext:browser"
    title: Title = ""
    objective: str = ""
    auto_resume: Literal["on", "manual"] = "manual"
    accept_check: Annotated[list[Argument], Field(max_length=256, default_factory=list)]


class Called(Params):
    """What a hook was called with."""

    adapter: Label
    event: Label
    session: Session


async def _sessions(desk: Desk, caller: Caller, params: Sessions, key: str | None) -> Answer:
    caller.must_operate()
    return agent_sessions(desk.adopting.listed(params.agent, params.cwd))


async def _adopt(desk: Desk, caller: Caller, params: Adopted, key: str | None) -> Answer:
    check = tuple(params.accept_check)
    asked = Adoption(
        Agent(params.agent, tuple(params.argv) or (params.agent,), resumable=True, env=tuple(params.env)),
        params.session,
        params.title,
        params.objective,
        AutoResume(params.auto_resume),
        Acceptance(AcceptanceKind.CHECK, check) if check else Acceptance(),
    )
    return present.done("session.adopt", await desk.adopting.adopt(caller, asked, key))


async def _adopt_chat(desk: Desk, caller: Caller, params: AdoptedChat, key: str | None) -> Answer:
    check = tuple(params.accept_check)
    asked = Adoption(
        Agent("chat", ("chat",), resumable=True, on=params.on),
        params.url,
        params.title,
        params.objective,
        AutoResume(params.auto_resume),
        Acceptance(AcceptanceKind.CHECK, check) if check else Acceptance(),
    )
    return present.done("chat.adopt", await desk.adopting.adopt_chat(caller, asked, params.cwd, key))


async def _called(desk: Desk, caller: Caller, params: Called, key: str | None) -> Answer:
    task_id = await desk.hooking.told(caller, params.adapter, params.event, params.session)
    return present.done("hook.tell", Done({"task": task_id}))


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("session.list", "List the sessions that an agent program keeps", Sessions, _sessions),
        Verb("session.adopt", "Make a task of an agent's session, without touching it", Adopted, _adopt),
        Verb("chat.adopt", "Make a task of a chat by its address, without sending to it", AdoptedChat, _adopt_chat),
        Verb("hook.tell", "Tell what a session did; it is looked at, and decides no send", Called, _called),
    )
}
