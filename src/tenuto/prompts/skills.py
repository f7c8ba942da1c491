"""Skills: texts that an agent asks for by name, kept as files beside the package.

A skill is a directory with a `SKILL.md` whose front matter names it and says when to use it. They are read when asked
for and changed by nobody here. A directory without a readable front matter is no skill and is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tenuto

LARGEST = 64 * 1024
"""Most bytes of a skill's file."""

_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_LINE = re.compile(r"(?P<name>[a-z-]+): (?P<value>\S.*)")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill: its name, when to use it, and its text without the front matter."""

    name: str
    description: str
    body: str


def beside(name: str) -> Path:
    """A directory that travels with the package: beside `src/` in a checkout, inside the package in a wheel.

    Raises FileNotFoundError where there is none.
    """
    package = Path(tenuto.__file__).parent
    for place in (package / name, package.parent.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"{name} was not installed beside this program")


def skills(place: Path | None = None) -> Mapping[str, Skill]:
    """Every skill by its name, in the order of their names. `place` is where they lie if not beside the package."""
    folder = beside("skills") if place is None else place
    found = [skill for path in sorted(folder.glob("*/SKILL.md")) if (skill := _read(path)) is not None]
    return {skill.name: skill for skill in found}


def _read(path: Path) -> Skill | None:
    if path.stat().st_size > LARGEST:
        return None
    parts = _FRONT.match(path.read_text("utf-8"))
    if parts is None:
        return None
    front = {found["name"]: found["value"] for line in parts["front"].splitlines() if (found := _LINE.fullmatch(line))}
    if "name" not in front or "description" not in front:
        return None
    return Skill(front["name"], front["description"], parts["body"].strip() + "\n")
