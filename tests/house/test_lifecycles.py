"""The diagrams of the lifecycles say what the tables say, and the tables say what they should.

The page is drawn by scripts/lifecycles.py; here it is drawn again and compared, and the terminal states are named.
"""

from __future__ import annotations

import importlib.util
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tenuto.model import lifecycle
from tenuto.model.faults import IllegalMove
from tenuto.model.lifecycle import Lifecycle

TERMINAL = {
    "task": {"completed", "failed", "cancelled"},
    "run": {"stopped"},
    "attempt": {"ended", "cancelled"},
    "command": {"acknowledged", "failed", "cancelled", "expired"},
    "lease": {"superseded", "ended", "abandoned"},
    "delivery": {"delivered", "dropped"},
    "chain": {"complete", "capped", "stopped"},
    "worktree": {"gone", "failed"},
    "phase": set(),
    "proposal": {"merged", "turned_down"},
}
Table = Lifecycle[Any, Any]


@pytest.fixture(scope="module")
def drawing(root: Path) -> ModuleType:
    """The maker of the page, imported from where it lies."""
    found = importlib.util.spec_from_file_location("lifecycles", root / "scripts" / "lifecycles.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    """The page as it stands."""
    return (root / "docs" / "explanation" / "lifecycles.md").read_text("utf-8")


def test_the_page_is_what_the_tables_say(drawing: ModuleType, page: str) -> None:
    assert page == drawing.drawn(page), "run scripts/lifecycles.py and look at what it changed"


def test_every_lifecycle_has_its_diagram(drawing: ModuleType, page: str) -> None:
    assert drawing.named(page) == [table.name for table in lifecycle.ALL]


def test_a_diagram_that_does_not_fit_is_noticed(drawing: ModuleType, page: str) -> None:
    harmed = page.replace("    armed --> submitted: begun\n", "")
    assert harmed != page
    assert drawing.drawn(harmed) == page


@pytest.mark.parametrize("table", lifecycle.ALL, ids=lambda table: table.name)
def test_the_terminal_states(table: Table) -> None:
    assert {str(state) for state in table.terminal} == TERMINAL[table.name]


@pytest.mark.parametrize("table", lifecycle.ALL, ids=lambda table: table.name)
def test_every_state_is_reached_and_every_move_leads_somewhere(table: Table) -> None:
    reached, waiting = {table.start}, [table.start]
    while waiting:
        for after in table.moves[waiting.pop()].values():
            assert after in table.moves
            if after not in reached:
                reached.add(after)
                waiting.append(after)
    assert reached == set(table.states)
    assert {str(state) for state in table.states} == {str(state) for state in type(table.start).__members__.values()}


@pytest.mark.parametrize("table", lifecycle.ALL, ids=lambda table: table.name)
def test_what_the_table_does_not_have_is_refused(table: Table) -> None:
    events = {event for moves in table.moves.values() for event in moves}
    kinds: set[type[StrEnum]] = {type(event) for event in events}
    assert events == {event for kind in kinds for event in kind}, "an event that moves nothing"
    for state, moves in table.moves.items():
        for event in events - set(moves):
            with pytest.raises(IllegalMove, match=table.name):
                table.after(state, event)
        for event, after in moves.items():
            assert table.after(state, event) is after
            assert (state, after) in table.pairs


def test_open_commands_and_waiting_messages_are_no_ends() -> None:
    assert not lifecycle.OPEN_COMMAND & lifecycle.COMMAND.terminal
    assert not lifecycle.WAITING_DELIVERY & lifecycle.DELIVERY.terminal
