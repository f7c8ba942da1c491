"""Git where it may change something or reach a remote: fetching, and worktrees.

What a repository configures is still not run: its hooks, its filters, its helpers for credentials and transports. What
the person who runs this has configured for all of their repositories is theirs, so credentials, the way of ssh and
filters that are named there are given back. Nobody is asked for a password, and time and output are bounded.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from tenuto.model.worktree import Base
from tenuto.transports.workspace import git, place
from tenuto.transports.workspace.git import Answer, Repository

PATIENCE: Final = timedelta(minutes=3)
"""How long one command may take: a fetch and a checkout of a large repository."""

GIVEN: Final = (
    "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
)  # fmt: skip
PROTOCOLS: Final = "file:https:http:ssh"
OURS: Final = ("credential.", "filter.")
SSH: Final = "core.sshcommand"
NO_INPUT: Final = asyncio.subprocess.DEVNULL
MOST: Final = 500
SAFE: Final = (
    ("core.alternateRefsCommand", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
)


class GitFailed(Exception):
    """Git could not do it; the text is the first line of its complaint."""


def repository_at(path: str) -> Repository:
    """The repository that a checkout's path is in; GitFailed where there is none."""
    found = place.find(Path(path))
    if not isinstance(found, Repository):
        raise GitFailed(f"there is no git checkout at {path}")
    return found


@dataclass
class Hand:
    """Runs git. One fetch at a time in one repository; `patience` bounds every command."""

    patience: timedelta = PATIENCE
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def turn(self, repository: Repository) -> asyncio.Lock:
        """Held while refs of our own are moved there."""
        key = str(repository.dot_git)
        lock = self._turns.get(key)
        if lock is None:
            lock = self._turns[key] = asyncio.Lock()
        return lock

    async def look(self, repository: Repository, *arguments: str, limit: int = git.OUTPUT_LIMIT) -> Answer:
        """Ask only; GitFailed where git cannot be run or takes too long."""
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                return await git.ask(repository, *arguments, limit=limit)
        except (TimeoutError, git.NoGitError, OSError, ValueError) as why:
            raise GitFailed(str(why) or f"git took longer than {self.patience.total_seconds():g} s") from None

    async def said(self, repository: Repository, *arguments: str, limit: int = git.OUTPUT_LIMIT) -> str:
        """What git answers to a question; GitFailed where it has no whole answer."""
        answer = await self.look(repository, *arguments, limit=limit)
        if answer.code != 0 or answer.cut:
            raise GitFailed(
                "its answer is too long" if answer.cut else answer.complaint or f"git {arguments[0]} failed"
            )
        return answer.output.decode("utf-8", "surrogateescape")

    async def act(
        self, repository: Repository, *arguments: str, keeps: Sequence[int] = (), stdin: int = NO_INPUT
    ) -> Answer:
        """Let git change something or reach a remote; GitFailed where it cannot be run or takes too long."""
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                env = await self._environment(repository)
                return await git.run(repository.top, env, *arguments, keeps=keeps, stdin=stdin)
        except (TimeoutError, git.NoGitError, OSError, ValueError) as why:
            raise GitFailed(str(why) or f"git took longer than {self.patience.total_seconds():g} s") from None

    async def heads(self, repository: Repository, remote: str, *refs: str) -> dict[str, str]:
        """The refs of those names that the remote has now, and their commits."""
        answer = await self.act(repository, "ls-remote", "--upload-pack=git-upload-pack", remote, *refs)
        if answer.code != 0 or answer.cut:
            raise GitFailed(answer.complaint or f"{remote} cannot be asked")
        found = {}
        for line in answer.output.decode("utf-8", "replace").splitlines():
            commit, _, name = line.partition("\t")
            if name in refs:
                found[name] = commit
        return found

    async def fetch(self, repository: Repository, remote: str, *specs: str) -> None:
        """Fetch exactly these refs into refs of our own; nothing else of the repository moves."""
        answer = await self.act(
            repository, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--no-auto-maintenance", "--refmap=", "--upload-pack=git-upload-pack", remote, *specs,
        )  # fmt: skip
        if answer.code != 0:
            raise GitFailed(answer.complaint or f"{remote} cannot be fetched from")

    async def base(self, repository: Repository, base: Base) -> str:
        """The commit of the base, as it is fetched now."""
        own = own_ref(base)
        async with self.turn(repository):
            await self.fetch(repository, base.remote, f"+refs/heads/{base.branch}:{own}")
            return (await self.said(repository, "rev-parse", "--verify", f"{own}^{{commit}}")).strip()

    async def piped(self, repository: Repository, text: bytes, *arguments: str) -> str:
        """What git makes of a text; GitFailed where it makes nothing of it."""
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(file.write, text)
            file.seek(0)
            answer = await self.act(repository, *arguments, stdin=file.fileno())
        if answer.code != 0 or answer.cut:
            raise GitFailed(answer.complaint or f"git {arguments[0]} failed")
        return answer.output.decode("ascii", "replace")

    async def _environment(self, repository: Repository) -> dict[str, str]:
        listing = await git.ask(repository, "config", "--list", "--name-only", "-z")
        if listing.code != 0 or listing.cut:
            raise OSError(listing.complaint or "the repository's configuration is too long to read")
        own = await self._own(repository)
        ssh = [value for key, value in own if key.lower() == SSH]
        overrides = (
            *git.filter_overrides(listing.output),
            *SAFE,
            ("core.sshCommand", ssh[-1] if ssh else "ssh -oBatchMode=yes"),
            *((key, value) for key, value in own if key.lower() != SSH),
        )
        env = git.environment(os.environ, repository, overrides)
        env.pop("GIT_NO_LAZY_FETCH")
        env["GIT_ALLOW_PROTOCOL"] = PROTOCOLS
        return env | {name: os.environ[name] for name in GIVEN if name in os.environ}

    @staticmethod
    async def _own(repository: Repository) -> list[tuple[str, str]]:
        """What the person's own and the machine's configuration says of credentials, ssh and filters."""
        env = git.environment(os.environ, repository)
        for name in [name for name in env if name.startswith("GIT_CONFIG_")]:
            del env[name]
        answer = await git.run(repository.top, env, "config", "--list", "--show-scope", "-z")
        if answer.code != 0 or answer.cut:
            raise OSError(answer.complaint or "the configuration of git is too long to read")
        parts = answer.output.decode("utf-8", "surrogateescape").split("\0")
        found = []
        for scope, entry in zip(parts[::2], parts[1::2], strict=False):
            key, _, value = entry.partition("\n")
            if scope in ("system", "global") and (key.lower() == SSH or key.lower().startswith(OURS)):
                found.append((key, value))
        if len(found) > MOST:
            raise OSError(f"the configuration of git names more than {MOST} filters and helpers")
        return found


def own_ref(base: Base) -> str:
    """Where the base is kept as it was last fetched; no ref of anybody else."""
    return f"refs/tenuto/base/{base.remote}/{base.branch}"
