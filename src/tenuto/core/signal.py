"""What an agent said at the end of its turn, read from fenced blocks.

Decides whether a turn carries exactly one readable `tenuto` block, and what that block means; reads
the `tenuto-report` block that answers a checkpoint in the same way. It refuses to guess: no block, two
blocks or a block that cannot be read is `NoSignal` with a reason an operator can act on, never a
repaired signal. A signal is a claim. Whether the claim holds is decided elsewhere.

The fence grammar is written a second time for the process that runs programs, which cannot import this
package (`transports/host/fences.py`); one property test feeds the same text to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import assert_never

SIGNAL_BYTES = 8 * 1024
"""Largest readable `tenuto` block, in bytes of UTF-8 between its fences."""

REPORT_BYTES = 32 * 1024
"""Largest readable `tenuto-report` block, in bytes of UTF-8 between its fences."""

FENCE_LINE_BYTES = 1024
"""A line longer than this, in bytes, is never a fence."""

TEMPLATE = """\
status: working | complete | blocked
summary: one line
progress: what is durable now (commit, file, issue)
next: the one next step
needs: what is missing and from whom (with blocked)
evidence: a reference that proves completion (with complete)"""
"""The literal signal template as every prompt shows it. A block equal to it says nothing."""

REPORT_TEMPLATE = """\
commits: what was committed since the last report
completed: what is done
current: what is being worked on
remaining: what is left
blockers: what stands in the way
risks: what may go wrong
cross-task: what other tasks should know"""
"""The literal report template as the checkpoint prompt shows it."""


class Kind(Enum):
    """The two fences that are read; the value is the fence's info string."""

    SIGNAL = "tenuto"
    REPORT = "tenuto-report"

    @property
    def limit(self) -> int:
        """Largest readable body in bytes."""
        return SIGNAL_BYTES if self is Kind.SIGNAL else REPORT_BYTES


@dataclass(frozen=True, slots=True)
class RawBlock:
    """One closed fence: its kind and the text between, cut one byte after the kind's limit."""

    kind: Kind
    body: str


# --- fences -----------------------------------------------------------------------------------------

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*(.*?)[ \t\r]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Fence:
    indent: int
    char: str
    length: int
    info: str

    def closes(self, opened: _Fence) -> bool:
        return not self.info and self.char == opened.char and self.length >= opened.length

    def outranks(self, opened: _Fence) -> bool:
        """An opening that could not stand inside `opened`, so `opened` was never closed."""
        return bool(self.info) and self.char == opened.char and self.length >= opened.length


def _fence(line: str) -> _Fence | None:
    if not line.lstrip(" ").startswith(("```", "~~~")) or len(line.encode("utf-8", "replace")) > FENCE_LINE_BYTES:
        return None
    found = _FENCE.fullmatch(line)
    if found is None:
        return None
    indent, ticks, info = found.groups()
    if ticks[0] in info:  # "```x```" is inline code; "~~~ ~~~" is an ornament
        return None
    return _Fence(len(indent), ticks[0], len(ticks), info)


def _kind(fence: _Fence) -> Kind | None:
    match fence.info:
        case Kind.SIGNAL.value:
            return Kind.SIGNAL
        case Kind.REPORT.value:
            return Kind.REPORT
        case _:
            return None


def _unindent(line: str, most: int) -> str:
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, most) :].rstrip("\r")


def _cut(lines: Iterable[str], limit: int) -> str:
    whole = "\n".join(lines).encode("utf-8", "replace")
    return whole[: limit + 1].decode("utf-8", "replace")


def blocks_in(text: str) -> tuple[RawBlock, ...]:
    """Every closed `tenuto` and `tenuto-report` fence of `text`, in order of their ends.

    A fence may be indented by up to three spaces, longer than three characters, made of backticks or
    tildes, and end its lines with CRLF. A fence that is never closed is no block. A block quoted inside
    another closed fence (a longer one, or one of the other character) is a quotation, not a block.
    """
    standing, _ = _scan(text)
    return tuple(standing)


def _scan(text: str) -> tuple[list[RawBlock], list[RawBlock]]:
    """The blocks that stand in a text, and those that are only quoted in it."""
    standing: list[RawBlock] = []
    quotations: list[RawBlock] = []
    doubtful: list[RawBlock] = []  # inside an outer fence that may yet prove to be a stray one
    outer: _Fence | None = None
    inner: _Fence | None = None
    kind = Kind.SIGNAL
    body: list[str] = []
    for line in text.split("\n"):
        fence = _fence(line)
        if fence is None:
            if inner is not None:
                body.append(_unindent(line, inner.indent))
        elif outer is not None and fence.closes(outer):
            outer = inner = None
            quotations += doubtful
            doubtful.clear()
        elif inner is not None:
            if fence.closes(inner):
                inner = None
                (standing if outer is None else doubtful).append(RawBlock(kind, _cut(body, kind.limit)))
            else:
                body.append(_unindent(line, inner.indent))
        else:
            if outer is not None and fence.outranks(outer):
                outer = None
                standing += doubtful
                doubtful.clear()
            opened = _kind(fence)
            if opened is not None:
                inner, kind, body = fence, opened, []
            elif outer is None:
                outer = fence
    return [*standing, *doubtful], quotations


def _same(body: str) -> str:
    """A body with the differences removed that a terminal's echo may add."""
    return "\n".join(line.rstrip() for line in body.strip().split("\n"))


# --- what a turn said -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HumanNeed:
    """Something only a person can give; the agent's own words are the question."""

    question: str


@dataclass(frozen=True, slots=True)
class TaskNeed:
    """Another task's end, written `task:<id>`."""

    task_id: str


@dataclass(frozen=True, slots=True)
class PathNeed:
    """A file or directory's appearance, written `path:<path>`; relative to the task's directory."""

    path: str


@dataclass(frozen=True, slots=True)
class CommitNeed:
    """A change's merge, written `merged:<ref> into <branch>`."""

    ref: str
    into: str


@dataclass(frozen=True, slots=True)
class TimeNeed:
    """A moment, written `until:<ISO instant with offset>`; kept in UTC."""

    at: datetime


Need = HumanNeed | TaskNeed | PathNeed | CommitNeed | TimeNeed


@dataclass(frozen=True, slots=True)
class Working:
    """There is more to do and nothing in the way."""

    summary: str
    progress: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class Complete:
    """The agent claims that the task is done, and names what proves it."""

    summary: str
    evidence: str
    progress: str = ""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The agent cannot go on; `needs` is `asked` as far as it can be read by machine."""

    summary: str
    needs: Need
    asked: str
    progress: str = ""
    next: str = ""


Signal = Working | Complete | Blocked


class Why(Enum):
    """Why a turn gave no signal; the value is the sentence shown to the operator."""

    NO_BLOCK = "the turn ended without a tenuto block"
    TWO_BLOCKS = "the turn ended with more than one tenuto block"
    TOO_LARGE = f"the tenuto block is larger than {SIGNAL_BYTES // 1024} KiB"
    UNREADABLE_LINE = "a line of the tenuto block cannot be read"
    DUPLICATE_KEY = "the tenuto block says the same thing twice"
    UNKNOWN_STATUS = "the tenuto block has no known status"
    MISSING_NEEDS = "the tenuto block says blocked without saying what it needs"
    MISSING_EVIDENCE = "the tenuto block says complete without naming evidence"
    KILLED = "the program was killed by a signal, so its tenuto block is ignored"
    FAILED_EXIT = "the program claims to be complete but ended with a failure"


@dataclass(frozen=True, slots=True)
class NoSignal:
    """The turn says nothing that may be acted upon; `detail` is the offending piece, cut short."""

    why: Why
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The reason as shown to the operator."""
        return f"{self.why.value}: {self.detail}" if self.detail else self.why.value


@dataclass(frozen=True, slots=True)
class Report:
    """A checkpoint's answer; each field is a list of lines, empty when the agent has nothing to say."""

    commits: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    current: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    cross_task: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The report as (name, value) pairs in the template's order, one pair per line; for storing."""
        return tuple((key, line) for key in _REPORT_KEYS for line in getattr(self, key.replace("-", "_")))


class WhyNoReport(Enum):
    """Why a turn holds no report; the value is the sentence shown to the operator."""

    NO_BLOCK = "the turn ended without a tenuto-report block"
    TWO_BLOCKS = "the turn ended with more than one tenuto-report block"
    TOO_LARGE = f"the tenuto-report block is larger than {REPORT_BYTES // 1024} KiB"
    UNREADABLE_LINE = "a line of the tenuto-report block cannot be read"
    DUPLICATE_KEY = "the tenuto-report block says the same thing twice"
    EMPTY = "the tenuto-report block says nothing"


@dataclass(frozen=True, slots=True)
class NoReport:
    """The turn holds no readable report; `detail` is the offending piece, cut short."""

    why: WhyNoReport
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The reason as shown to the operator."""
        return f"{self.why.value}: {self.detail}" if self.detail else self.why.value


# --- reading lines ----------------------------------------------------------------------------------

_LINE = re.compile(r"([A-Za-z][A-Za-z_-]{0,31})[ \t]*:(?:[ \t]+(.*))?")
_BULLET = re.compile(r"[-*][ \t]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MENU = "working | complete | blocked"
_DETAIL_CHARS = 80


@dataclass(frozen=True, slots=True)
class _BadLine:
    line: str


@dataclass(frozen=True, slots=True)
class _Twice:
    key: str


def _fields(body: str) -> dict[str, str] | _BadLine | _Twice:
    """The `key: value` lines of a block; indented lines and list items continue the value before them."""
    values: dict[str, list[str]] = {}
    last: list[str] | None = None
    for raw in body.split("\n"):
        line = _CONTROL.sub("", raw)
        if not line.strip():
            continue
        if last is not None and (line[0] in " \t" or _BULLET.match(line)):
            last.append(line.strip())
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            return _BadLine(_short(line))
        key = found[1].lower().replace("_", "-")
        if key in values:
            return _Twice(key)
        last = values[key] = [(found[2] or "").strip()]
    return {key: "\n".join(lines).strip() for key, lines in values.items()}


def _short(text: str) -> str:
    text = " ".join(_CONTROL.sub(" ", text).split())
    return text if len(text) <= _DETAIL_CHARS else text[: _DETAIL_CHARS - 1] + "…"


def _too_large(body: str, kind: Kind) -> bool:
    return len(body.encode("utf-8", "replace")) > kind.limit


def _is_menu(body: str) -> bool:
    """The template in any dress: its status line still offers the choice."""
    fields = _fields(body)
    return isinstance(fields, dict) and fields.get("status", "").split("#")[0].strip() == _MENU


def _meant(raw: Sequence[str], kind: Kind, template: str, prompt: str) -> list[str]:
    """The bodies that are neither an echo of the prompt nor the literal template."""
    standing, quoted = _scan(prompt)
    known = {_same(block.body) for block in (*standing, *quoted) if block.kind is kind}
    known.add(_same(template))
    return [body for body in raw if _same(body) not in known]


def read_signal(raw: Sequence[str], *, prompt: str) -> Signal | NoSignal:
    """What the turn's `tenuto` bodies say; `raw` holds the text between the fences, `prompt` what was sent.

    Bodies that stand in the prompt and the literal template are discarded first; of what is left
    exactly one must remain. Keys that are not known are passed over.
    """
    meant = [body for body in _meant(raw, Kind.SIGNAL, TEMPLATE, prompt) if not _is_menu(body)]
    if not meant:
        return NoSignal(Why.NO_BLOCK)
    if len(meant) > 1:
        return NoSignal(Why.TWO_BLOCKS)
    (body,) = meant
    if _too_large(body, Kind.SIGNAL):
        return NoSignal(Why.TOO_LARGE)
    match _fields(body):
        case _BadLine(line):
            return NoSignal(Why.UNREADABLE_LINE, line)
        case _Twice(key):
            return NoSignal(Why.DUPLICATE_KEY, key)
        case dict() as fields:
            return _signal(fields)
        case other:
            assert_never(other)


def _signal(fields: dict[str, str]) -> Signal | NoSignal:
    summary, progress, following = (fields.get(key, "") for key in ("summary", "progress", "next"))
    match fields.get("status", "").lower():
        case "working":
            return Working(summary, progress, following)
        case "complete":
            evidence = fields.get("evidence", "")
            return Complete(summary, evidence, progress) if evidence else NoSignal(Why.MISSING_EVIDENCE)
        case "blocked":
            asked = fields.get("needs", "")
            if not asked:
                return NoSignal(Why.MISSING_NEEDS)
            return Blocked(summary, needs_of(asked), asked, progress, following)
        case unknown:
            return NoSignal(Why.UNKNOWN_STATUS, _short(unknown))


# --- needs ------------------------------------------------------------------------------------------

_TASK = re.compile(r"task:([A-Za-z0-9][A-Za-z0-9._-]{0,127})")
_PATH = re.compile(r"path:([^\s\x00-\x1f][^\x00-\x1f]{0,4095})")
_REF = r"[A-Za-z0-9_#][A-Za-z0-9_#./+@-]{0,254}"
_MERGED = re.compile(rf"merged:({_REF})[ \t]+into[ \t]+({_REF})")
_UNTIL = re.compile(r"until:(\S{1,64})")


def needs_of(text: str) -> Need:
    """What a `needs` value asks for; whatever is not exactly a machine form is a question to a person."""
    text = text.strip()
    if found := _TASK.fullmatch(text):
        return TaskNeed(found[1])
    if found := _PATH.fullmatch(text):
        return PathNeed(found[1])
    if (found := _MERGED.fullmatch(text)) and ".." not in found[1] + found[2]:
        return CommitNeed(found[1], found[2])
    if (found := _UNTIL.fullmatch(text)) and (at := _instant(found[1])):
        return TimeNeed(at)
    return HumanNeed(text)


def _instant(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


# --- reports ----------------------------------------------------------------------------------------

_REPORT_KEYS = ("commits", "completed", "current", "remaining", "blockers", "risks", "cross-task")
_NOTHING = frozenset({"", "-", "none", "none.", "n/a", "nothing"})


def _items(value: str, *, commas: bool = False) -> tuple[str, ...]:
    lines = [_BULLET.sub("", line, count=1) for line in value.split("\n")]
    if commas:
        lines = [piece for line in lines for piece in line.split(",")]
    return tuple(line.strip() for line in lines if line.strip().lower() not in _NOTHING)


def read_report(raw: Sequence[str], *, prompt: str = "") -> Report | NoReport:
    """What the turn's `tenuto-report` bodies say; the same rules as for signals, 32 KiB at most."""
    meant = _meant(raw, Kind.REPORT, REPORT_TEMPLATE, prompt)
    if not meant:
        return NoReport(WhyNoReport.NO_BLOCK)
    if len(meant) > 1:
        return NoReport(WhyNoReport.TWO_BLOCKS)
    (body,) = meant
    if _too_large(body, Kind.REPORT):
        return NoReport(WhyNoReport.TOO_LARGE)
    match _fields(body):
        case _BadLine(line):
            return NoReport(WhyNoReport.UNREADABLE_LINE, line)
        case _Twice(key):
            return NoReport(WhyNoReport.DUPLICATE_KEY, key)
        case dict() as fields:
            if not any(fields.get(key) for key in _REPORT_KEYS):
                return NoReport(WhyNoReport.EMPTY)
            items = {key.replace("-", "_"): _items(fields.get(key, "")) for key in _REPORT_KEYS[1:]}
            return Report(commits=_items(fields.get("commits", ""), commas=True), **items)
        case other:
            assert_never(other)


# --- how the program ended --------------------------------------------------------------------------


def effective(signal: Signal | NoSignal, exit_code: int | None, signalled: bool) -> Signal | NoSignal:
    """The signal as far as the program's end lets it count.

    `exit_code` is None where the turn had no process of its own. A negative code is a kill, as
    `signalled` is: the block is ignored. Any other failure refuses only the claim of completion.
    """
    if signalled or (exit_code is not None and exit_code < 0):
        return NoSignal(Why.KILLED)
    if exit_code and isinstance(signal, Complete):
        return NoSignal(Why.FAILED_EXIT, f"exit code {exit_code}")
    return signal
