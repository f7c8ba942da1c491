"""The bench: what this program costs on this machine, as one table.

Each row is one question with its figure, the goal it is held to and whether it was met. Figures are medians unless
they say otherwise, and compared with what was measured beside them in the same run. The measurements lie in a
directory that travels beside the package; this module only runs them, in a place of its own, and lays out what they
found. A goal that is missed makes the whole bench say so; a measurement that could not be made counts as missed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tenuto.prompts.skills import beside
from tenuto.surfaces.cli.entrances import Proof

#: In the order in which they are run: those that load the machine last.
MEASUREMENTS = ("quick", "turns", "agents", "memory", "ledger", "doors", "idle", "watching", "workspaces", "deaths")
#: With so many seconds every measurement makes its whole count of repetitions.
WHOLE = 75


@dataclass(frozen=True)
class Row:
    """One line of the table. `said` holds the figures for a person, `figures` for a program, units in their names.

    `met` is None where there is no goal.
    """

    name: str
    said: str
    goal: str
    met: bool | None
    figures: Mapping[str, float] = field(default_factory=dict)


def bench(*, seconds: int, say: Callable[[str], None]) -> Proof:
    """Measure for about `seconds`, and lay out what was found; nothing is left behind."""
    try:
        package()
    except FileNotFoundError as missing:
        return Proof(False, str(missing), (), {"failed": str(missing)})
    began, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tenuto-bench-") as made:
        for name in MEASUREMENTS:
            for row in measured(name, Path(made), seconds / WHOLE):
                say(line(row))
                rows.append(row)
    took = time.monotonic() - began
    goals = [row for row in rows if row.met is not None]
    met = sum(row.met is True for row in goals)
    figures = {name: round(value, 3) for row in rows for name, value in row.figures.items()}
    told = [{"name": row.name, "said": row.said, "goal": row.goal, "met": row.met} for row in rows]
    return Proof(
        met == len(goals),
        f"{met} of {len(goals)} goals met in {took:.0f} s",
        [machine(load), "", *map(line, rows)],
        {**figures, "rows": told, "machine": machine(load), "seconds": round(took, 1)},
    )


def package() -> None:
    """Make the measurements importable as `bench`, wherever they lie; FileNotFoundError when they do not."""
    if "bench" in sys.modules:
        return
    place = beside("bench")
    spec = importlib.util.spec_from_file_location(
        "bench", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{place} holds no measurements")
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench"] = module
    spec.loader.exec_module(module)


def measured(name: str, place: Path, effort: float) -> Iterator[Row]:
    """The rows of one measurement; one that fails is a row that says so."""
    mine = place / name
    mine.mkdir(mode=0o700)
    try:
        module: Any = importlib.import_module(f"bench.{name}")
        yield from module.measure(mine, effort)
    except (Exception, ExceptionGroup, subprocess.SubprocessError) as failed:  # noqa: BLE001 - the others are measured all the same
        yield Row(f"{name} was not measured", f"{type(failed).__name__}: {failed}", "", False)


def line(row: Row) -> str:
    """One row as a person reads it."""
    word = {True: "met", False: "MISSED", None: ""}[row.met]
    return f"{row.name:<46} {row.said:<84} {row.goal:<28} {word}".rstrip()


def machine(load: float) -> str:
    """What was measured on: the load is what others asked of it when the bench began."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before;"
        f" Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )
