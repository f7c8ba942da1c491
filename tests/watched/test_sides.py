"""What every system's trees promise, asked of each side over a stub of its system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.atspi import SHOWN, Asking, asked
from tests.support.uia import Desktop, Part

from tenuto import sites
from tenuto.model.evidence import Rank
from tenuto.model.tools import Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.transports.watched import atspi, com, uia
from tenuto.transports.watched.accessibility import AccessibilityWitness
from tenuto.transports.watched.atspi import AtSpi
from tenuto.transports.watched.trees import NotLooked, Sort, Trees, Window
from tenuto.transports.watched.uia import Uia
from tenuto.wiring.witnesses import trees_of

URL, OTHER = "https://chatgpt.com/c/1", "https://chatgpt.com/c/2"
SITE = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
SECRET = "the launch code is 0000"

pytest.importorskip("jeepney")


@dataclass(frozen=True)
class Control:
    name: str
    button: bool = True
    busy: bool = False
    enabled: bool = True
    shown: bool = True


@dataclass(frozen=True)
class Page:
    """What a window shows. `url` is None where its program tells no address, `tells` whether it tells its parts."""

    url: str | None = URL
    controls: tuple[Control, ...] = ()
    shown: bool = True
    tells: bool = True


SEND, STOP, WORDS = Control("Send prompt"), Control("Stop streaming"), Control(SECRET, button=False)


@dataclass
class Side:
    """One system's trees, and how windows are opened in it: a list of windows, each the list of its pages."""

    trees: Trees
    show: Callable[[Sequence[Sequence[Page]]], None]
    began: list[float] = field(default_factory=lambda: [100.0])


def linux(monkeypatch: pytest.MonkeyPatch) -> Side:
    made = Asking({})
    asked(made, monkeypatch)

    def show(windows: Sequence[Sequence[Page]]) -> None:
        frames = [f"/w{number}" for number in range(len(windows))]
        places: dict[str, Any] = {atspi.ROOT: (75, ["/app"], None), "/app": (75, frames, None)}
        for frame, pages in zip(frames, windows, strict=True):
            paths = [f"{frame}/p{number}" for number in range(len(pages))]
            places[frame] = (23, ["/bar", *paths], None)
            places["/bar"] = (63, [], None)
            for path, page in zip(paths, pages, strict=True):
                below = [f"{path}/{number}" for number in range(len(page.controls))]
                places[path] = (95, below if page.tells else None, page.url)
                made.states[path] = SHOWN if page.shown else 0
                for each, control in zip(below, page.controls, strict=True):
                    places[each] = (43 if control.button else 61, [], None)
                    made.names[each] = control.name
                    enabled = (1 << atspi.ENABLED) | (1 << atspi.SENSITIVE)
                    made.states[each] = (
                        control.shown << atspi.SHOWING
                        | control.busy << atspi.BUSY
                        | (enabled if control.enabled else 0)
                    )
        made.places = places

    return Side(AtSpi(), show)


def windows(monkeypatch: pytest.MonkeyPatch) -> Side:
    made = Desktop()

    def show(windows: Sequence[Sequence[Page]]) -> None:
        made.root.parts = [window(number, pages) for number, pages in enumerate(windows)]
        made.root.hung()

    return Side(Uia(made.opened), show)  # type: ignore[arg-type]  # a stub has no more than is used


def window(number: int, pages: Sequence[Page]) -> Part:
    told = {
        com.CONTROL_TYPE: com.WINDOW, com.CLASS_NAME: "Chrome_WidgetWin_1", com.WINDOW_HANDLE: 65_000 + number,
        com.PROCESS_ID: 7,
    }  # fmt: skip
    bar = Part({com.CONTROL_TYPE: com.EDIT, com.VALUE: "chatgpt.com/c/1"})
    inside = Part({com.CONTROL_TYPE: com.PANE}, [document(number, place, page) for place, page in enumerate(pages)])
    return Part(told, [bar, inside])


def document(number: int, place: int, page: Page) -> Part:
    told = {
        com.CONTROL_TYPE: com.DOCUMENT, com.FRAMEWORK_ID: "Chrome", com.IS_OFFSCREEN: not page.shown,
        com.RUNTIME_ID: (42, number, place), com.VALUE: page.url or "",
    }  # fmt: skip
    refuses = {} if page.tells else {"GetLastChildElementBuildCache": com.ELEMENT_NOT_AVAILABLE}
    return Part(told, [control(each) for each in page.controls], refuses)


def control(each: Control) -> Part:
    return Part(
        {
            com.CONTROL_TYPE: com.BUTTON if each.button else 50020, com.NAME: each.name, com.IS_ENABLED: each.enabled,
            com.IS_OFFSCREEN: not each.shown, com.ARIA_PROPERTIES: f"level=1;busy={'true' if each.busy else 'false'}",
        }
    )  # fmt: skip


@pytest.fixture(params=["linux", "windows"])
def side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Side:
    made = (linux if request.param == "linux" else windows)(monkeypatch)

    def process(pid: int | None) -> tuple[str, float | None]:
        return ("browser", made.began[0]) if pid == 7 else ("", None)

    monkeypatch.setattr(atspi, "process", process)
    monkeypatch.setattr(uia, "process", process)
    return made


class Standing:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


async def seen(side: Side, session: str = URL, profile: Mapping[str, Any] | None = SITE) -> WatchedFacts:
    by = AccessibilityWitness("desk", side.trees, Standing(), lambda _url: profile, timedelta(seconds=120))
    look = await by.look(ToolBinding("desk", session))
    assert (look.rank, look.source) == (Rank.OUTSIDE, "accessibility")
    assert isinstance(look.facts, WatchedFacts)
    assert SECRET not in repr(look)
    return look.facts


@pytest.mark.parametrize(
    ("controls", "generating", "ready"),
    [
        ((WORDS, STOP), True, None),
        ((WORDS, SEND), False, True),
        ((WORDS, replace(SEND, enabled=False)), False, False),
        ((replace(STOP, shown=False), SEND), False, True),
        ((replace(WORDS, busy=True), SEND), True, False),
        ((replace(WORDS, name="Stop streaming"),), None, None),
        ((WORDS,), None, None),
        ((), None, None),
    ],
)
async def test_a_page_is_told_by_its_controls(
    side: Side, controls: tuple[Control, ...], generating: bool | None, ready: bool | None
) -> None:
    side.show([[Page(controls=controls)]])
    facts = await seen(side)
    assert (facts.shown, facts.generating, facts.send_ready, facts.defects) == (True, generating, ready, ())


async def test_two_windows_of_one_process_with_one_address_are_refused_until_one_is_named(side: Side) -> None:
    side.show([[Page(controls=(SEND,))], [Page(controls=(STOP,))], [Page(OTHER)]])
    both = await seen(side)
    assert [defect.flaw for defect in both.defects] == [Flaw.DUPLICATED]
    (one, two), whole = [each.id for each in side.trees.windows()[0] if each.url == URL], side.trees.windows()[1]
    assert whole
    assert one != two
    assert (await seen(side, f"{URL} in {one}")).generating is False
    assert (await seen(side, f"{URL} in {two}")).generating is True
    side.show([[Page(OTHER)], [Page(controls=(STOP,))]])
    assert (await seen(side, f"{URL} in {one}")).shown is False, "a window that is named and shows another page"


def test_a_window_keeps_its_name_until_its_process_is_another(side: Side) -> None:
    side.show([[Page()]])
    first, again = side.trees.windows()[0][0], side.trees.windows()[0][0]
    assert first == again
    assert (first.program, first.pid) == ("browser", 7)
    side.began[0] = 200.0
    assert side.trees.windows()[0][0].id != first.id


def test_a_window_of_two_pages_is_told_once_for_each(side: Side) -> None:
    side.show([[Page(), Page(OTHER)]])
    found, whole = side.trees.windows()
    assert whole
    assert [each.url for each in found] == [URL, OTHER]
    assert found[0].id == found[1].id


async def test_a_page_behind_another_is_not_shown_and_one_without_an_address_is_no_absence(side: Side) -> None:
    side.show([[Page(shown=False), Page(OTHER)]])
    assert (await seen(side)).shown is False
    side.show([[Page(None)], [Page(OTHER)]])
    facts = await seen(side)
    assert facts.shown is None
    assert [defect.flaw for defect in facts.defects] == [Flaw.UNREADABLE]
    assert (await seen(side, OTHER)).shown is True


def test_a_window_that_turned_to_another_page_is_not_looked_at(side: Side) -> None:
    side.show([[Page()]])
    (found,), _ = side.trees.windows()
    side.show([[Page(OTHER, (SEND,))]])
    with pytest.raises(NotLooked, match="turned"):
        side.trees.nodes(found, 10)


def test_the_last_nodes_are_told_first_and_whether_these_are_all(side: Side) -> None:
    side.show([[Page(controls=(WORDS, SEND, STOP))]])
    (found,), _ = side.trees.windows()
    nodes, whole = side.trees.nodes(found, 2)
    assert [node.name for node in nodes] == [STOP.name, SEND.name]
    assert not whole
    nodes, whole = side.trees.nodes(found, 3)
    assert whole
    assert (nodes[2].sort, nodes[2].name) == (Sort.OTHER, ""), "only what a button is called is told"


async def test_a_page_that_does_not_tell_its_parts_is_not_still(side: Side) -> None:
    side.show([[Page(controls=(SEND,), tells=False)]])
    (found,), _ = side.trees.windows()
    assert side.trees.nodes(found, 10) == ([], False)
    assert (await seen(side)).generating is None


def test_a_window_of_another_system_is_refused(side: Side) -> None:
    with pytest.raises(NotLooked, match="another system"):
        side.trees.nodes(Window("w-1", URL, "browser", 7, "somewhere"), 10)


def test_trees_are_those_of_the_system() -> None:
    assert isinstance(trees_of(None, "linux"), AtSpi)
    assert isinstance(trees_of("unix:path=/x", "linux"), AtSpi)
    assert isinstance(trees_of(None, "win32"), Uia)


@pytest.mark.parametrize(
    ("where", "platform", "helps"), [("unix:path=/x", "win32", "nothing"), (None, "darwin", "devt")]
)
def test_where_no_trees_can_be_read_that_is_said_with_what_helps(where: str | None, platform: str, helps: str) -> None:
    none = trees_of(where, platform)
    for ask in (none.windows, lambda: none.nodes(Window("w-1", URL, "browser", 7, None), 10)):
        with pytest.raises(NotLooked) as why:
            ask()
        assert helps in why.value.mend
