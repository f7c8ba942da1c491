"""Draws every lifecycle from its table, as Mermaid, between two marks in docs/explanation/lifecycles.md.

The words around the diagrams are written by hand; the diagrams never are. Run it after a table has changed; a test
compares the page with what it would write.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tenuto.model import lifecycle
from tenuto.model.lifecycle import Lifecycle

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "lifecycles.md"
BLOCK = re.compile(r"<!-- lifecycle: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def diagram(table: Lifecycle[Any, Any]) -> str:
    """One lifecycle as a Mermaid state diagram, moves in the order of the table; terminal states lead out of it."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {table.start}"]
    for state, moves in table.moves.items():
        lines += [f"    {state} --> {after}: {str(event).replace('_', ' ')}" for event, after in moves.items()]
    lines += [f"    {state} --> [*]" for state in table.states if state in table.terminal]
    return "\n".join([*lines, "```"])


def drawn(page: str) -> str:
    """The page with every diagram as its table says; KeyError for a lifecycle that does not exist."""
    tables = {table.name: table for table in lifecycle.ALL}

    def block(found: re.Match[str]) -> str:
        return f"<!-- lifecycle: {found[1]} -->\n{diagram(tables[found[1]])}\n<!-- end -->"

    return BLOCK.sub(block, page)


def named(page: str) -> list[str]:
    """The lifecycles a page has a place for, in its order."""
    return BLOCK.findall(page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
    print(f"drawn: {', '.join(named(PAGE.read_text('utf-8')))}")
