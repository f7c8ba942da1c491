"""When a page is said to have changed and to have grown, by digests alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenuto.transports.stirring import KEPT, Stirred, Stirring

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
S = timedelta(seconds=1)


def test_a_change_is_dated_and_growth_only_while_it_generates() -> None:
    pages = Stirring()
    assert pages.of("p") == Stirred()
    pages.seen("p", "one", "yes", NOW)
    assert pages.of("p") == Stirred(), "the first look shows no change"
    pages.seen("p", "one", "yes", NOW + S)
    assert pages.of("p") == Stirred(), "a page that only says it generates has not stirred"
    pages.seen("p", "two", "yes", NOW + 2 * S)
    assert pages.of("p") == Stirred(NOW + 2 * S, NOW + 2 * S)
    pages.seen("p", "three", "no", NOW + 3 * S)
    assert pages.of("p") == Stirred(NOW + 3 * S, NOW + 3 * S), "the last of what was generated"
    pages.seen("p", "four", "no", NOW + 4 * S)
    assert pages.of("p") == Stirred(NOW + 4 * S, NOW + 3 * S), "somebody typed, or the page was painted anew"


def test_what_came_late_or_has_no_digest_says_nothing() -> None:
    pages = Stirring()
    pages.seen("p", "one", "yes", NOW)
    pages.seen("p", "two", "yes", NOW - S)
    pages.seen("p", None, "yes", NOW + S)
    pages.seen("p", "", "yes", NOW + S)
    pages.seen("p", 7, "yes", NOW + S)
    assert pages.of("p") == Stirred()


def test_of_many_pages_the_newest_are_remembered() -> None:
    pages = Stirring()
    for number in range(KEPT + 10):
        pages.seen(f"p{number}", "one", "yes", NOW)
        pages.seen(f"p{number}", "two", "yes", NOW + S)
    assert pages.of("p0") == Stirred()
    assert pages.of(f"p{KEPT + 9}").grew_at == NOW + S
