"""Put what lies beside src/ into the package when it is built for others.

Skills, examples and the browser extension have their own places at the top of the tree and
travel as tenuto/skills, tenuto/examples and tenuto/extension in a wheel. An editable installation
is left alone: there the tree itself is at hand.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BESIDE = ("skills", "extension", "examples", "bench")


class Beside(BuildHookInterface):  # type: ignore[type-arg]
    """Adds each directory of BESIDE that exists to a standard wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the directories; version is "standard" or "editable"."""
        if version == "editable":
            return
        for name in BESIDE:
            place = Path(self.root, name)
            if place.is_dir():
                build_data["force_include"][str(place)] = f"tenuto/{name}"
