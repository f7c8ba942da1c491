"""How a task is doing, as a judgement of the evidence: apart from its state, and never a reason to act by itself.

An assessment names the row of the table that decided, what decided it, and how sure that is. Resting, waiting and
running are quiet; what only a person can look into is loud.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Health(StrEnum):
    WAITING = "waiting"
    RESTING = "resting"
    STARTING = "starting"
    RUNNING = "running"
    SUSPECT = "suspect"
    RECONCILING = "reconciling"
    RECOVERING = "recovering"
    BLOCKED = "blocked"
    NEEDS_HUMAN = "needs_human"
    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


#: What stands in attention.
LOUD = frozenset({Health.NEEDS_HUMAN, Health.BLOCKED, Health.RECONCILING, Health.SUSPECT})


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Assessment:
    """The health of a task: by which row of the table, since when it has been so, and on what evidence.

    `why` is the deciding evidence in a sentence, `mend` a safe next look for whoever reads it.
    """

    value: Health
    confidence: Confidence
    row: str
    why: str
    mend: str
    since: datetime


@dataclass(frozen=True)
class Clocks:
    """Moments kept apart, because each says something else; None where nothing was seen.

    `looked` is when something outside was last looked at. A heartbeat, a repaint and traffic are no progress.
    """

    looked: datetime | None = None
    page_changed: datetime | None = None
    generating: datetime | None = None
    call_heartbeat: datetime | None = None
    job_updated: datetime | None = None
    plan_moved: datetime | None = None
    network: datetime | None = None
    progressed: datetime | None = None
