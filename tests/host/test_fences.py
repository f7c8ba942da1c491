"""Blocks picked out of a byte stream: the same blocks as in the whole text, in bounded memory, and fast."""

from __future__ import annotations

import ast
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenuto.core import signal
from tenuto.core.signal import Kind, blocks_in
from tenuto.transports.host import fences
from tenuto.transports.host.fences import FenceScanner, Found


def scan(data: bytes, *, step: int = 0, prompt: str = "") -> Found:
    scanner = FenceScanner(prompt)
    for at in range(0, len(data), step or len(data) or 1):
        scanner.feed(data[at : at + (step or len(data))])
    return scanner.finish()


def agree(text: str, found: Found) -> None:
    whole = {kind: [block.body for block in blocks_in(text) if block.kind is kind] for kind in Kind}
    assert found["signal_count"] == len(whole[Kind.SIGNAL])
    assert found["report_count"] == len(whole[Kind.REPORT])
    assert found["signals"] == whole[Kind.SIGNAL][-fences.KEPT["tenuto"] :]
    assert found["reports"] == whole[Kind.REPORT][-fences.KEPT["tenuto-report"] :]


PIECES = st.sampled_from(
    [
        *("```", "````", "~~~", "~~~~", "``", " ", "   ", "    ", "\t", "\n", "\n", "\n", "\r\n", "\r"),
        *("tenuto", "tenuto-report", "```tenuto\n", "~~~tenuto\n", "````tenuto-report\n", "\n```\n", "\n~~~\n"),
        *("status: working", "md", "é", "\u2028", "x" * 1020, "y" * 9000, "z" * 40000),
    ]
)
TEXT = st.lists(PIECES | st.text(st.characters(codec="utf-8"), max_size=5), max_size=40).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXT, st.integers(1, 300))
@example("```tenuto\n" + "y" * 70_000 + "\n```", 7)
@example("```tenuto" + " " * 1014 + "\n\n```", 1)
@example("```tenuto" + " " * 1015 + "\n\n```", 1)
@example("```tenuto\n" + "   \r\n" * 9000 + "```", 97)
@example("```tenuto\n" + "é" * 5000 + "\n```", 3)
def test_a_stream_in_any_chunks_holds_what_the_whole_text_holds(text: str, step: int) -> None:
    agree(text, scan(text.encode("utf-8"), step=step))
    agree(text, scan(text.encode("utf-8")))


@settings(deadline=None)
@given(TEXT, st.binary(max_size=30), TEXT, st.integers(1, 50))
def test_bytes_that_are_no_text_are_replaced_line_by_line(before: str, noise: bytes, after: str, step: int) -> None:
    data = before.encode() + noise + after.encode()
    agree(data.decode("utf-8", "replace"), scan(data, step=step))


@given(TEXT)
def test_a_prompt_echoed_whole_holds_nothing(prompt: str) -> None:
    found = scan(prompt.encode(), prompt=prompt)
    assert (found["signal_count"], found["report_count"]) == (0, 0)


def test_echoes_are_dropped_and_the_answer_kept() -> None:
    prompt = "Go on\n```tenuto\nstatus: a | b\nsummary: x\n```\n"
    stream = prompt.replace("\n", "\r\n") + "work\n```tenuto\nstatus: working\n```\n"
    found = scan(stream.encode(), step=5, prompt=prompt)
    assert found == {"signals": ["status: working"], "reports": [], "signal_count": 1, "report_count": 0}


def test_the_last_blocks_are_kept_and_all_are_counted() -> None:
    stream = "".join(f"```tenuto\n{n}\n```\n```tenuto-report\nr{n}\n```\n" for n in range(10))
    found = scan(stream.encode(), step=11)
    assert found["signals"] == ["6", "7", "8", "9"]
    assert found["reports"] == ["r8", "r9"]
    assert (found["signal_count"], found["report_count"]) == (10, 10)


def test_limits_and_grammar_are_those_of_the_core() -> None:
    assert {kind.value: kind.limit for kind in Kind} == fences.LIMITS
    assert fences.FENCE_LINE_BYTES == signal.FENCE_LINE_BYTES
    assert max(fences.LIMITS.values()) + 4 < fences.LINE_BYTES


def test_the_file_stands_alone() -> None:
    tree = ast.parse(Path(fences.__file__).read_text())
    roots = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert roots <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "chunk",
    [
        b"x" * 65536,
        b"```tenuto\n" + b"y" * 65526,
        b"short line of a log\n" * 3277,
        b"````\n```tenuto\nstatus: working\n```\n" * 1600,
        b"```tenuto\n" * 6500,
        b"~" * 65536,
    ],
)
def test_memory_is_bounded_whatever_the_stream_holds(chunk: bytes) -> None:
    scanner = FenceScanner()
    tracemalloc.start()
    try:
        for _ in range(40):
            scanner.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 1024 * 1024
    assert len(scanner.finish()["signals"]) <= 4


@pytest.mark.parametrize(
    "line",
    [b"2030-01-02 03:04:05 INFO compiled module `alpha` in 12 ms, nothing to report\n", b"\xff\x00\x17" * 40 + b"\n"],
)
def test_a_stream_without_fences_flows_fast(line: bytes) -> None:
    """Over 300 MB/s of processor time on an ordinary machine; the test asks for half, the best of three."""
    chunk = (line * (1024 * 1024 // len(line) + 1))[: 1024 * 1024]
    best = 0.0
    for _ in range(3):
        scanner = FenceScanner()
        began = time.process_time()
        for _ in range(64):
            scanner.feed(chunk)
        scanner.finish()
        best = max(best, 64 * len(chunk) / max(time.process_time() - began, 1e-9) / 1e6)
    assert best > 150, f"{best:.0f} MB/s"
