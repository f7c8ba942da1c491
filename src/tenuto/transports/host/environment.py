"""The environment of a program: a short list of ordinary names, what the run names, and our own values.

Values are looked up when a turn is launched and never kept. Nothing else of the supervisor's environment
reaches a program. It refuses to launch with a name missing, and to read secrets that others can read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

BASE: Final = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"})
BASE_FAMILIES: Final = ("LC_", "XDG_")
FILE_LIMIT: Final = 256 * 1024
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class MissingError(Exception):
    """A name the run asks for has no value here; the message names it and how to mend it."""


def resolve(
    names: Iterable[str], given: Mapping[str, str], surroundings: Mapping[str, str], file: Path | None
) -> dict[str, str]:
    """The whole environment of a program.

    `names` come from `surroundings` (the supervisor's own environment) and then from `file`; `given` are values of
    our own and win. Raises MissingError for the first name without a value.
    """
    found = {name: value for name, value in surroundings.items() if name in BASE or name.startswith(BASE_FAMILIES)}
    kept: Mapping[str, str] | None = None
    for name in names:
        if name in surroundings:
            found[name] = surroundings[name]
            continue
        if kept is None:
            kept = of_file(file) if file is not None else {}
        if name not in kept:
            where = f" nor in {file}" if file is not None else ""
            raise MissingError(f"{name} is set neither in the supervisor's environment{where}")
        found[name] = kept[name]
    return {**found, **given}


def of_file(file: Path) -> Mapping[str, str]:
    """The values of a file of NAME=VALUE lines; blank lines and those that begin with # do not count.

    No file is an empty one. MissingError when it cannot be read, or may be read by others than its owner.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise MissingError(f"{file} cannot be read ({error.strerror})") from None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > FILE_LIMIT:
            raise MissingError(f"{file} is not a file of at most {FILE_LIMIT} bytes")
        if about.st_mode & 0o077 or about.st_uid != os.geteuid():
            raise MissingError(f"{file} may be read by others; it must be yours alone (mode 0600)")
        text = os.read(descriptor, FILE_LIMIT).decode("utf-8", "surrogateescape")
    finally:
        os.close(descriptor)
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and NAME.fullmatch(name):
            values[name] = value
    return values
