"""Environments of other libraries, each made once from the package registry, in a directory that can be thrown away."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

#: What is measured, as it was when this was written.
LIBRARIES = {
    "dbos": ("dbos==3.4.0", "psycopg[binary]==3.3.9"),
    "huey": ("huey==3.5.4",),
    "procrastinate": ("procrastinate==3.10.0", "psycopg[binary]==3.3.9"),
}


def cache() -> Path:
    """Where they are kept: TENUTO_BENCH_CACHE, or the user's cache directory."""
    told = os.environ.get("TENUTO_BENCH_CACHE")
    return Path(told) if told else Path.home() / ".cache" / "tenuto-bench"


def python_of(library: str) -> Path:
    """The interpreter of a library's environment, which is made when it is missing or holds another version."""
    wanted = LIBRARIES[library]
    place = cache() / f"{library}-{sys.version_info[0]}.{sys.version_info[1]}"
    python, stamp = place / "bin" / "python", place / "holds"
    if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
        print(f"making an environment for {library} in {place}", file=sys.stderr)  # noqa: T201 - a program that talks
        venv.create(place, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "-qq", "--disable-pip-version-check", "install", *wanted], check=True)
        stamp.write_text("\n".join(wanted))
    return python
