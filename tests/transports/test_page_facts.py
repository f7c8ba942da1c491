"""What an extension tells of a page: one that is gone is another thing than one that cannot be read now."""

from __future__ import annotations

import pytest

from tenuto.core import closing
from tenuto.model.evidence import PageFacts
from tenuto.transports.pages import facts_of


def test_a_page_that_cannot_be_read_is_neither_shown_nor_gone() -> None:
    unread = facts_of({"type": "page", "shown": None})
    assert unread == PageFacts(shown=None)
    assert closing.closable(unread) is False, "it is looked at again, and not closed"


@pytest.mark.parametrize(
    "told", [{"type": "page", "shown": False}, {"type": "page"}, {"shown": None}, {"type": "page", "shown": 1}, {}]
)
def test_what_says_nothing_else_is_not_shown(told: dict[str, object]) -> None:
    assert facts_of(told) == PageFacts(shown=False)
