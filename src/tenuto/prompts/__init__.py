"""The texts that are sent to agents, each with its version.

A prompt is one main text (first, continue, recover, hand-over) or none, with riders: the assignment once more,
answers, a failed check, a reminder, waiting messages, a checkpoint request. It opens with the marker of the command
that carries it and closes with the output contract. This room decides order, bounds and what of the waiting messages
fits; it refuses to render a template with a name too many or too few. The texts are data with golden files beside
their test, so that a changed word is a deliberate change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import assert_never

OUTPUT_BYTES = 8 * 1024
"""Most of a failed check's output that is shown, in bytes; its end is kept."""

FINDINGS = 20
"""Most findings of a reconciliation that are listed; the rest are counted."""


@dataclass(frozen=True, slots=True)
class First:
    """The first turn of a task."""

    objective: str


@dataclass(frozen=True, slots=True)
class Continue:
    """An ordinary next turn in a conversation that remembers the assignment."""

    progress: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Recover:
    """The turn after one whose end was not seen; `findings` are sentences of the reconciliation."""

    findings: Sequence[str]
    progress: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """The turn after one that a limit, or a service that did not answer, stopped; `why` is a sentence."""

    why: str
    progress: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class HandOver:
    """The first turn of a fresh conversation for a task that another one held."""

    objective: str
    progress: str = ""
    next_step: str = ""
    report: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The objective once more, for an agent that remembers nothing between turns."""

    objective: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to something the agent waited for."""

    question: str
    answer: str
    sender: str


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """An acceptance check that did not hold after a claim of completion."""

    check: str
    output: str = ""


@dataclass(frozen=True, slots=True)
class Reminder:
    """The last turn gave no signal; `why` is the operator's sentence without a full stop."""

    why: str


@dataclass(frozen=True, slots=True)
class Message:
    """One waiting message; `sent_at` is shown as it stands."""

    id: str
    sender: str
    sent_at: str
    body: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A request for a structured status report."""


Main = First | Continue | Recover | Resume | HandOver
Rider = Assignment | Answer | FailedCheck | Reminder | Message | Checkpoint
Part = Main | Rider


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text ready to be sent.

    `digest` is the sha256 of its UTF-8 in hex; `version` names every template used, as `name.version`;
    `carried` and `left` are ids of messages that ride and that did not fit, oldest first.
    """

    text: str
    digest: str
    version: str
    carried: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class PromptError(ValueError):
    """The parts cannot be made into one prompt."""


class PromptTooLarge(PromptError):
    """The prompt would be larger than the limit even without any message."""


class TemplateError(ValueError):
    """A template and the values for it do not fit together."""


# --- templates --------------------------------------------------------------------------------------

NAMES = (
    *("first", "continue", "recover", "resume", "hand-over"),
    *("assignment", "answer", "failed-check", "reminder", "delivery", "message", "checkpoint", "contract"),
)
"""Every template of this room, in the order in which they stand in a prompt."""

_SLOT = re.compile(r"\{\{([^{}]*)\}\}")
_VERSION = re.compile(r"version: (\d{1,4})\n\n")


@dataclass(frozen=True, slots=True)
class Template:
    """A named text with `{{slots}}`, and the version its first line gives."""

    name: str
    version: int
    text: str

    def render(self, values: Mapping[str, str]) -> str:
        """Fill every slot once; values are taken as they stand. Raises TemplateError unless names match exactly."""
        slots = set(_SLOT.findall(self.text))
        if slots != set(values):
            raise TemplateError(f"{self.name}: slots {sorted(slots)} and values {sorted(values)} differ")
        return _SLOT.sub(lambda slot: values[slot[1]], self.text)


def parse(name: str, source: str) -> Template:
    """A template from its file's text. Raises TemplateError when the version line is missing."""
    head = _VERSION.match(source)
    if head is None:
        raise TemplateError(f"{name}: the first line must be a version line, followed by an empty one")
    return Template(name, int(head[1]), source[head.end() :].rstrip("\n"))


@cache
def templates() -> Mapping[str, Template]:
    """Every template by name, read once from the package's data."""
    return {name: parse(name, files(__name__).joinpath(f"{name}.md").read_text("utf-8")) for name in NAMES}


# --- values -----------------------------------------------------------------------------------------

_NOTHING = "(none recorded)"
_MARKER = re.compile(r"\[tenuto:[A-Za-z0-9._:-]{1,128}\]")


def _clean(value: str) -> str:
    """A value fit to stand in a prompt: LF line ends, no lone surrogates or NULs, and nobody else's marker.

    A marker proves which command a turn came from, so a quoted one is made unreadable as such.
    """
    value = value.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").replace("\0", "\ufffd")
    return value.replace("[tenuto:", "[tenuto :").strip("\n") or _NOTHING


def _line(value: str) -> str:
    """The same on one line, so that a name cannot pass for a heading."""
    return " ".join(_clean(value).split()) or _NOTHING


def _end(text: str, most: int) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= most else "[…] " + raw[-most:].decode("utf-8", "ignore")


def _list(sentences: Sequence[str]) -> str:
    shown = [f"- {_line(sentence)}" for sentence in sentences[:FINDINGS]]
    if len(sentences) > FINDINGS:
        shown.append(f"- and {len(sentences) - FINDINGS} more")
    return "\n".join(shown)


# --- assembling -------------------------------------------------------------------------------------


def _values(part: Part) -> tuple[str, dict[str, str]]:
    """A part's template and the values that fill it."""
    match part:
        case First(objective):
            return "first", {"objective": _clean(objective)}
        case Continue(progress, next_step):
            return "continue", {"progress": _clean(progress), "next_step": _clean(next_step)}
        case Recover(findings, progress, next_step):
            told = {"findings": _clean(_list(findings))}
            return "recover", told | {"progress": _clean(progress), "next_step": _clean(next_step)}
        case Resume(why, progress, next_step):
            told = {"why": _line(why), "progress": _clean(progress), "next_step": _clean(next_step)}
            return "resume", told
        case HandOver(objective, progress, next_step, report):
            told = {"objective": _clean(objective), "report": _clean(report)}
            return "hand-over", told | {"progress": _clean(progress), "next_step": _clean(next_step)}
        case Assignment(objective):
            return "assignment", {"objective": _clean(objective)}
        case Answer(question, answer, sender):
            return "answer", {"question": _clean(question), "answer": _clean(answer), "sender": _line(sender)}
        case FailedCheck(check, output):
            return "failed-check", {"check": _line(check), "output": _clean(_end(output, OUTPUT_BYTES))}
        case Reminder(why):
            return "reminder", {"why": _line(why)}
        case Message(id_, sender, sent_at, body):
            head = {"id": _line(id_), "sender": _line(sender), "sent_at": _line(sent_at)}
            return "message", head | {"body": _clean(body)}
        case Checkpoint():
            return "checkpoint", {}
        case other:
            assert_never(other)


def _size(sections: Sequence[str]) -> int:
    return sum(len(section.encode("utf-8")) + 2 for section in sections)


def _riding(messages: Sequence[Message], room: int) -> tuple[list[str], tuple[str, ...]]:
    """The sections of the messages that fit into `room` bytes, oldest first, and the ids left waiting."""
    known = templates()

    def preamble(shown: int) -> str:
        return known["delivery"].render({"shown": str(shown), "waiting": str(len(messages))})

    room -= _size([preamble(len(messages))])
    sections: list[str] = []
    for message in messages:
        name, values = _values(message)
        section = known[name].render(values)
        room -= _size([section])
        if room < 0:
            break
        sections.append(section)
    left = tuple(message.id for message in messages[len(sections) :])
    return [preamble(len(sections)), *sections] if sections else [], left


def assemble(parts: Sequence[Part], *, marker: str, limit: int) -> Prompt:
    """One prompt of at most `limit` bytes from its parts.

    At most one part may be a main one; the order of the parts counts only among those of one kind, and messages are
    given oldest first. Messages ride as long as they fit; the first that does not holds back those after it. Raises
    PromptError for parts or a marker that make no prompt, PromptTooLarge when everything but messages exceeds `limit`
    or when nothing but messages was given and not one fits.
    """
    if not _MARKER.fullmatch(marker):
        raise PromptError("a marker is one line of the form [tenuto:<command id>]")
    if not parts:
        raise PromptError("a prompt needs at least one part")
    if sum(isinstance(part, Main) for part in parts) > 1:
        raise PromptError("a prompt has at most one main part")
    messages = [part for part in parts if isinstance(part, Message)]
    others = sorted(
        (_values(part) for part in parts if not isinstance(part, Message)), key=lambda told: NAMES.index(told[0])
    )
    known = templates()
    closing = known["contract"].render({})
    before = [known[name].render(values) for name, values in others if name != "checkpoint"]
    after = [known[name].render(values) for name, values in others if name == "checkpoint"][:1]
    room = limit - _size([marker, *before, *after, closing])
    if room < 0:
        raise PromptTooLarge(f"the prompt is {-room} bytes over its limit of {limit}")
    riding, left = _riding(messages, room) if messages else ([], ())
    if not (before or riding or after):
        raise PromptTooLarge(f"no message fits into a prompt of {limit} bytes")
    used = [name for name in NAMES if any(name == told for told, _ in others)]
    used += ["delivery", "message"] if riding else []
    text = "\n\n".join([marker, *before, *riding, *after, closing]) + "\n"
    return Prompt(
        text=text,
        digest=sha256(text.encode("utf-8")).hexdigest(),
        version=" ".join(f"{name}.{known[name].version}" for name in NAMES if name in {*used, "contract"}),
        carried=tuple(message.id for message in messages[: len(messages) - len(left)]),
        left=left,
    )
