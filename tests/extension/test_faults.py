"""Tasks are driven through everything that the chat site can do wrong, with the real extension in a real browser.

What the site's server accepted is the judge: never more than one turn for one command. A task comes to its end by
itself, or what only a person can settle stands in attention, and it comes to its end once they have done it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.extension.browsers import Firefox, until
from tests.extension.chats import Chats, answering, chats
from tests.support.lab import Lab, Past

pytestmark = pytest.mark.timeout(600)
LATE = 600_000
"""Where the site shows the turn sooner or later, it is waited for as long as it takes, however slow the machine is."""

SOON = 2_500
"""Where it never shows it, the doubt comes the same whenever it is told."""

FULL = "You've reached the maximum length for this conversation, but you can keep talking in a new chat."
TIMED_OUT = "Message delivery timed out. Please try again."
BOX = "document.querySelector('#prompt-textarea')"
WRITTEN = f"{BOX}.replaceChildren(Object.assign(document.createElement('p'), {{ textContent: 'mine' }}))"


@dataclass(frozen=True)
class Trouble:
    """What the site is told to do. `asks` are words of the question to its person, where there is one; `mend` is what
    that person does then, and `turns` how many it takes to its end."""

    name: str
    lab: Callable[[Lab], object]
    asks: str | None = None
    mend: Callable[[Chats], object] | None = None
    turns: int = 1
    past: tuple[Past, ...] = ()


def fault(name: str, **told: object) -> Callable[[Lab], object]:
    """The site does this once."""
    return lambda lab: lab.fault(name, **told)  # type: ignore[arg-type]


def look(**changes: object) -> Callable[[Lab], object]:
    """The site looks like this."""
    return lambda lab: lab.look(**changes)


TALKED = (Past("user", "one"), Past("assistant", "two"))
OLD = Past("assistant", "", TIMED_OUT, "Retry")

OVERCOME = (
    Trouble("accepted late", fault("accept_late", seconds=3)),
    Trouble("draft kept beside the turn", fault("draft_kept")),
    Trouble("loads itself anew in mid stream", fault("reload_mid_stream")),
    Trouble("an interruption that is overcome", fault("interrupted")),
    Trouble("an answer without words", fault("silent"), turns=2),
    Trouble("nodes made anew all the time", look(churn=20)),
    Trouble("another language", look(locale="ja")),
    Trouble("the second renderer", look(variant="fallback")),
    Trouble("a list that mounts few turns", look(mounted=2), past=TALKED * 6),
    Trouble("an old delivery error", lambda lab: None, past=(*TALKED, OLD, *TALKED)),
    Trouble("the answer to the submit is lost in a known chat", fault("lose_answer"), past=TALKED),
    Trouble("a chat that is full", lambda lab: None, past=(*TALKED, Past("assistant", "", FULL, "Start new chat"))),
)


def reload(it: Chats) -> None:
    """Their person loads every page of the site anew."""
    for page in it.browser.every("chatgpt.com"):
        page.run("(location.reload(), true)")


def signed_in(it: Chats) -> None:
    """Their person logs in."""
    it.lab.login(True)
    reload(it)


def answered(it: Chats) -> None:
    """Their person shows that there is one."""
    it.lab.challenge(False)
    reload(it)


def approved(it: Chats) -> None:
    """Cards come one after another; their person allows each."""

    def questions() -> list[str]:
        return [row["question"] for row in it.attention() if "asks for approval" in row["question"]]

    (first,) = questions()
    it.lab.approve()
    until("the next card", lambda: any(one != first for one in questions()))
    it.lab.approve()


ASKED = (
    Trouble("nobody is logged in", lambda lab: lab.login(False), "log in", signed_in),
    Trouble(
        "a person is asked for", lambda lab: lab.challenge(True), "whether a person is there",
        answered,
    ),
    Trouble("approval cards in series", fault("approval", cards=2), "asks for approval", approved),
    Trouble(
        "it times out after it was taken", fault("accept_then_time_out"), "delivery error",
        lambda it: it.lab.mend(), turns=2,
    ),
)  # fmt: skip

DOUBTED = (
    Trouble("refused", fault("refuse"), "took effect"),
    Trouble("a click that is swallowed", look(swallow=True), "took effect", lambda it: it.lab.look(swallow=False)),
    Trouble("the answer to the submit is lost in a new chat", fault("lose_answer"), "took effect"),
    Trouble("drawn twice", fault("double_render"), "took effect"),
    Trouble("shortened", fault("shorten", characters=12), "took effect"),
    Trouble("too many requests", fault("rate_dialog"), "took effect", lambda it: it.lab.show()),
    Trouble("the limit is told at the submit", fault("usage_limit"), "took effect", lambda it: it.lab.show()),
    Trouble("full at the submit", fault("max_length"), "took effect"),
    Trouble("logged out at the submit", fault("logs_out"), "took effect", signed_in),
)


@pytest.fixture(scope="module", params=["chromium", pytest.param("firefox", marks=pytest.mark.prove)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chats]:
    with chats(tmp_path_factory.mktemp("fault"), request.param) as world:
        yield world


@pytest.fixture
def it(world: Chats) -> Iterator[Chats]:
    world.lab.reset()
    yield world
    world.judge()
    world.leave_nothing()
    world.browser.close_tabs("chatgpt.com")


def begun(it: Chats, trouble: Trouble, acceptance: int) -> str:
    """A task with one turn to its end, in the way of that trouble."""
    it.site(acceptance_ms=acceptance)
    it.lab.answers(answering(1))
    objective = f"Work on: {trouble.name}."
    if not trouble.past:
        trouble.lab(it.lab)
        return it.run(objective)
    identity = it.lab.seed(list(trouble.past))
    trouble.lab(it.lab)
    task = it.home.tenuto("adopt", it.lab.conversation_url(identity), "--cwd", str(it.home.work)).strip()
    it.home.tenuto("continue", task)
    return task


def asked(it: Chats, task: str, words: str) -> None:
    """Wait for the question to a task's person."""

    def questions() -> list[str]:
        return [row["question"] for row in it.attention() if row["task"] == task]

    until(f"a question with {words!r}", lambda: any(words in one for one in questions()), 240)


def each(troubles: tuple[Trouble, ...], *long: str) -> pytest.MarkDecorator:
    """One test each; those of `long` are left to the long proofs."""
    given = [pytest.param(one, id=one.name, marks=[pytest.mark.prove] if one.name in long else []) for one in troubles]
    return pytest.mark.parametrize("trouble", given)


@each(OVERCOME, "the answer to the submit is lost in a known chat", "the second renderer")
def test_what_passes_is_passed(it: Chats, trouble: Trouble) -> None:
    task = begun(it, trouble, SOON if "lost" in trouble.name else LATE)
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == trouble.turns


@each(ASKED, "it times out after it was taken")
def test_what_is_a_persons_is_asked_and_goes_on_after_them(it: Chats, trouble: Trouble) -> None:
    task = begun(it, trouble, LATE)
    assert trouble.asks is not None
    assert trouble.mend is not None
    asked(it, task, trouble.asks)
    assert it.lab.posts() == len(it.lab.accepted())
    trouble.mend(it)
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == trouble.turns
    assert not any(row["task"] == task for row in it.attention())


@each(
    DOUBTED, "the answer to the submit is lost in a new chat", "too many requests", "full at the submit",
    "logged out at the submit", "shortened",
)  # fmt: skip
def test_what_cannot_be_told_is_held_and_never_sent_again(it: Chats, trouble: Trouble) -> None:
    task = begun(it, trouble, SOON)
    assert trouble.asks is not None
    asked(it, task, trouble.asks)
    (doubted,) = [one for one in it.commands(task) if one["state"] == "ambiguous"]
    posts = it.lab.posts()
    assert posts == (0 if "swallowed" in trouble.name else 1)
    if trouble.mend is not None:
        trouble.mend(it)
    taken = len(it.lab.accepted()) > 0
    it.site(acceptance_ms=LATE)
    it.home.tenuto("command", "release", doubted["id"], "--verdict", "happened" if taken else "not-happened")
    it.browser.close_tabs("chatgpt.com")  # their person has looked, and leaves nothing half done in the page
    assert it.ends(task) == "completed"
    assert len(it.lab.accepted()) == int(taken) + 1


def drafted(it: Chats) -> None:
    """Somebody has begun to write."""
    (page,) = it.browser.every("chatgpt.com")
    page.run(f"({WRITTEN}, true)")


def wiped(it: Chats) -> None:
    """They find it as they left it, and take it away."""
    (page,) = it.browser.every("chatgpt.com")
    assert page.run(f"{BOX}.textContent") == "mine"
    page.run(f"({BOX}.replaceChildren(document.createElement('p')), true)")


@pytest.mark.parametrize(
    ("stands", "goes", "asks"),
    [
        (drafted, wiped, "left a draft"),
        pytest.param(
            lambda it: it.lab.show(dialog="Read this."), lambda it: it.lab.show(), "a dialog stands",
            marks=pytest.mark.prove,
        ),
    ],
    ids=["a draft", "a dialog"],
)  # fmt: skip
def test_what_stands_in_a_persons_page_is_left_as_it_is_until_they_take_it_away(
    it: Chats, stands: Callable[[Chats], None], goes: Callable[[Chats], None], asks: str
) -> None:
    task = shown(it, stands)
    asked(it, task, asks)
    assert it.lab.posts() == 0
    goes(it)
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 1
    assert not any(row["task"] == task for row in it.attention())


@pytest.mark.prove
def test_a_markup_that_nobody_knows_is_not_written_into_and_told_once(it: Chats) -> None:
    task = shown(it, lambda it: it.lab.look(variant="unknown"), patience_ms=1_000)
    other = it.lab.conversation_url(it.lab.seed(list(TALKED)))
    beside = it.home.tenuto("adopt", other, "--cwd", str(it.home.work), "--auto").strip()

    def told() -> list[str]:
        return [one for one in it.home.json("status")["troubles"] if "as profile" in one]

    until("the drift", lambda: told() and held(it, task) and held(it, beside))
    assert len(told()) == 1
    assert it.lab.posts() == 0
    it.lab.look(variant="section")
    assert it.ends(task) == "completed"
    assert it.ends(beside) == "completed"
    until("the drift to be over", lambda: not told())


def held(it: Chats, task: str) -> bool:
    """Whether a task says that its page holds it back."""
    return "page" in it.home.tenuto("explain", task)


@pytest.mark.prove
def test_a_page_that_is_hidden_takes_its_turn_once_it_is_seen(it: Chats) -> None:
    """The site takes nothing from a hidden page: the turn waits, and is made once."""
    it.lab.look(deaf_while_hidden=True)
    task = shown(it, lambda it: it.browser.page(it.browser.panel_url()).front())
    (page,) = it.browser.every("chatgpt.com")
    page.until("being hidden", "document.hidden")
    until("the order", lambda: it.commands(task))
    assert it.lab.posts() == 0
    assert page.run("document.hidden")
    page.front()
    assert it.ends(task) == "completed"
    assert it.lab.posts() == 1


def stalled(it: Chats) -> str:
    """A task whose first answer stands still in the middle; its conversation's address is known."""
    it.site(acceptance_ms=LATE)
    it.lab.answers(answering(1))
    it.lab.fault("stall")
    task = it.run("Wait in the middle.")
    it.lab.wait_accepted(1)
    until("the turn", lambda: [one["state"] for one in it.commands(task)] == ["acknowledged"])
    until("the address", lambda: any("/c/" in one["identity"] for one in it.shown(task)["conversations"]))
    return task


MEANWHILE: dict[str, Callable[[Chats], object]] = {
    "the browser lets go of the tab": lambda it: it.browser.discard("chatgpt.com/c/"),
    "the language changes": lambda it: it.lab.look(locale="ja"),
    "the extension loses its name for the browser's start": lambda it: it.browser.forget(),
}


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(name, marks=[pytest.mark.prove] if name == "the language changes" else []) for name in MEANWHILE
    ],
)  # fmt: skip
def test_what_befalls_a_page_in_mid_turn_ends_nothing_and_sends_nothing(it: Chats, meanwhile: str) -> None:
    task = stalled(it)
    MEANWHILE[meanwhile](it)
    it.lab.resume()
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 1
    assert it.lab.posts() == 1


def nameless(it: Chats) -> str:
    """A turn that the site took, in a page that does not know where it is yet."""
    it.site(acceptance_ms=LATE)
    it.lab.answers(answering(1))
    it.lab.fault("accept_late", seconds=12)
    task = it.run("Begin where there is no address yet.")
    it.lab.wait_accepted(1)
    return task


@pytest.mark.prove
@pytest.mark.parametrize("world", ["firefox"], indirect=True)
@pytest.mark.parametrize("turn", [stalled, nameless])
def test_an_extension_that_is_loaded_anew_in_mid_turn_knows_its_tab_by_its_page(
    it: Chats, turn: Callable[[Chats], str]
) -> None:
    """Chromium loads an extension that was given to it at its start anew only with itself."""
    task = turn(it)
    assert isinstance(it.browser, Firefox)
    it.browser.reload_extension()
    until("the extension", it.connected)
    it.lab.resume()
    assert it.ends(task) == "completed"
    assert len(it.accepted_of(task)) == 1
    assert it.lab.posts() == 1


@pytest.mark.prove
def test_spent_usage_is_waited_for_until_its_reset(it: Chats) -> None:
    task = shown(it, lambda it: it.lab.show(banner="You've hit your limit. Your access resets at 3:45 PM."))
    (wait,) = until("the wait", lambda: [one for one in it.shown(task)["waits"] if one["kind"] == "limit"])
    assert "3:45 PM" in wait["question"]
    assert it.lab.posts() == 0
    assert not any(row["task"] == task for row in it.attention())
    it.lab.show()
    for limit in it.home.json("limits")["limits"]:
        it.home.tenuto("limits", "lift", limit["id"])
    assert it.ends(task) == "completed"


def shown(it: Chats, stands: Callable[[Chats], None], **send: int) -> str:
    """A chat in a tab of a person's, with something in it, and a task that is to go on there."""
    it.site(acceptance_ms=LATE, **send)
    it.lab.answers(answering(1))
    url = it.lab.conversation_url(it.lab.seed(list(TALKED)))
    it.browser.page(url).until("the page", f"{BOX}?.dataset.ready === 'true'")
    stands(it)
    return it.home.tenuto("adopt", url, "--cwd", str(it.home.work), "--auto").strip()
