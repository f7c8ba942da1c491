"""What is printed, and where: a document for scripts, lines for pipes, tables and a little colour for terminals.

Words of others (titles, questions, details) are stripped of anything a terminal would obey before they are shown. In
a pipe nothing is coloured, shortened or drawn over; Rich is imported only when something is drawn on a terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from tenuto.surfaces.cli.exits import Failure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_COMMANDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    """`text` without control characters; line ends and tabs stay."""
    return _COMMANDING.sub("\N{REPLACEMENT CHARACTER}", str(text).replace("\r\n", "\n"))


def one_line(text: object) -> str:
    """`text` as one line."""
    return " ".join(clean(text).split())


def shortened(identifier: object) -> str:
    """An identifier in ten characters where space is scarce: the letter, and the end, which is random."""
    text = str(identifier)
    return f"{text[:2]}{text[-8:]}" if len(text) > 12 else text


class Out:
    """The two streams of one command. `as_json`: stdout carries JSON and nothing else."""

    def __init__(self, as_json: bool = False, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.as_json = as_json
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr

    @property
    def drawn(self) -> bool:
        """Whether a person looks at stdout on a terminal that can draw."""
        return not self.as_json and self._stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")

    @property
    def watched(self) -> bool:
        """Whether a person looks at stderr on a terminal that can draw: where progress may be shown."""
        return self._stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")

    def document(self, value: object) -> None:
        """One JSON document, for a script."""
        self._write(json.dumps(value, indent=2, ensure_ascii=self._stdout.isatty(), default=str))

    def item(self, value: object) -> None:
        """One JSON document on one line, of many."""
        self._write(json.dumps(value, ensure_ascii=self._stdout.isatty(), default=str))

    def line(self, text: object = "") -> None:
        """One line, or several, for a person."""
        self._write(clean(text))

    def heading(self, text: str) -> None:
        """A line that stands above others."""
        if self.drawn:
            self.console().print(_text(clean(text), "bold"), soft_wrap=True)
        else:
            self._write(clean(text))

    def note(self, text: object) -> None:
        """A line beside the answer, on stderr."""
        self._stderr.write(clean(text) + "\n")
        self._stderr.flush()

    def pairs(self, rows: Sequence[tuple[str, object]], indent: str = "") -> None:
        """Names and values in two columns; a pair whose value is None is left out."""
        shown = [(name, value) for name, value in rows if value is not None]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            lines = clean(value).splitlines() or [""]
            self._write(f"{indent}{name.ljust(width)}  {lines[0]}".rstrip())
            for more in lines[1:]:
                self._write(f"{indent}{' ' * width}  {more}".rstrip())

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Rows under headers; fitted to a terminal, whole in a pipe."""
        cells = [[one_line("" if cell is None else cell) for cell in row] for row in rows]
        if self.drawn:
            from rich.table import Table

            drawn = Table(box=None, pad_edge=False, header_style="bold")
            for number, header in enumerate(headers):
                last = number == len(headers) - 1
                drawn.add_column(header, no_wrap=not last, overflow="fold" if last else "ellipsis")
            for row in cells:
                drawn.add_row(*(_text(cell) for cell in row))
            self.console().print(drawn)
            return
        widths = [max(len(text) for text in column) for column in zip(headers, *cells, strict=True)]
        for row in [list(headers), *cells]:
            self._write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def fail(self, failure: Failure) -> None:
        """A failure: one line and its mend on stderr, and the error's shape on stdout for a script."""
        if self.as_json:
            self.document(failure.shape())
        where = f" ({failure.field})" if failure.field and failure.field not in failure.message else ""
        self.note(f"error: {one_line(failure.message)}{where}")
        if failure.mend:
            self.note(f"mend: {one_line(failure.mend)}")

    def console(self, *, on_stderr: bool = False) -> Console:
        """A Rich console on stdout or stderr, without markup, emoji or guesses about what a text means."""
        from rich.console import Console

        return Console(file=self._stderr if on_stderr else self._stdout, markup=False, emoji=False, highlight=False)

    def _write(self, text: str) -> None:
        encoding = self._stdout.encoding or "utf-8"
        self._stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        self._stdout.flush()


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style)


def moment(value: object) -> datetime | None:
    """An instant from its ISO 8601 text; None for anything else."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        told = datetime.fromisoformat(value)
    except ValueError:
        return None
    return told if told.tzinfo is not None else None


def local(value: object) -> str | None:
    """An instant in the reader's own time zone, to the second; None when there is none."""
    told = moment(value)
    return told.astimezone().isoformat(sep=" ", timespec="seconds") if told is not None else None


def span(seconds: float) -> str:
    """A duration in two units at most: 45 s, 3 min 20 s, 2 h 5 min, 4 d 3 h."""
    whole = max(0, round(seconds))
    for size, name, part, part_name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{whole} s"


def since(value: object, now: datetime) -> str | None:
    """An instant as a person tells it: its local time, and how long ago or ahead that is."""
    told = moment(value)
    if told is None:
        return None
    seconds = (now - told).total_seconds()
    apart = f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"
    return f"{local(told)} ({apart})"


def get(value: object, *names: str) -> object:
    """What lies at a path of names in nested mappings; None where it ends early."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def rows(value: object) -> list[Mapping[str, object]]:
    """The mappings of a list; an empty list for anything else."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []
