"""The numbers by which tasks are kept going.

One value, stored with a run when the run begins, so that a running run keeps its rules. Durations are timedeltas,
sizes are bytes. `POLICY` holds the defaults; configuration and `tenuto policy set` override single numbers, and
`tenuto policy show` says where each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tenuto.model.faults import Mistake

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
    news_spacing: timedelta = 5 * MIN
    max_attempts: int | None = None
    max_live: timedelta | None = None
    max_tokens: int | None = None
    max_cost: int | None = None
    run_attempts: int | None = None
    run_live: timedelta | None = None
    run_tokens: int | None = None
    run_cost: int | None = None
    fault_recoveries: int = 3
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
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    permission_wait: timedelta = 30 * MIN
    limit_buffer: timedelta = 60 * S
    limit_jitter: timedelta = 30 * S
    limit_lead: timedelta = 120 * S
    limit_unknown: tuple[timedelta, ...] = (5 * MIN, 15 * MIN, 30 * MIN, 60 * MIN)
    limit_tries: int = 12
    overload_retry: tuple[timedelta, ...] = (30 * S, 120 * S, 300 * S, 900 * S)
    overload_tries: int = 12
    fresh_sessions: int = 3
    slot_rest: timedelta = 10 * MIN
    pending_tasks: int = 48
    pending_life: timedelta = 240 * MIN
    spawn_rate: int = 30
    spawn_window: timedelta = 10 * MIN
    ready_grace: timedelta = 30 * MIN
    lease_life: timedelta = 7200 * S
    suspect_page: timedelta = 120 * S
    suspect_network: timedelta = 180 * S
    suspect_tool: timedelta = 180 * S
    suspect_hard: timedelta = 600 * S
    page_fresh: timedelta = 30 * S
    network_fresh: timedelta = 30 * S
    page_quiet: timedelta = 5 * S
    network_quiet: timedelta = 5 * S
    dead_man: int = 0
    dead_man_ask: timedelta = 5 * MIN
    dead_man_after: timedelta = 10 * MIN
    dead_man_apart: timedelta = 30 * MIN
    merge_facts: timedelta = 30 * S
    merge_rate: int = 4
    merge_window: timedelta = H
    reviews: int = 10
    message_bytes: int = 64 * 1024
    objective_bytes: int = 256 * 1024
    prompt_bytes: int = 320 * 1024
    report_bytes: int = 32 * 1024


POLICY = Policy()


@dataclass(frozen=True)
class Keeping:
    """How long a registry keeps what nobody needs any more for going on; the newest event always stays.

    `texts` counts from the end of their task, `samples` are the newest of each task, `keys` the idempotency keys,
    `journals` the settled journals of this home's hosts.
    """

    events: timedelta = timedelta(days=90)
    texts: timedelta = timedelta(days=30)
    samples: int = 2000
    keys: timedelta = timedelta(hours=24)
    journals: timedelta = timedelta(days=30)


KEEPING = Keeping()

LONGEST: Final = timedelta(days=36_500)
"""No time is longer: a moment that far from now, either way, is one that clocks and databases can still tell."""

MOST: Final = 2**53
"""No count is larger: the whole numbers that JSON carries exactly."""

SHORTEST: Final[Mapping[str, timedelta]] = {
    "turn_limit": S,
    "dead_man_ask": S,
    "retry_unsent": S / 10,
    "limit_unknown": S / 10,
    "overload_retry": S / 10,
}
"""What nothing works with in less: no turn would get anywhere, no extension would listen, or tries would be a storm."""

_LASTING = frozenset({"max_live", "run_live"})


def number(name: str, now: object, value: object) -> int | timedelta:
    """What a number becomes that is `now` of one kind and is given as `value`, durations in seconds.

    Raises Mistake, which names the field and its bounds, for anything that cannot be.
    """
    known = name.replace("-", "_")
    lasts = isinstance(now, timedelta) or known in _LASTING
    least = SHORTEST.get(known, timedelta()).total_seconds()
    most = int(LONGEST.total_seconds()) if lasts else MOST
    # What is no number at all (NaN) is not between the two either.
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise Mistake(f"{name} must be a number{' of seconds' if lasts else ''} from {least:g} to {most}", field=name)
    if lasts:
        return timedelta(seconds=value)
    if value != int(value):
        raise Mistake(f"{name} must be a whole number", field=name)
    return int(value)
