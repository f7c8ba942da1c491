"""The output blocks of a program, picked out of its byte stream as it flows by.

Decides which bytes of a stream stand between `tenuto` or `tenuto-report` fences and keeps the last few
of them, cut short. It reads no meaning into them: counting, statuses and needs belong to the supervisor.
Memory is bounded whatever the stream holds. This file stands alone on the standard library, because the
process that runs it does; the grammar is the one of `core/signal.py`, and a property test compares both.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple, TypedDict

LIMITS = {"tenuto": 8 * 1024, "tenuto-report": 32 * 1024}
"""Largest readable body per kind in bytes; one byte more is kept, so that over-size is seen."""

KEPT = {"tenuto": 4, "tenuto-report": 2}
"""How many of the last blocks of a kind are kept; all are counted."""

LINE_BYTES = 64 * 1024
"""Most of one line that is ever held."""

FENCE_LINE_BYTES = 1024
"""A line longer than this is never a fence."""

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*(.*?)[ \t\r]*", re.DOTALL)


class Found(TypedDict):
    """What a stream held: the bodies kept (oldest first) and how many there were, echoes not counted."""

    signals: list[str]
    reports: list[str]
    signal_count: int
    report_count: int


class _Fence(NamedTuple):
    indent: int
    char: str
    length: int
    info: str

    def closes(self, opened: _Fence) -> bool:
        return not self.info and self.char == opened.char and self.length >= opened.length

    def outranks(self, opened: _Fence) -> bool:
        return bool(self.info) and self.char == opened.char and self.length >= opened.length


def _fence(line: bytes) -> _Fence | None:
    text = line.decode("utf-8", "replace")
    if len(text.encode("utf-8")) > FENCE_LINE_BYTES:
        return None
    found = _FENCE.fullmatch(text)
    if found is None:
        return None
    indent, ticks, info = found.groups()
    if ticks[0] in info:
        return None
    return _Fence(len(indent), ticks[0], len(ticks), info)


def _same(body: str) -> str:
    return "\n".join(line.rstrip() for line in body.strip().split("\n"))


class _Kept:
    """The last blocks of each kind and the number of all of them."""

    def __init__(self) -> None:
        self.last = {kind: deque[str](maxlen=most) for kind, most in KEPT.items()}
        self.count = dict.fromkeys(KEPT, 0)

    def add(self, kind: str, body: str) -> None:
        self.last[kind].append(body)
        self.count[kind] += 1

    def absorb(self, other: _Kept) -> None:
        for kind in KEPT:
            self.last[kind].extend(other.last[kind])
            self.count[kind] += other.count[kind]
        other.clear()

    def clear(self) -> None:
        for kind in KEPT:
            self.last[kind].clear()
            self.count[kind] = 0


class _Body:
    """The lines of the block being read, up to one byte over its kind's limit."""

    def __init__(self, fence: _Fence) -> None:
        self.fence = fence
        self._kept = bytearray()
        self._most = LIMITS[fence.info] + 1
        self._lines = 0

    @property
    def full(self) -> bool:
        """Whether nothing more can be kept."""
        return len(self._kept) >= self._most

    def add(self, lines: bytes) -> None:
        """Take whole lines without the last one's line end."""
        for raw in lines.split(b"\n"):
            if self.full:
                return
            if self._lines:
                self._kept += b"\n"
            self._lines += 1
            spaces = len(raw) - len(raw.lstrip(b" "))
            line = raw[min(spaces, self.fence.indent) :].rstrip(b"\r")
            self._kept += line.decode("utf-8", "replace").encode("utf-8")

    def text(self) -> str:
        return bytes(self._kept[: self._most]).decode("utf-8", "replace")


class FenceScanner:
    """Feed the stream in chunks of any size, then ask once for what it held.

    `prompt` is what the program was given: blocks that stand in it are echoes and are dropped.
    """

    def __init__(self, prompt: str = "") -> None:
        self._echoes: frozenset[tuple[str, str]] = frozenset()
        self._found = _Kept()
        self._quoted = _Kept()
        self._outer: _Fence | None = None
        self._inner: _Body | None = None
        self._tail = b""
        self._skipping = False
        if prompt:
            self._echoes = _echoes_of(prompt)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        if self._skipping:
            end = chunk.find(b"\n")
            if end < 0:
                return
            chunk = chunk[end + 1 :]
            self._skipping = False
        data = self._tail + chunk if self._tail else chunk
        whole = data.rfind(b"\n") + 1
        if whole:
            self._lines(data, whole)
        self._hold(data[whole:])

    def finish(self) -> Found:
        """End the stream; its last line counts without a line end."""
        if self._tail:
            tail, self._tail = self._tail + b"\n", b""
            self._lines(tail, len(tail))
        self._found.absorb(self._quoted)  # the fence around them was never closed
        last, count = self._found.last, self._found.count
        return {
            "signals": list(last["tenuto"]),
            "reports": list(last["tenuto-report"]),
            "signal_count": count["tenuto"],
            "report_count": count["tenuto-report"],
        }

    def _hold(self, tail: bytes) -> None:
        """Keep an unfinished line, or as much of it as could ever matter."""
        most = LINE_BYTES if self._inner is not None else FENCE_LINE_BYTES + 1  # its end may be "\r"
        if len(tail) <= most:
            self._tail = tail
            return
        if self._inner is not None:
            self._inner.add(tail[:LINE_BYTES])
        self._tail = b""
        self._skipping = True

    def _lines(self, data: bytes, whole: int) -> None:
        """Read data[:whole], which is whole lines, going from one possible fence to the next."""
        at = 0
        ticks = tildes = -2  # -2: look again; otherwise the place found, `whole` when there is none
        while at < whole:
            if ticks < at:
                ticks = _next(data, b"```", at, whole)
            if tildes < at:
                tildes = _next(data, b"~~~", at, whole)
            hit = min(ticks, tildes)
            if hit >= whole:
                self._plain(data, at, whole)
                return
            start = data.rfind(b"\n", at, hit) + 1 or at
            end = data.find(b"\n", hit)
            self._plain(data, at, start)
            at = end + 1
            fence = _fence(data[start:end]) if hit - start <= 3 and end - start <= FENCE_LINE_BYTES else None
            if fence is None:
                self._plain(data, start, at)
            else:
                self._at_fence(fence, data[start:end])

    def _plain(self, data: bytes, start: int, stop: int) -> None:
        if self._inner is not None and stop > start and not self._inner.full:
            self._inner.add(data[start : stop - 1])

    def _at_fence(self, fence: _Fence, line: bytes) -> None:
        inner, outer = self._inner, self._outer
        if outer is not None and fence.closes(outer):
            self._inner = self._outer = None
            self._quoted.clear()
        elif inner is not None:
            if fence.closes(inner.fence):
                self._inner = None
                self._keep(inner)
            else:
                inner.add(line)
        else:
            if outer is not None and fence.outranks(outer):
                outer = self._outer = None
                self._found.absorb(self._quoted)
            if fence.info in LIMITS:
                self._inner = _Body(fence)
            elif outer is None:
                self._outer = fence

    def _keep(self, body: _Body) -> None:
        kind, text = body.fence.info, body.text()
        if (kind, _same(text)) not in self._echoes:
            (self._found if self._outer is None else self._quoted).add(kind, text)


def _next(data: bytes, sign: bytes, start: int, stop: int) -> int:
    at = data.find(sign, start, stop)
    return stop if at < 0 else at


class _Collector(FenceScanner):
    """A scanner that remembers every block, for the one text that is bounded: the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.all: set[tuple[str, str]] = set()

    def _keep(self, body: _Body) -> None:
        self.all.add((body.fence.info, _same(body.text())))


def _echoes_of(prompt: str) -> frozenset[tuple[str, str]]:
    collector = _Collector()
    collector.feed(prompt.encode("utf-8", "replace"))
    collector.finish()
    return frozenset(collector.all)
