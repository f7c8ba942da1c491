"""What is seen of a page from outside of it: by a browser's DevTools, or in the accessibility tree of its window.

Coarse facts and moments only: whether it is shown, whether it generates, whether it could send, what is under way on
its lines. No word of it, no body and no header of anything it asks for. Rank 3: it holds a send back and never
authorises one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenuto.model.tools import Defect, ToolBinding


@dataclass(frozen=True)
class WatchedFacts:
    """A page that is watched for a task, now.

    `shown` is None where nobody could be asked, False where no window shows it; then the rest says nothing. `window` is
    the one that shows it. `generating` and `send_ready` are None where that cannot be told. `requests` counts what is
    under way on its lines, `streams` those of them that stay open (streams of events, sockets); None where the lines
    cannot be seen, or where some may have begun before anybody looked. `changed_at` is when it was first seen to differ
    from before, `heard_at` when anything last came in.
    """

    binding: ToolBinding
    shown: bool | None
    window: str | None = None
    generating: bool | None = None
    send_ready: bool | None = None
    requests: int | None = None
    streams: int | None = None
    changed_at: datetime | None = None
    heard_at: datetime | None = None
    defects: tuple[Defect, ...] = ()

    @property
    def subject(self) -> str:
        return self.binding.subject


@dataclass(frozen=True)
class ShownPage:
    """A page that a witness sees: in which window, of which program and process (None: not told), at which address."""

    witness: str
    window: str
    url: str
    program: str | None = None
    pid: int | None = None
