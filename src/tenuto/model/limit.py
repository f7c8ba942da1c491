"""A usage limit of an account, as it is kept: what the program said, and when its tasks go on.

A limit is the account's and not a task's: whoever works with that account and model waits for it. It stands until a
turn has gone through, or an operator lifts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from tenuto.model.ids import LimitId, TaskId


@dataclass(frozen=True)
class Quiet:
    """Hours of the day in which no turn is made by itself after a limit; over midnight where `begins` is the later.

    `zone` None: the one of the machine that decides.
    """

    begins: time
    ends: time
    zone: tzinfo | None

    def until(self, now: datetime) -> datetime | None:
        """When the quiet hours that `now` lies in end (UTC offset of their zone); None outside of them."""
        local = now.astimezone(self.zone)
        clock = local.time().replace(tzinfo=None)
        over_midnight = self.begins > self.ends
        inside = clock >= self.begins or clock < self.ends if over_midnight else self.begins <= clock < self.ends
        if not inside:
            return None
        day = local.date() + timedelta(days=1) if over_midnight and clock >= self.begins else local.date()
        return datetime.combine(day, self.ends, self.zone)


@dataclass(frozen=True)
class UsageLimit:
    """One limit that was met.

    `account` tells accounts apart and names nobody; `model` is the part of a model's name that it is for, None: every
    model. `name` is the service's own. `resets_at` is what the program said, None where it did not say; `until` is from
    when turns are tried again. `met` counts how often it was met in a row, `met_by` is whose turn met it last.
    """

    id: LimitId
    revision: int
    account: str
    name: str
    text: str
    first_met_at: datetime
    met_at: datetime
    met_by: TaskId
    met: int
    until: datetime
    model: str | None = None
    resets_at: datetime | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
