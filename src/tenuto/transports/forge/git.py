"""Running git against remotes: bounded, without hooks, without questions, and with the operator's own credentials.

A place with a password in it is refused, and so is every transport but files, HTTPS and SSH. Git is given lists of
arguments, and a session of its own, so that what is given up is ended with all it began.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tenuto.model.faults import Mistake

OUTPUT = 32 * 1024 * 1024
LIMIT = timedelta(seconds=120)
KEPT = (
    "HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "LANG",
)  # fmt: skip
SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.fsckObjects", "true"),
    ("merge.conflictStyle", "merge"),
)
_URL = re.compile(r"(?:https|ssh)://(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9.\[\]:-]+/\S+|file:///\S+|[\w.-]+@[\w.-]+:[^\s:]\S*")
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Failed(Exception):
    """Git ended with another code than 0, or could not be run; `timed_out` says that it was given up."""

    def __init__(self, why: str, code: int = 1, *, timed_out: bool = False) -> None:
        super().__init__(why)
        self.code = code
        self.timed_out = timed_out


@dataclass(frozen=True)
class Git:
    """Git in one directory."""

    at: Path

    def run(
        self, *arguments: str, limit: timedelta = LIMIT, given: Mapping[str, str] | None = None, also: int = 0
    ) -> str:
        """The output of one command that ends with 0 (or `also`); Failed otherwise."""
        program = shutil.which("git")
        if program is None:
            raise Failed("no git is installed")
        with subprocess.Popen(
            [program, *arguments],
            cwd=self.at,
            env=_environment(given or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                output, complaint = process.communicate(timeout=limit.total_seconds())
            except BaseException as why:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                if isinstance(why, subprocess.TimeoutExpired):
                    raise Failed(f"git {arguments[0]} was given up", timed_out=True) from None
                raise
        if process.returncode not in (0, also):
            raise Failed(f"git {arguments[0]}: {_first(complaint) or _first(output)}", process.returncode)
        if len(output) > OUTPUT:
            raise Failed(f"git {arguments[0]} says more than {OUTPUT} bytes")
        return output.decode("utf-8", "replace")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    made = {name: os.environ[name] for name in KEPT if name in os.environ}
    made |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_ALLOW_PROTOCOL": "file:https:ssh",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": str(len(SETTINGS)),
    }
    for number, (key, value) in enumerate(SETTINGS):
        made |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return made | dict(given)


def _first(raw: bytes) -> str:
    """The first telling line, printable and without anything that stands before an @ in an address."""
    lines = [line for line in raw.decode("utf-8", "replace").splitlines() if line.strip() and "hint:" not in line]
    line = "".join(letter for letter in (lines[0] if lines else "") if letter.isprintable())[:200]
    return re.sub(r"//[^/@\s]*@", "//", line)


def remote(location: str) -> str:
    """A remote as git is told it; Mistake for one that cannot be, or that carries a password."""
    if location.startswith("/") and "\0" not in location and "\n" not in location:
        return location
    if not _URL.fullmatch(location) or len(location) > 500:
        raise Mistake("a remote is an absolute path, or an address over https, ssh or file without a password",
                      field="forge")  # fmt: skip
    return location


def ref_of(branch: str) -> str:
    """The full name of a branch; Mistake for what is none."""
    bad = branch.startswith(("-", "/", ".")) or branch.endswith(("/", ".", ".lock"))
    if bad or not branch or len(branch) > 200 or re.search(r"[\x00-\x20~^:?*\[\\\x7f]|\.\.|//|@\{", branch):
        raise Mistake(f"{branch[:80]!r} is no branch", field="branch")
    return f"refs/heads/{branch}"
