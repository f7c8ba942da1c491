"""Pages that are watched from outside: they hold a send back, authorise none, and what cannot be told holds too."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import classify, decide, reconcile, signs, supervision, trust
from tenuto.model.decision import Because, Continue, Rung
from tenuto.model.evidence import Observation, Rank, Sighting
from tenuto.model.reconciliation import Flawed
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import Defect, Flaw, PageName, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import Standing

URL = "https://chat.example/c/1"
PAGE = ToolBinding("desk", URL)
DUE = b.with_task(b.with_wake(), tools=(PAGE,))


def watched(binding: ToolBinding = PAGE, **more: Any) -> Observation:
    told: dict[str, Any] = {"shown": True, "window": "w-1", "generating": None, **more}
    facts = WatchedFacts(binding, **told)
    return Observation("accessibility", Rank.OUTSIDE, binding.subject, b.NOW, facts)


def goes_on(snapshot: Snapshot, *looks: Observation) -> bool:
    return isinstance(decide.decide(b.see(snapshot, *looks), b.NOW).intent, Continue)


@pytest.mark.parametrize(
    ("session", "page"),
    [
        (URL, PageName(URL)),
        (f"{URL} in w-12ab", PageName(URL, "w-12ab")),
        ("s_" + "0" * 24, None),
        ("https://", None),
        (f"{URL} in ", None),
        (f"{URL} in a window", None),
        (f"{URL}\n", None),
        ("javascript:alert(1)", None),
    ],
)
def test_a_page_is_named_by_its_address_and_perhaps_one_window(session: str, page: PageName | None) -> None:
    assert ToolBinding("desk", session).page == page
    assert page is None or str(page) == session


def test_a_page_that_generates_holds_a_send_and_one_that_is_still_or_not_shown_does_not() -> None:
    because = b.because(DUE, watched(generating=True))
    assert because.rung is Rung.PAGE
    assert "page unwatch" in because.change
    assert because.until is not None
    for still in (watched(generating=False), watched(generating=None), watched(shown=False, window=None)):
        assert goes_on(DUE, still)


def test_what_cannot_be_told_of_a_page_holds_a_send_until_somebody_says_anyway() -> None:
    unseen = watched(shown=None, window=None, defects=(Defect(Flaw.UNREADABLE, "no browser answers"),))
    several = watched(window=None, defects=(Defect(Flaw.DUPLICATED, "2 windows show it"),))
    for look in (unseen, several):
        because = b.because(DUE, look)
        assert because.rung is Rung.EVIDENCE
        assert "--anyway" in because.change
    assert b.because(DUE).rung is Rung.EVIDENCE, "nobody watched it at all"
    assert [each.rank for each in trust.flaws(DUE, (), b.NOW)] == [Rank.OUTSIDE]


def test_no_word_of_a_page_makes_a_send_more_permitted() -> None:
    """Whatever else is seen: with a page beside it, nothing goes on that did not go on without."""
    bare = b.with_wake()
    cut = b.with_task(bare, standing=Standing.CUT_SHORT)
    for snapshot in (bare, cut, b.with_live(), b.with_wait()):
        before = goes_on(snapshot)
        beside = b.with_task(snapshot, tools=(PAGE,))
        for generating in (True, False, None):
            assert not goes_on(beside, watched(generating=generating)) or before


def test_the_fence_moves_with_what_a_page_does_and_not_with_moments() -> None:
    fence = b.found(DUE, watched(generating=False)).fence
    assert b.found(DUE, watched(generating=False, changed_at=b.NOW, heard_at=b.NOW, requests=3)).fence == fence
    others = [watched(generating=True), watched(window="w-2", generating=False), watched(shown=False, window=None)]
    others += [watched(generating=False, defects=(Defect(Flaw.UNREADABLE, "x"),)), watched(generating=None)]
    fences = {b.found(DUE, other).fence for other in others} | {fence}
    assert len(fences) == len(others) + 1


def test_a_page_that_began_to_generate_stops_the_hand_over() -> None:
    seen, same = b.see(DUE, watched(generating=False)), watched(generating=False)
    assert reconcile.still(seen, [same], b.NOW)
    assert not reconcile.still(seen, [watched(generating=True)], b.NOW)
    assert not reconcile.still(seen, [watched(generating=False, defects=(Defect(Flaw.UNREADABLE, "x"),))], b.NOW)
    assert not reconcile.still(seen, [], b.NOW), "nobody looks any more"
    cut = b.see(b.with_task(DUE, standing=Standing.CUT_SHORT), watched(generating=False))
    assert reconcile.still(cut, [same], b.NOW)
    other = watched(generating=False, window="w-2")
    assert not reconcile.still(cut, [other], b.NOW), "after a cut the whole fence counts"


def test_it_is_evidence_of_health_and_its_traffic_is_the_weakest() -> None:
    moved = watched(generating=True, send_ready=False, changed_at=b.NOW - b.S, heard_at=b.NOW)
    told = {sign.name: (sign.value, sign.rank) for sign in signs.of(moved)}
    assert told["generating"] == ("true", Rank.OUTSIDE)
    assert told["send_ready"] == ("false", Rank.OUTSIDE)
    assert told["network_at"][1] is Rank.NETWORK
    assert "page_changed_at" in told
    idle = b.with_task(DUE, attempts=1)
    case = classify.of(b.see(idle, watched(generating=True)), b.NOW - b.MIN, b.NOW)
    assert classify.classify(case).row == "12"
    flawed = watched(shown=None, defects=(Defect(Flaw.UNREADABLE, "no browser answers"),))
    said = classify.classify(classify.of(b.see(idle, flawed), b.NOW - b.MIN, b.NOW))
    assert (said.row, said.mend.endswith(f"tenuto page unwatch {idle.task.id}")) == ("6b", True)


@pytest.mark.parametrize("at", [b.NOW - b.S, b.NOW])
@pytest.mark.parametrize("flip", [False, True])
def test_a_page_that_is_still_hides_no_other_that_generates(at: datetime, flip: bool) -> None:
    other = ToolBinding("desk", "https://chat.example/c/2")
    idle = b.with_task(DUE, attempts=1, tools=(PAGE, other))
    busy, still = watched(generating=True), replace(watched(other, generating=False), seen_at=at)
    looks = (still, busy) if flip else (busy, still)
    assert classify.classify(classify.of(b.see(idle, *looks), b.NOW - b.MIN, b.NOW)).row == "12"
    earlier = replace(busy, seen_at=b.NOW - 2 * b.S)
    looks = (still, earlier) if flip else (earlier, still)
    assert classify.classify(classify.of(b.see(idle, *looks), b.NOW - b.MIN, b.NOW)).row == "12"


def test_what_lets_a_page_or_a_session_go_is_named_by_what_it_is() -> None:
    session = ToolBinding("local", "s_" + "0" * 24)
    unread = (Defect(Flaw.UNREADABLE, "x"),)
    both = b.with_task(DUE, attempts=1, tools=(session, PAGE))
    for page, mend in ((watched(defects=unread), "page unwatch"), (watched(), "tool unbind")):
        tools = b.tools() if mend == "page unwatch" else b.tools(state=None, defects=unread)
        said = classify.classify(classify.of(b.see(both, tools, page), b.NOW - b.MIN, b.NOW))
        assert said.mend.endswith(f"or: tenuto {mend} {both.task.id}")
    pages = tuple(ToolBinding("desk", f"{URL}{number}") for number in range(supervision.BINDINGS))
    sessions = tuple(ToolBinding("local", f"s_{number:024x}") for number in range(supervision.BINDINGS))
    for bound, mends in ((pages, {"page unwatch"}), (sessions, {"tool unbind"}),
                         ((pages[0], *sessions[1:]), {"page unwatch", "tool unbind"})):  # fmt: skip
        full = supervision.bind(b.with_task(DUE, tools=bound), "desk", f"{URL}9", "me", b.NOW, b.new)
        assert isinstance(full, Because)
        assert {mend for mend in ("page unwatch", "tool unbind") if mend in full.change} == mends


def test_what_was_seen_of_a_page_that_is_not_watched_any_more_says_nothing() -> None:
    row = replace(b.sighting(source="accessibility", rank=3, generating="true"), subject=PAGE.subject)
    kept = replace(b.with_task(b.with_wake(), attempts=1), sightings=(row,))
    assert "generating" not in classify.of(b.see(kept), b.NOW - b.MIN, b.NOW).signs
    still = b.with_task(kept, tools=(PAGE,))
    assert classify.of(b.see(still), b.NOW - b.MIN, b.NOW).is_("generating")


def test_that_no_window_shows_a_page_any_more_is_kept_and_judges_nothing() -> None:
    kept = replace(DUE, sightings=(b.settled(DUE, watched(generating=True)).one(Sighting),))
    gone = replace(watched(shown=False, window=None), seen_at=b.NOW + b.S)
    row = b.settled(kept, gone).one(Sighting)
    assert row.facts == (("shown", "false"),)
    known = replace(kept, sightings=(*kept.sightings, row))
    assert b.settled(known, replace(gone, seen_at=b.NOW + b.MIN)).nothing
    assert not classify.of(b.see(known), b.NOW - b.MIN, b.NOW + b.S).is_("generating")
    assert not {"shown"} & set(classify.of(b.see(DUE, watched(shown=False)), b.NOW - b.MIN, b.NOW).signs)
    back = b.settled(known, replace(watched(), seen_at=b.NOW + 2 * b.S)).one(Sighting)
    assert back.facts == (("shown", "true"),)


def test_pages_and_sessions_are_let_go_apart_and_no_job_of_a_page_is_a_service() -> None:
    both = b.with_tools(DUE)
    session = ToolBinding("local", "s_" + "0" * 24)
    both = b.with_task(DUE, tools=(session, PAGE))

    def left(outcome: supervision.Outcome) -> tuple[ToolBinding, ...]:
        assert outcome is not None
        assert not isinstance(outcome, Because)
        task = next(row for row in outcome.puts if hasattr(row, "tools"))
        kept: tuple[ToolBinding, ...] = task.tools
        return kept

    assert left(supervision.unbind(both, None, "me", b.NOW, b.new)) == (PAGE,)
    assert left(supervision.unbind(both, None, "me", b.NOW, b.new, pages=True)) == (session,)
    assert supervision.unbind(both, "desk/elsewhere", "me", b.NOW, b.new, pages=True) is None
    marked = left(supervision.mark_service(both, "job_1", "me", b.NOW, b.new))
    assert marked == (replace(session, services=("job_1",)), PAGE)
    refused = supervision.mark_service(DUE, "job_1", "me", b.NOW, b.new)
    assert isinstance(refused, Because)


def test_nothing_that_is_flawed_is_believed_whole() -> None:
    twice = b.found(DUE, watched(generating=False), watched(generating=True))
    assert [each.flaw for each in twice.findings if isinstance(each, Flawed)] == [Flaw.CONTRADICTORY]
