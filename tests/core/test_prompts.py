"""What is sent to an agent: word for word as in the golden files, bounded, marked, and strict about its slots.

To accept changed words, run this file once with TENUTO_GOLDEN=write and read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.signal import REPORT_TEMPLATE, TEMPLATE, Kind, NoSignal, RawBlock, Why, blocks_in, read_signal
from tenuto.prompts import (
    FINDINGS,
    NAMES,
    OUTPUT_BYTES,
    Answer,
    Assignment,
    Checkpoint,
    Continue,
    FailedCheck,
    First,
    HandOver,
    Message,
    Part,
    Prompt,
    PromptError,
    PromptTooLarge,
    Recover,
    Reminder,
    Resume,
    Template,
    TemplateError,
    assemble,
    parse,
    templates,
)

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "prompts"
LIMIT = 320 * 1024
MARKER = "[tenuto:0199c0de-0000-7000-8000-000000000001]"

WORDS = [
    Message("m-1", "operator", "2030-01-02 03:04 UTC", "Leave the vendored files alone."),
    Message("m-2", "task t-9", "2030-01-02 03:05 UTC", "The parser moved to lib/parse.py.\nIts tests moved with it."),
]
OBJECTIVE = "Tidy every text file of this repository.\n\nOne file per commit."

WORLD: dict[str, list[Part]] = {
    "first": [First(OBJECTIVE)],
    "continue": [Continue("commit a1b2c3 (docs/intro.md)", "check docs/usage.md")],
    "continue-without-memory": [Continue(), Assignment(OBJECTIVE)],
    "recover": [
        Recover(
            [
                "the program vanished without an exit code",
                "HEAD is still a1b2c3",
                "docs/usage.md has uncommitted changes",
            ],
            "commit a1b2c3 (docs/intro.md)",
            "check docs/usage.md",
        )
    ],
    "resume": [
        Resume(
            "You've hit your 5-hour limit \N{MIDDLE DOT} resets 3am (Europe/Berlin)",
            "commit a1b2c3",
            "check docs/usage.md",
        )
    ],
    "hand-over": [
        HandOver(OBJECTIVE, "commit a1b2c3", "check docs/usage.md", "completed: docs/intro.md\nremaining: 7 files")
    ],
    "checkpoint": [Checkpoint()],
    "reminder": [Continue("commit a1b2c3"), Reminder(Why.TWO_BLOCKS.value)],
    "delivery": [*WORDS],
    "answer": [
        Continue("commit a1b2c3"),
        Answer("May the old guide be removed?", "Yes, but keep its pictures.", "operator"),
    ],
    "failed-check": [
        Continue("commit a1b2c3"),
        FailedCheck("make check", "2 links are dead\nmake: *** [check] Error 1"),
    ],
    "everything": [
        Checkpoint(),
        *WORDS,
        Reminder(Why.NO_BLOCK.value),
        FailedCheck("make check", "Error 1"),
        Answer("Which branch?", "main", "operator"),
        Assignment(OBJECTIVE),
        Recover(["HEAD moved to a1b2c3"], "", ""),
    ],
}


def sent(*parts: Part, limit: int = LIMIT) -> Prompt:
    return assemble(parts, marker=MARKER, limit=limit)


@pytest.mark.parametrize("name", WORLD)
def test_every_prompt_is_its_golden_file(name: str) -> None:
    golden = GOLDEN / f"{name}.md"
    text = sent(*WORLD[name]).text
    if os.environ.get("TENUTO_GOLDEN") == "write":
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(WORLD)


@pytest.mark.parametrize("name", WORLD)
def test_every_prompt_opens_with_its_marker_and_closes_with_the_contract(name: str) -> None:
    prompt = sent(*WORLD[name])
    assert prompt.text.startswith(MARKER + "\n")
    assert prompt.text.count(MARKER) == 1
    assert blocks_in(prompt.text)[-1] == RawBlock(Kind.SIGNAL, TEMPLATE)
    assert prompt.text.endswith("\n```\n")
    assert prompt.digest == sha256(prompt.text.encode()).hexdigest()
    assert "{{" not in prompt.text


def test_riders_have_a_fixed_order_and_the_version_names_every_template() -> None:
    prompt = sent(*WORLD["everything"])
    assert [word.rsplit(".", 1)[0] for word in prompt.version.split()] == [
        name for name in NAMES if name not in ("first", "continue", "resume", "hand-over")
    ]
    assert sent(*reversed(WORLD["everything"][3:]), *WORDS, Checkpoint()).text == prompt.text


def test_the_templates_show_what_the_core_reads() -> None:
    assert blocks_in(templates()["contract"].text) == (RawBlock(Kind.SIGNAL, TEMPLATE),)
    assert blocks_in(templates()["checkpoint"].text) == (RawBlock(Kind.REPORT, REPORT_TEMPLATE),)
    assert {path.stem for path in (ROOT / "src/tenuto/prompts").glob("*.md")} == set(NAMES)


def test_a_program_that_only_echoes_its_prompt_says_nothing() -> None:
    text = sent(*WORLD["everything"]).text
    raw = [block.body for block in blocks_in(text) if block.kind is Kind.SIGNAL]
    assert read_signal(raw, prompt=text) == NoSignal(Why.NO_BLOCK)


# --- bounds -----------------------------------------------------------------------------------------


def test_messages_ride_oldest_first_to_the_limit() -> None:
    words = [Message(f"m-{n}", "operator", "now", "x" * 60_000) for n in range(8)]
    prompt = sent(Continue(), *words)
    assert prompt.carried == ("m-0", "m-1", "m-2", "m-3", "m-4")
    assert prompt.left == ("m-5", "m-6", "m-7")
    assert "(5 of 8;" in prompt.text
    assert len(prompt.text.encode()) <= LIMIT


def test_a_message_that_does_not_fit_holds_back_those_after_it() -> None:
    words = [Message("m-1", "o", "now", "x" * 9000), Message("m-2", "o", "now", "short")]
    prompt = sent(Continue(), *words, limit=4000)
    assert (prompt.carried, prompt.left) == ((), ("m-1", "m-2"))
    assert "Messages for this task" not in prompt.text
    with pytest.raises(PromptTooLarge):
        sent(*words, limit=4000)


@given(st.lists(st.text(max_size=400), max_size=12), st.integers(1500, 6000))
def test_no_prompt_is_over_its_limit_and_no_message_is_lost(bodies: list[str], limit: int) -> None:
    words = [Message(f"m-{n}", "o", "now", body) for n, body in enumerate(bodies)]
    prompt = sent(Continue(), *words, limit=limit)
    assert len(prompt.text.encode()) <= limit
    assert prompt.carried + prompt.left == tuple(word.id for word in words)


def test_what_must_stand_in_the_prompt_is_never_cut() -> None:
    with pytest.raises(PromptTooLarge):
        sent(First("x" * LIMIT))
    assert len(sent(HandOver("x" * 256 * 1024, report="y" * 32 * 1024)).text.encode()) <= LIMIT


def test_output_and_findings_are_bounded() -> None:
    text = sent(Continue(), FailedCheck("c", "a" * OUTPUT_BYTES + "the end")).text
    assert "[…] aaa" in text
    assert "the end" in text
    assert text.count("a") < OUTPUT_BYTES + 500
    text = sent(Recover([f"finding {n}" for n in range(FINDINGS + 5)])).text
    assert "- finding 19\n- and 5 more\n" in text


# --- strictness -------------------------------------------------------------------------------------


def test_values_are_never_expanded_again() -> None:
    assert "say {{objective}} and {{marker}}" in sent(First("say {{objective}} and {{marker}}")).text


def test_markers_quoted_in_values_lose_their_force() -> None:
    prompt = sent(First(f"earlier: {MARKER}"), Message("m", f"x\n{MARKER}", "now", f"see {MARKER}"))
    assert prompt.text.count("[tenuto:") == 1


def test_a_name_cannot_pass_for_a_line_of_the_prompt() -> None:
    assert "from a --- end of message m ---, now" in sent(Message("m", "a\n--- end of message m ---", "now", "b")).text


def test_odd_characters_can_be_sent() -> None:
    prompt = sent(First("a\r\nb\0c\ud800"))
    assert "a\nb\ufffdc?" in prompt.text


@pytest.mark.parametrize(
    "parts, marker",
    [
        ([], MARKER),
        ([First("a"), Continue()], MARKER),
        ([First("a")], ""),
        ([First("a")], "[tenuto:a]\n"),
        ([First("a")], "[tenuto:a b]"),
        ([First("a")], "tenuto:a"),
    ],
)
def test_parts_that_make_no_prompt(parts: list[Part], marker: str) -> None:
    with pytest.raises(PromptError):
        assemble(parts, marker=marker, limit=LIMIT)


@pytest.mark.parametrize("values", [{}, {"a": "1"}, {"a": "1", "b": "2", "c": "3"}])
def test_missing_and_unknown_names_are_errors(values: dict[str, str]) -> None:
    with pytest.raises(TemplateError):
        Template("t", 1, "{{a}} {{b}}").render(values)


@pytest.mark.parametrize("source", ["", "text\n", "version: x\n\ntext", "version: 1\ntext"])
def test_a_template_needs_its_version_line(source: str) -> None:
    with pytest.raises(TemplateError):
        parse("t", source)


# --- the skill --------------------------------------------------------------------------------------

SKILL = (ROOT / "skills/durable-continuation-output/SKILL.md").read_text("utf-8")
TOOLS = [
    *("task_status", "task_progress", "task_complete", "task_fail", "task_wait", "message_send", "message_read"),
    *("run_status", "task_spawn", "chain_next", "chain_record", "chain_handoff", "review_verdict"),
]
VERBS = [
    *(
        "up",
        "start",
        "stop",
        "restart",
        "status",
        "logs",
        "doctor",
        "token",
        "hold",
        "unhold",
        "service",
        "run",
        "follow",
    ),
    *("runs", "tasks", "show", "spawn", "pause", "resume", "continue", "cancel", "wait", "answer", "complete", "fail"),
    *("policy", "explain", "attention", "events", "top", "message", "checkpoint", "chain", "signal", "phase", "merge"),
    *("observe", "reconcile", "dispatch", "command", "lease", "window", "pool", "probe", "adopt", "mcp", "demo"),
]


def test_the_skill_shows_the_form_the_core_reads() -> None:
    assert blocks_in(SKILL) == (RawBlock(Kind.SIGNAL, TEMPLATE),)
    assert SKILL.startswith("---\nname: durable-continuation-output\ndescription: ")
    assert len(SKILL.encode()) < 4096


def test_the_skill_names_no_tool_verb_or_schedule() -> None:
    low = SKILL.lower()
    assert [name for name in TOOLS if name in low] == []
    assert re.findall(r"tenuto (?:" + "|".join(VERBS) + r")\b", low) == []
    assert re.findall(r"\btenuto[ \t]+[a-z-]+", low.replace("tenuto block", "")) == []
    assert (
        re.findall(r"\b(?:mcp|tools?|shell|cli|minutes?|hours?|seconds?|interval|schedule|cron|every \d+)\b", low) == []
    )
