"""Makes a world that broke a promise smaller, as long as it still breaks one.

Fewer tasks, fewer faults, a shorter life, no mishaps, slots for all: whatever can be left out is. What remains is the
shortest story of how it came about, not necessarily the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tenuto.proof.simulation.plan import DAY, Plan

P = TypeVar("P")
Breaks = Callable[[Plan], bool]


def shrunk(plan: Plan, breaks: Breaks, tries: int) -> Plan:
    """The smallest plan that was found within `tries` lives; `breaks` lives through one."""
    left = tries
    going = True
    while going and left > 0:
        going = False
        for smaller in candidates(plan):
            if left <= 0:
                break
            left -= 1
            if breaks(smaller):
                plan, going = smaller, True
                break
    return plan


def candidates(plan: Plan) -> Iterator[Plan]:
    """Smaller plans, the much smaller ones first."""
    for tasks in _less(plan.tasks):
        if tasks:
            yield replace(plan, tasks=tuple(tasks))
    for days in (plan.days / 4, plan.days / 2, plan.days * 0.8):
        if days > 0.05:
            yield replace(plan, days=days, faults=tuple(fault for fault in plan.faults if fault.at < days * DAY))
    if plan.slots is not None:
        yield replace(plan, slots=None)
    if plan.mishaps:
        yield replace(plan, mishaps=False)
    for faults in _less(plan.faults):
        yield replace(plan, faults=tuple(faults))


def _less(parts: Sequence[P]) -> Iterator[Sequence[P]]:
    """The parts without some of them: without all, then halves, quarters, down to each one."""
    size = len(parts)
    while size >= 1:
        for start in range(0, len(parts), size):
            yield [*parts[:start], *parts[start + size :]]
        size //= 2
