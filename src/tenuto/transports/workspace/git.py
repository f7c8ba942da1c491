"""Asking git questions without letting a repository answer with a program.

A repository's configuration can name programs: filters, monitors, hooks, external diffs,
helpers for credentials and transports. Whoever looks must not run them, so git is started with
an environment of our own in which each of them is overridden, no lock is taken, no object is
fetched, and output and time are bounded. Nothing of our own ``GIT_*`` environment leaks in, and
a git that only looks ends with us, even where it waits for ever and we were killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

from tenuto.transports.workspace.leash import leash

OUTPUT_LIMIT: Final = 8 << 20
"""Bytes of one answer; what is longer is cut and marked so."""

REAP: Final = timedelta(seconds=1)
"""How long a killed git may take to vanish before nobody waits for it any more."""

KEPT: Final = ("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT", "USERPROFILE")

QUIET: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # git before 2.45 knows no GIT_NO_LAZY_FETCH; no transport, no fetch
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}

OVERRIDES: Final = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.untrackedCache", "false"),
    ("core.pager", "cat"),
    ("core.quotePath", "true"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("diff.renames", "false"),
    ("status.renames", "false"),
    ("status.submoduleSummary", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)

FILTER_LIMIT: Final = 500


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree and the ``.git`` that stands in it, both absolute."""

    top: Path
    dot_git: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """How git ended: its exit code, its output (cut at the limit if ``cut``) and the first line of its complaint."""

    code: int
    output: bytes
    complaint: str
    cut: bool = False


class NoGitError(Exception):
    """No git program stands on an absolute entry of PATH."""


@lru_cache(maxsize=8)
def _program(path: str) -> str | None:
    absolute = _absolute(path)
    return shutil.which("git", path=absolute) if absolute else None


def _absolute(path: str) -> str:
    """A search path without the entries that would be looked up inside the repository."""
    return os.pathsep.join(part for part in path.split(os.pathsep) if Path(part).is_absolute())


def filter_overrides(listing: bytes) -> tuple[tuple[str, str], ...]:
    """Overrides that silence every filter named in ``git config --list -z``; raises ``ValueError`` past 500 of them."""
    names: set[str] = set()
    for entry in listing.split(b"\0"):
        section, _, rest = entry.partition(b"\n")[0].partition(b".")
        name, dot, _variable = rest.rpartition(b".")
        if section.lower() == b"filter" and dot:
            names.add(os.fsdecode(name))
    if len(names) > FILTER_LIMIT:
        raise ValueError(f"the repository configures more than {FILTER_LIMIT} filters")
    silent = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    return tuple((f"filter.{name}.{variable}", value) for name in sorted(names) for variable, value in silent)


def environment(
    ours: Mapping[str, str], repository: Repository, overrides: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """The whole environment of one git process, built from nothing but the kept names of ``ours``.

    Naming the git directory spares git its discovery, and with it the ownership check that would
    need ``safe.directory``; naming the work tree outranks a ``core.worktree`` that points elsewhere.
    """
    made = {name: ours[name] for name in KEPT if name in ours}
    made["PATH"] = _absolute(ours.get("PATH", os.defpath))
    made.update(QUIET)
    made["GIT_DIR"] = str(repository.dot_git)
    made["GIT_WORK_TREE"] = str(repository.top)
    settings = (*OVERRIDES, *overrides)
    made["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    return made


async def ask(
    repository: Repository, *arguments: str, overrides: Sequence[tuple[str, str]] = (), limit: int = OUTPUT_LIMIT
) -> Answer:
    """Run one git command that only looks, to its end; raises ``NoGitError`` or ``OSError`` when it cannot start.

    Bound it with ``asyncio.timeout``: whoever stops waiting also ends git and all it started.
    """
    env = environment(os.environ, repository, overrides)
    return await run(repository.top, env, *arguments, limit=limit, before=await leash(env["PATH"]))


async def run(
    cwd: Path,
    env: Mapping[str, str],
    *arguments: str,
    limit: int = OUTPUT_LIMIT,
    stdin: int = asyncio.subprocess.DEVNULL,
    keeps: Sequence[int] = (),
    before: Sequence[str] = (),
) -> Answer:
    """Run one git command with exactly this environment.

    ``keeps`` are descriptors it holds for as long as it lives, ``before`` is what becomes git or holds it.
    """
    program = _program(os.environ.get("PATH", os.defpath))
    if program is None:
        raise NoGitError("no git program is installed")
    process = await asyncio.create_subprocess_exec(
        *before,
        program,
        *arguments,
        cwd=cwd,
        env=dict(env),
        stdin=stdin,
        pass_fds=tuple(keeps),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        (output, cut), (complaint, _) = await asyncio.gather(
            _read(process.stdout, limit, process), _read(process.stderr, 64 << 10, process)
        )
        code = await process.wait()
    except BaseException:
        _end_group(process)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), REAP.total_seconds())
        raise
    return Answer(code, output, _first_line(complaint), cut)


async def _read(stream: asyncio.StreamReader, limit: int, process: asyncio.subprocess.Process) -> tuple[bytes, bool]:
    held = bytearray()
    while chunk := await stream.read(1 << 16):
        held += chunk
        if len(held) > limit:
            _end_group(process)
            return bytes(held[:limit]), True
    return bytes(held), False


def _end_group(process: asyncio.subprocess.Process) -> None:
    """Kill git and its children; while its end is not yet known to us its pid is still its own."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _first_line(complaint: bytes) -> str:
    line = complaint.strip().split(b"\n", 1)[0].decode("utf-8", "replace")
    return "".join(character for character in line if character.isprintable())[:200]
