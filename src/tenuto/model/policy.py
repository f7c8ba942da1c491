"""The numbers by which tasks are kept going.

One value, stored with a run when the run begins, so that a running run keeps its rules. Durations are timedeltas,
sizes are bytes. `POLICY` holds the defaults; configuration and `tenuto policy set` override single numbers, and
`tenuto policy show` says where each comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

S = timedelta(seconds=1)
MIN = timedelta(minutes=1)
H = timedelta(hours=1)


@dataclass(frozen=True)
class Policy:
    """Each number's name says what it bounds; the reasons stand in docs/reference/policy.md."""

    checkpoint_after: timedelta = 20 * MIN
    checkpoint_jitter: timedelta = MIN
    live_spacing: timedelta = 15 * MIN
    idle_delay: timedelta = 0 * S
    stall_warn: int = 3
    stall_pause: int = 6
    self_progress_streak: int = 3
    max_attempts: int | None = None
    fault_recoveries: int = 3
    hand_over_grace: timedelta = 5 * S
    turn_limit: timedelta = 4 * H
    reconcile_separation: timedelta = 3 * S
    reconcile_age: timedelta = 120 * S
    reconcile_tries: int = 3
    look_at_living_turn: timedelta = 2 * S
    arm_within: timedelta = 10 * S
    retry_unsent: tuple[timedelta, ...] = (5 * S, 15 * S, 60 * S, 300 * S)
    delivery_end: timedelta = 24 * H
    check_limit: timedelta = 10 * MIN
    check_tries: int = 3
    interrupt_grace: timedelta = 10 * S
    slot_rest: timedelta = 10 * MIN
    lease_life: timedelta = 7200 * S
    operator_turn_hold: timedelta = 10 * MIN
    message_bytes: int = 64 * 1024
    objective_bytes: int = 256 * 1024
    prompt_bytes: int = 320 * 1024
    report_bytes: int = 32 * 1024


POLICY = Policy()
