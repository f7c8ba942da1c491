"""Agents with a session on the stage of a crash: a host for the conversation, and a program that talks back.

The host is the everyday one, started as ever, with a fuse where a case lays one out. The program is ours and quick; it
keeps files of its own, which are judged: words that were put into a turn are in there once, and so is a leave.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from pathlib import Path

from tenuto.engine.desk import Done
from tenuto.model.command import CommandKind
from tenuto.model.lifecycle import CommandState
from tenuto.model.message import MessagePolicy
from tenuto.model.work import Agent
from tenuto.proof import hosted, talker
from tenuto.proof.case import Kill, Who
from tenuto.proof.fuse import passings
from tenuto.proof.person import OPERATOR, Person
from tenuto.proof.stage import Stage
from tenuto.wiring.daemon import Supervisor

GOAL = 2
"""In which turn the program is done."""

WEB = (
    "tenuto.surfaces.http.app",
    "tenuto.surfaces.mcp.mounted",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
)

SETTLED = frozenset({CommandState.ACKNOWLEDGED, CommandState.FAILED, CommandState.RELEASED})


def ready(stage: Stage, play: str) -> None:
    """Make the program, and import once what every life would import when its host knocks."""
    for name in WEB:
        importlib.import_module(name)
    words = [sys.executable, "-I", "-S", "-X", "utf8", str(Path(talker.__file__)), str(stage.home), play, str(GOAL)]
    program = stage.home / "talker"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
    program.chmod(0o700)


def agent(stage: Stage) -> Agent:
    """The program, as a task names it."""
    return Agent("claude", (str(stage.home / "talker"),), resumable=True)


def stands(supervisor: Supervisor, stage: Stage) -> None:
    """Have hosts of this life started with whatever fuse is laid out, and a home in which nobody has sessions."""
    supervisor.agents.program = (sys.executable, "-m", hosted.__name__, str(stage.home))
    os.environ["CLAUDE_CONFIG_DIR"] = str(stage.home / "claude")


def lay(stage: Stage, kill: Kill | None) -> None:
    """Lay a fuse out for the first host."""
    if kill is not None:
        stage.tell(hosted.LAID, [f"{kill.point} {kill.count}"])


def burnt(stage: Stage, kill: Kill | None) -> bool:
    """Whether the host was killed that was to be."""
    return kill is None or (kill.point, kill.count) in passings(stage.home / "passed.taken")


def chosen(kills: tuple[Kill, ...]) -> Kill | None:
    """The one host that a case kills."""
    return next((kill for kill in kills if kill.who is Who.CONVERSATION), None)


async def steer(person: Person) -> None:
    """Words that are wanted now, put into the turn; should they be turned away, the turn goes on without them."""
    await person.effects(1)
    await person.once("say", lambda key: _now(person, key))
    await person.until(lambda: person.task.terminal or _settled(person))
    person.stage.mark("go")


async def _now(person: Person, key: str) -> Done:
    return await person.desk.say(OPERATOR, person.task_id, "use the blue one", policy=MessagePolicy.STEER_NOW, key=key)


def _settled(person: Person) -> bool:
    """Whether it is known what became of the words, or the turn they were for is over."""
    commands = person.desk.commands(task_id=person.task_id)
    steers = [one for one in commands if one.kind is CommandKind.STEER]
    sends = [one for one in commands if one.kind is CommandKind.SEND]
    return any(one.state in SETTLED for one in steers) or len(sends) > 1
