"""Reading a turn's end: which blocks stand in a text, what they say, and when they say nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.signal import (
    REPORT_BYTES,
    REPORT_TEMPLATE,
    SIGNAL_BYTES,
    TEMPLATE,
    Blocked,
    CommitNeed,
    Complete,
    HumanNeed,
    Kind,
    Need,
    NoReport,
    NoSignal,
    PathNeed,
    RawBlock,
    Report,
    TaskNeed,
    TimeNeed,
    Why,
    WhyNoReport,
    Working,
    blocks_in,
    effective,
    needs_of,
    read_report,
    read_signal,
)

WORKING = "status: working\nsummary: half of it\nprogress: commit a1b2\nnext: the other half"


def signals(text: str) -> list[str]:
    return [block.body for block in blocks_in(text) if block.kind is Kind.SIGNAL]


# --- fences -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "```tenuto\nA\n```",
        "talk\n```tenuto\nA\n```\nmore talk\n",
        "```tenuto\r\nA\r\n```\r\n",
        "   ```tenuto\n   A\n  ```\n",
        "`````tenuto\nA\n`````\n",
        "```tenuto\nA\n``````\n",
        "~~~tenuto\nA\n~~~\n",
        "``` tenuto \t\nA\n```  \n",
        "```\nstray\n```tenuto\nA\n```\n",
        "~~~~~~~\n```tenuto\nA\n```\n",
        "````\nan outer fence that is never closed\n```tenuto\nA\n```\n",
        "```python\nx\n```\n```tenuto\nA\n```\n",
        "```tenuto\nA\n```\n```tenuto\nnever closed\n",
    ],
)
def test_one_block_stands_in_the_text(text: str) -> None:
    assert signals(text) == ["A"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```tenuto\nA\n",
        "```tenuto\nA\n~~~\n",
        "````tenuto\nA\n```\n",
        "    ```tenuto\n    A\n    ```\n",
        "text ```tenuto\nA\n```\n",
        "> ```tenuto\n> A\n> ```\n",
        "```tenuto A\n```\n",
        "```TENUTO\nA\n```\n",
        "```tenuto-else\nA\n```\n",
        "``tenuto\nA\n``\n",
        "````\n```tenuto\nA\n```\n````\n",
        "~~~md\n```tenuto\nA\n```\n~~~\n",
        "~~~\n```tenuto\nA\n~~~\n",
        "```tenuto" + " " * 2000 + "\nA\n```\n",
    ],
)
def test_no_block_stands_in_the_text(text: str) -> None:
    assert signals(text) == []


def test_kinds_are_told_apart_and_indent_belongs_to_the_fence() -> None:
    text = "  ```tenuto-report\n  current: x\n     more\n y\n  ```\n```tenuto\n  kept\n```\n"
    assert blocks_in(text) == (
        RawBlock(Kind.REPORT, "current: x\n   more\ny"),
        RawBlock(Kind.SIGNAL, "  kept"),
    )


@pytest.mark.parametrize("kind", list(Kind))
def test_a_body_is_cut_one_byte_after_its_limit(kind: Kind) -> None:
    (exact,) = blocks_in(f"```{kind.value}\n{'x' * kind.limit}\n```")
    (over,) = blocks_in(f"```{kind.value}\n{'x' * kind.limit * 2}\n```")
    assert len(exact.body) == kind.limit
    assert len(over.body) == kind.limit + 1


@given(st.text())
def test_any_text_can_be_scanned(text: str) -> None:
    assert all(len(block.body) <= block.kind.limit + 1 for block in blocks_in(text))


# --- signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, meant",
    [
        (WORKING, Working("half of it", "commit a1b2", "the other half")),
        ("status: working", Working("")),
        ("Status:  WORKING \nSummary: s", Working("s")),
        ("status: working\nsummary: one\n  two\n\tthree", Working("one\ntwo\nthree")),
        ("status: working\nprogress:\n- a\n- b\nsummary: s", Working("s", "- a\n- b")),
        ("status: working\nmood: sunny\nsummary: s", Working("s")),
        ("\n\nstatus: working\n\nsummary: a: b: c\n", Working("a: b: c")),
        ("status: working\nsummary: \x1b[31mred\x07", Working("[31mred")),
        ("status: complete\nsummary: s\nevidence: deadbeef\nprogress: p", Complete("s", "deadbeef", "p")),
        (
            "status: blocked\nsummary: s\nneeds: the key, from Ada\nnext: go on",
            Blocked("s", HumanNeed("the key, from Ada"), "the key, from Ada", "", "go on"),
        ),
        ("status: blocked\nneeds: task:t-1", Blocked("", TaskNeed("t-1"), "task:t-1")),
    ],
)
def test_a_readable_block(body: str, meant: object) -> None:
    assert read_signal([body], prompt="") == meant


@pytest.mark.parametrize(
    "raw, why",
    [
        ([], Why.NO_BLOCK),
        ([WORKING, "status: working"], Why.TWO_BLOCKS),
        ([WORKING, WORKING], Why.TWO_BLOCKS),
        (["summary: s"], Why.UNKNOWN_STATUS),
        (["status: done"], Why.UNKNOWN_STATUS),
        (["status: complete\nsummary: s"], Why.MISSING_EVIDENCE),
        (["status: complete\nevidence:   "], Why.MISSING_EVIDENCE),
        (["status: blocked"], Why.MISSING_NEEDS),
        (["status: working\njust words"], Why.UNREADABLE_LINE),
        (["  status: working"], Why.UNREADABLE_LINE),
        (["status: working\n```tenuto"], Why.UNREADABLE_LINE),
        (["status: working\nstatus: complete"], Why.DUPLICATE_KEY),
        (["status: working\nsummary: " + "x" * SIGNAL_BYTES], Why.TOO_LARGE),
        (["status: working\nsummary: " + "é" * (SIGNAL_BYTES // 2)], Why.TOO_LARGE),
    ],
)
def test_an_unreadable_turn_says_why(raw: list[str], why: Why) -> None:
    said = read_signal(raw, prompt="")
    assert isinstance(said, NoSignal)
    assert said.why is why
    assert said.sentence.startswith(why.value)
    assert len(said.detail) <= 80


def test_the_size_limit_is_a_limit_of_bytes() -> None:
    head = "status: working\nsummary: "
    assert read_signal([head + "x" * (SIGNAL_BYTES - len(head))], prompt="") == Working(
        "x" * (SIGNAL_BYTES - len(head))
    )


def test_an_echo_of_the_prompt_does_not_count() -> None:
    prompt = (
        f"Go on.\r\n```tenuto\r\n{TEMPLATE}\r\n```\r\n````\n```tenuto\nstatus: working\nsummary: sample\n```\n````\n"
    )
    echo = "status: working  \nsummary: sample"
    assert read_signal([TEMPLATE, echo, WORKING], prompt=prompt) == Working(
        "half of it", "commit a1b2", "the other half"
    )
    assert read_signal([TEMPLATE, echo], prompt=prompt) == NoSignal(Why.NO_BLOCK)
    assert read_signal([echo, WORKING], prompt="") == NoSignal(Why.TWO_BLOCKS)


@pytest.mark.parametrize(
    "template",
    [
        TEMPLATE,
        TEMPLATE + "\n",
        "status: working | complete | blocked\nsummary: one line\nnext: one line     # optional",
        "status: working | complete | blocked   # pick one",
    ],
)
def test_the_literal_template_does_not_count(template: str) -> None:
    assert read_signal([template], prompt="") == NoSignal(Why.NO_BLOCK)
    assert read_signal([template, "status: working"], prompt="") == Working("")


@given(st.text(max_size=200), st.text(max_size=200))
def test_whatever_stands_beside_a_block_makes_two(other: str, prompt: str) -> None:
    assert read_signal([WORKING, other], prompt=prompt) == NoSignal(Why.TWO_BLOCKS)
    assert read_signal([other, WORKING], prompt=prompt) == NoSignal(Why.TWO_BLOCKS)


@given(st.text(max_size=200))
def test_any_text_can_be_read(body: str) -> None:
    said = read_signal([body], prompt="")
    assert not isinstance(said, NoSignal) or said.sentence


LINE = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=40)


@given(summary=LINE, evidence=LINE, around=LINE, crlf=st.booleans(), ticks=st.integers(3, 9))
def test_what_is_written_is_read_back(summary: str, evidence: str, around: str, crlf: bool, ticks: int) -> None:
    fence = "`" * ticks
    lines = ["x" + around, f"{fence}tenuto", "status: complete", f"summary: {summary}", f"evidence: {evidence}", fence]
    text = ("\r\n" if crlf else "\n").join([*lines, "x" + around])
    assert read_signal(signals(text), prompt="") == Complete(summary, evidence)


# --- needs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, need",
    [
        ("task:0199-ab.c_d", TaskNeed("0199-ab.c_d")),
        ("path:/srv/data/in file.csv", PathNeed("/srv/data/in file.csv")),
        ("path:out/result.json", PathNeed("out/result.json")),
        ("merged:feature/x into main", CommitNeed("feature/x", "main")),
        ("merged:#12  into release-1.x", CommitNeed("#12", "release-1.x")),
        ("until:2030-01-02T03:04:05+02:00", TimeNeed(datetime(2030, 1, 2, 1, 4, 5, tzinfo=UTC))),
        ("until:2030-01-02T03:04:05Z", TimeNeed(datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))),
        ("  until:2030-01-02T03:04Z\n", TimeNeed(datetime(2030, 1, 2, 3, 4, tzinfo=UTC))),
    ],
)
def test_machine_forms(text: str, need: Need) -> None:
    assert needs_of(text) == need


@pytest.mark.parametrize(
    "text",
    [
        "the database password, from the operator",
        "task: which one?",
        "task:a b",
        "task:",
        "path: to victory",
        "path:",
        "path:a\nb",
        "merged:x",
        "merged:--upload-pack=x into main",
        "merged:x into -f",
        "merged:a..b into main",
        "until:tomorrow",
        "until:2030-01-02T03:04:05",
        "until:2030-01-02",
        "until:0001-01-01T00:00:00+23:59",
        "Task:abc",
        "see task:abc",
    ],
)
def test_anything_else_is_a_question(text: str) -> None:
    assert needs_of(text) == HumanNeed(text)


@given(st.text())
def test_every_need_is_read(text: str) -> None:
    need = needs_of(text)
    if isinstance(need, HumanNeed):
        assert need.question == text.strip()


# --- reports ----------------------------------------------------------------------------------------


def test_a_report() -> None:
    body = (
        "commits: a1b2, c3d4\ncompleted:\n- parser\n- printer\ncurrent: tests\n  of the printer\nremaining: docs\n"
        "blockers: none\nrisks: -\ncross-task: the port moved"
    )
    report = read_report([body])
    assert report == Report(
        commits=("a1b2", "c3d4"),
        completed=("parser", "printer"),
        current=("tests", "of the printer"),
        remaining=("docs",),
        cross_task=("the port moved",),
    )
    assert report.lines[:3] == (("commits", "a1b2"), ("commits", "c3d4"), ("completed", "parser"))


def test_underscore_and_dash_name_the_same_field() -> None:
    assert read_report(["cross_task: x"]) == Report(cross_task=("x",))


@pytest.mark.parametrize(
    "raw, why",
    [
        ([], WhyNoReport.NO_BLOCK),
        ([REPORT_TEMPLATE], WhyNoReport.NO_BLOCK),
        (["current: a", "current: b"], WhyNoReport.TWO_BLOCKS),
        (["current: " + "x" * REPORT_BYTES], WhyNoReport.TOO_LARGE),
        (["prose"], WhyNoReport.UNREADABLE_LINE),
        (["current: a\ncurrent: b"], WhyNoReport.DUPLICATE_KEY),
        (["weather: fine"], WhyNoReport.EMPTY),
        ([""], WhyNoReport.EMPTY),
    ],
)
def test_no_report_says_why(raw: list[str], why: WhyNoReport) -> None:
    said = read_report(raw)
    assert isinstance(said, NoReport)
    assert said.why is why
    assert said.sentence.startswith(why.value)


def test_a_report_is_never_a_signal() -> None:
    text = "```tenuto-report\nstatus: complete\nevidence: x\ncurrent: y\n```\n"
    assert read_signal(signals(text), prompt="") == NoSignal(Why.NO_BLOCK)


# --- how the program ended --------------------------------------------------------------------------

DONE = Complete("s", "e")


@pytest.mark.parametrize(
    "said, exit_code, signalled, counts",
    [
        (DONE, 0, False, DONE),
        (DONE, None, False, DONE),
        (DONE, 1, False, NoSignal(Why.FAILED_EXIT, "exit code 1")),
        (Working("s"), 1, False, Working("s")),
        (Blocked("s", HumanNeed("q"), "q"), 3, False, Blocked("s", HumanNeed("q"), "q")),
        (DONE, None, True, NoSignal(Why.KILLED)),
        (Working("s"), -9, False, NoSignal(Why.KILLED)),
        (Working("s"), 0, True, NoSignal(Why.KILLED)),
        (NoSignal(Why.NO_BLOCK), 0, False, NoSignal(Why.NO_BLOCK)),
        (NoSignal(Why.NO_BLOCK), None, True, NoSignal(Why.KILLED)),
    ],
)
def test_the_programs_end_limits_what_counts(
    said: Working | Complete | Blocked | NoSignal, exit_code: int | None, signalled: bool, counts: object
) -> None:
    assert effective(said, exit_code, signalled) == counts
