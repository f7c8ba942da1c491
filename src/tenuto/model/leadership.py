"""The supervisor lease, apart from everything else that a registry holds.

Whoever only asks how the supervisor stands needs this noun and none of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Leadership:
    """The supervisor lease: which process decides, and until when. `epoch` grows with every new holder."""

    epoch: int
    owner: str
    host: str
    pid: int
    started: str
    boot_id: str
    address: str
    taken_at: datetime
    renewed_at: datetime
    expires_at: datetime
    stop_asked_at: datetime | None = None
    released_at: datetime | None = None
