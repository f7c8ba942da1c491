"""Playbooks: Markdown whose front matter says how a kind of work is to be done, read into one value.

Front matter is TOML between two lines of `+++`; what follows is given to the agent before the prompt. A name that is
not known is an error that says which, so that nothing anybody relied on is dropped in silence. How work is delivered is
said here and nowhere else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tenuto.model.faults import Mistake
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, AutoResume

FENCE = "+++"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
SCOPES = ("project", "user", "built-in")
BYTES = 64 * 1024


class Delivery(StrEnum):
    """How the work is to be handed in."""

    REPORT = "report"
    COMMIT = "commit"
    PULL_REQUEST = "pull-request"
    MERGE = "merge"


@dataclass(frozen=True)
class Playbook:
    """How a kind of work is to be done. None: it does not say, and what the parent has, or the default, counts.

    `directory` is relative to the project in a project's playbook, else absolute. `policy` are numbers of a new run.
    """

    name: str
    instructions: str = ""
    agent: Agent | None = None
    delivery: Delivery | None = None
    directory: str | None = None
    acceptance: Acceptance = field(default_factory=Acceptance)
    auto_resume: AutoResume | None = None
    max_attempts: int | None = None
    auto_close: bool | None = None
    unattended: bool | None = None
    policy: Mapping[str, int | float] = field(default_factory=dict)


def named(given: str) -> tuple[str | None, str]:
    """The scope and the name in `name` or `scope/name`; raises Mistake for anything that is not spelled so."""
    scope, slash, name = given.rpartition("/")
    if (slash and scope not in SCOPES) or not NAME.fullmatch(name):
        raise Mistake(
            f"a playbook is called NAME or SCOPE/NAME, with a scope of {', '.join(SCOPES)}; not '{given[:80]}'",
            field="playbook",
        )
    return scope or None, name


def read(scope: str, name: str, text: str) -> Playbook:
    """The playbook that a text is; raises Mistake naming what is wrong in it."""
    told, body = _parts(f"{scope}/{name}", text)
    this = _Reader(f"{scope}/{name}", told)
    env = tuple(this.words("env"))
    for variable in env:
        if not VARIABLE.fullmatch(variable):
            raise this.wrong("env", f"'{variable[:40]}' is no name of a variable; values are never written here")
    program = tuple(this.words("program"))
    resumable = this.truth("resumable")
    agent = this.text("agent")
    if program:
        made: Agent | None = Agent(agent or "program", program, bool(resumable), env)
    elif env or agent or resumable is not None:
        raise this.wrong("program", "agent, env and resumable belong to a program, which is not named")
    else:
        made = None
    directory = this.text("directory")
    if directory is not None and scope == "project":
        if directory.startswith("/") or ".." in directory.split("/"):
            raise this.wrong("directory", "a project's playbook stays inside its project")
    elif directory is not None and not directory.startswith("/"):
        raise this.wrong("directory", "it must be an absolute path")
    policy = this.numbers("policy")
    playbook = Playbook(
        name=f"{scope}/{name}",
        instructions=body.strip(),
        agent=made,
        delivery=this.one_of("delivery", Delivery),
        directory=directory,
        acceptance=this.acceptance(),
        auto_resume=this.one_of("auto-resume", AutoResume),
        max_attempts=this.count("max-attempts"),
        auto_close=this.truth("auto-close"),
        unattended=this.truth("unattended"),
        policy={key.replace("-", "_"): value for key, value in policy.items()},
    )
    this.finish()
    return playbook


def _parts(name: str, text: str) -> tuple[dict[str, Any], str]:
    if len(text.encode("utf-8", "replace")) > BYTES:
        raise Mistake(f"the playbook {name} has more than {BYTES} bytes", field="playbook")
    lines = text.split("\n")
    if not lines or lines[0].rstrip() != FENCE:
        raise Mistake(
            f"the playbook {name} does not begin with front matter between lines of {FENCE}", field="playbook"
        )
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise Mistake(f"the front matter of the playbook {name} has no end", field="playbook")
    try:
        told = tomllib.loads("\n".join(lines[1:end]))
    except tomllib.TOMLDecodeError as error:
        raise Mistake(f"the front matter of the playbook {name} cannot be read: {error}", field="playbook") from None
    return told, "\n".join(lines[end + 1 :])


class _Reader:
    """Takes names out of a front matter one by one; what is left over is unknown."""

    def __init__(self, name: str, told: dict[str, Any]) -> None:
        self._name = name
        self._told = told

    def wrong(self, key: str, why: str) -> Mistake:
        return Mistake(f"the playbook {self._name}: {key}: {why}", field="playbook")

    def finish(self) -> None:
        if self._told:
            raise self.wrong(sorted(self._told)[0], "there is nothing of that name in a playbook")

    def text(self, key: str) -> str | None:
        value = self._told.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip() or len(value) > 4096 or "\x00" in value:
            raise self.wrong(key, "it is a text of 1 to 4096 characters")
        return value

    def truth(self, key: str) -> bool | None:
        value = self._told.pop(key, None)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "it is true or false")
        return value

    def count(self, key: str) -> int | None:
        value = self._told.pop(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
            raise self.wrong(key, "it is a whole number from 1 to 1000000")
        return value

    def words(self, key: str) -> list[str]:
        value = self._told.pop(key, None)
        if value is None:
            return []
        good = isinstance(value, list) and all(isinstance(one, str) and "\x00" not in one for one in value)
        if not good or len(value) > 256 or not value or not value[0]:
            raise self.wrong(key, "it is a list of words")
        return list(value)

    def numbers(self, key: str) -> dict[str, int | float]:
        value = self._told.pop(key, {})
        good = isinstance(value, dict) and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in value.values()
        )
        if not good:
            raise self.wrong(key, "it is a table of numbers")
        return dict(value)

    def one_of(self, key: str, words: type[StrEnum]) -> Any:
        value = self._told.pop(key, None)
        if value is None:
            return None
        try:
            return words(value)
        except ValueError:
            raise self.wrong(key, f"it is one of {', '.join(words)}") from None

    def acceptance(self) -> Acceptance:
        check, file, commit = self.words("accept-check"), self.text("accept-file"), self.truth("accept-commit")
        if sum((bool(check), file is not None, bool(commit))) > 1:
            raise self.wrong("accept-check", "name one of accept-check, accept-file and accept-commit")
        if check:
            return Acceptance(AcceptanceKind.CHECK, tuple(check))
        if file is not None:
            return Acceptance(AcceptanceKind.FILE, (), file)
        return Acceptance(AcceptanceKind.COMMIT if commit else AcceptanceKind.NONE)
