"""The agent programs of this machine: which are there, of what version, what each can do, and one dry turn.

What a program can do is what its adapter can carry, said per program; a version nobody has tried works, with a warning.
A dry turn speaks to the program as a host would, in an empty directory, and leaves nothing of its own behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from tenuto.config import Settings
from tenuto.surfaces.cli.entrances import AgentFacts, Proof
from tenuto.transports.agents import events as said
from tenuto.transports.agents.adapters import ADAPTERS, Adapter
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.host import environment

PATIENCE: Final = 30.0
"""Seconds that a program may take to say its version."""

TURN: Final = timedelta(minutes=3)
MARKER: Final = "[tenuto:dry]"
WORDS: Final = f"Answer with the one word READY and do nothing else. {MARKER}\n"
VERSION: Final = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")


def facts_of(name: str, environ: Mapping[str, str], *, argv: tuple[str, ...] = ()) -> AgentFacts:
    """One program as it stands here; nothing is started but its own answer to what version it is."""
    adapter = ADAPTERS[name]
    words = argv or adapter.argv
    path = shutil.which(words[0], path=environ.get("PATH", os.defpath)) if words else None
    if path is None:
        missing = f"{words[0]} is not on the PATH" if words else "name its program: acp:'CMD ARGS'"
        return AgentFacts(name, None, None, adapter.can, missing)
    version = _version(path, environ)
    trouble = ""
    if version is None:
        trouble = "it does not say which version it is; it is used as the versions that are known"
    elif version not in adapter.tried:
        known = f"tried are {', '.join(adapter.tried)}" if adapter.tried else "none was tried"
        trouble = f"this version was not tried ({known}); it is used as those"
    return AgentFacts(name, path, version, adapter.can, trouble)


def _version(path: str, environ: Mapping[str, str]) -> str | None:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False, env=dict(environ),
            stdin=subprocess.DEVNULL, cwd="/", errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = VERSION.search(done.stdout[:4096])
    return found.group() if found is not None else None


def tested(name: str, argv: tuple[str, ...], settings: Settings, environ: Mapping[str, str]) -> Proof:
    """One dry turn: the session opens, our words are taken up, words come back, the turn ends, all of it is gone."""
    adapter = ADAPTERS[name]
    facts = facts_of(name, environ, argv=argv)
    if facts.path is None:
        return Proof(False, facts.trouble)
    with tempfile.TemporaryDirectory(prefix="tenuto-dry-") as place:
        lines, ok = asyncio.run(_turn(adapter, Start(argv or adapter.argv, place, _values(adapter, settings, environ))))
    told = f"{name} {facts.version or 'of a version it does not say'}: {'a dry turn went well' if ok else 'it did not'}"
    return Proof(ok, told, lines, {"agent": name, "version": facts.version, "ok": ok, "steps": list(lines)})


def _values(adapter: Adapter, settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    values = environment.resolve((), {}, environ, settings.env_file)
    kept = environment.of_file(settings.env_file)
    known = {name: value for name in adapter.env if (value := environ.get(name, kept.get(name))) is not None}
    return {**adapter.own_values, **values, **known}


async def _turn(adapter: Adapter, start: Start) -> tuple[tuple[str, ...], bool]:
    channel = adapter.make(start)
    lines: list[str] = []
    began = spoke = ended = False
    try:
        async with asyncio.timeout(TURN.total_seconds()):
            lines.append(f"session {await channel.open(None)} is open")
            await channel.prompt(WORDS, MARKER)
            while not ended:
                match await channel.hear():
                    case said.TurnBegan():
                        began = True
                        lines.append("it has taken our words up")
                    case said.Said():
                        spoke = True
                    case said.TurnEnded(stop=stop, failed=failed):
                        ended = True
                        lines.append(f"the turn ended: {stop}")
                        spoke = spoke and not failed
                    case said.Failure(text=text) | said.Limited(text=text) | said.Overloaded(text=text):
                        lines.append(text)
                    case said.ContextFull(text=text) | said.LoggedOut(text=text):
                        lines.append(text)
                    case said.PermissionAsked(request=request):
                        await channel.answer(request, False, "nothing is to be done")
                    case said.Refused(reason=reason) | said.Closed(reason=reason):
                        lines.append(reason)
                        break
                    case _:
                        pass
    except NotOpened as error:
        lines.append(error.reason)
    except TimeoutError:
        lines.append(f"it took longer than {TURN.total_seconds():.0f} s")
    except ConnectionError:
        lines.append("it went away")
    gone = False
    with contextlib.suppress(OSError):
        gone = await channel.close(5.0)
    lines.append("everything of it is gone" if gone else "something of it may be left")
    return tuple(lines), began and spoke and ended
