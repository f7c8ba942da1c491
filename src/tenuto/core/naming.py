"""What worktrees and branches of a chain's units are called: readable, never the same for two, and safe for any unit.

A branch begins with the chain's own namespace and ends with the place of its link in the chain, so that another attempt
at a unit has another branch. What a unit is called is only hinted at, in letters that every file system takes.
"""

from __future__ import annotations

import re

from tenuto.model.ids import ChainId

LONGEST = 40
_OTHER = re.compile(r"[^a-z0-9]+")


def leaf(unit: str, position: int) -> str:
    """The last part of a branch, and of a worktree's path."""
    slug = _OTHER.sub("-", unit.lower()).strip("-")[:LONGEST].strip("-")
    return f"{slug or 'unit'}-{position}"


def tree(chain: ChainId, unit: str, position: int) -> str:
    """The name of a worktree: its chain, and its leaf."""
    return f"{chain}/{leaf(unit, position)}"
