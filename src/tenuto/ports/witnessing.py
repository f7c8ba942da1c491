"""What is looked at and never changed: workspaces, tool servers, pages, the records of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tenuto.model.evidence import Observation
from tenuto.model.session import SessionFacts
from tenuto.model.tools import ToolBinding, ToolFacts
from tenuto.model.watched import ShownPage
from tenuto.model.work import Acceptance, Wait


class Sessions(Protocol):
    """The sessions that agent programs keep on the disk, by their own records. Only names are read."""

    def listed(self, adapter: str, cwd: str | None) -> tuple[SessionFacts, ...]:
        """Those of a program, the newest first; of one directory where it is named."""
        ...

    def found(self, adapter: str, session: str) -> SessionFacts | None:
        """One session by its whole name."""
        ...


class Workspace(Protocol):
    """Looks at a task's directory, read only."""

    async def look(self, cwd: str, since: str | None, *, plain: bool) -> Observation:
        """WorkspaceFacts; `since` is a commit to count new ones from.

        A directory outside git is read through only when `plain` says so; otherwise its cursor stays unmeasured.
        """
        ...

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        """AcceptanceFacts for a FILE or COMMIT acceptance."""
        ...

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        """Whether a PATH or COMMIT wait has come true; None when it cannot be told."""
        ...


class ToolWitness(Protocol):
    """Looks at sessions of tool servers, read only."""

    async def look(self, binding: ToolBinding, cwd: str) -> Observation:
        """ToolFacts of one session; whatever is wrong with it is a defect in them."""
        ...

    async def sessions(self, cwd: str | None = None) -> tuple[ToolFacts, ...]:
        """Every session of every server that is known (those of the workspace too, where one is given)."""
        ...


class PageWitness(Protocol):
    """Looks at pages from outside of them, read only."""

    async def look(self, binding: ToolBinding) -> Observation:
        """WatchedFacts of one page; whatever is wrong is a defect in them."""
        ...

    async def shown(self) -> tuple[ShownPage, ...]:
        """Every page that is seen now, for a person to choose from; raises Mistake where nobody can be asked."""
        ...


Observations = Sequence[Observation]
