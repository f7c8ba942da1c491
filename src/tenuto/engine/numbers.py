"""Numbers of the policy as they are written by hand: single ones of a run's or a task's, each refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from tenuto.model.faults import Mistake
from tenuto.model.policy import POLICY, Policy, number
from tenuto.model.work import AutoResume

#: Caps that may be taken off again, and the word for it.
CAPS = frozenset(name for name in Policy.__dataclass_fields__ if name.startswith(("max_", "run_")))
TASK_CAPS = ("max-attempts", "max-live", "max-tokens", "max-cost")
NO_CAP = "none"


def policy_with(policy: Policy, changes: Mapping[str, int | float | None]) -> Policy:
    """A policy with single numbers replaced; durations are given in seconds."""
    made: dict[str, object] = {}
    for name, value in changes.items():
        if name not in Policy.__dataclass_fields__ or isinstance(getattr(POLICY, name), tuple):
            raise Mistake(f"there is no policy number '{name}'", field=name)
        if value is None and name in CAPS:
            made[name] = None
            continue
        made[name] = number(name, getattr(POLICY, name), value)
    return replace(policy, **made)  # type: ignore[arg-type]


def auto_resume(value: str) -> AutoResume:
    """The mode of a run or a task by its word."""
    try:
        return AutoResume(value)
    except ValueError:
        raise Mistake("auto-resume is on, manual, or inherit (tasks)", field="auto-resume") from None


def cap(name: str, value: str) -> int | timedelta | None:
    """A task's own cap; `none` takes it back, and the run's number holds again."""
    if value.strip().lower() == NO_CAP:
        return None
    if name == "max-live":
        try:
            return number(name, timedelta(), float(value))
        except ValueError:
            raise Mistake(f"{name} is a duration in seconds", field=name) from None
    most = 1_000_000 if name == "max-attempts" else 10**15
    if not value.isdecimal() or len(value) > len(str(most)) or not 1 <= int(value) <= most:
        raise Mistake(f"{name} is a whole number from 1 to {most}", field=name)
    return int(value)


def numbered(changes: Mapping[str, str]) -> tuple[dict[str, int | float | None], AutoResume | None]:
    """The numbers that a run's policy is to have, durations in seconds, and its mode where that is among them."""
    numbers: dict[str, int | float | None] = {}
    auto: AutoResume | None = None
    for name, value in changes.items():
        if name == "auto-resume":
            auto = auto_resume(value)
            continue
        try:
            numbers[name.replace("-", "_")] = None if value.strip().lower() == NO_CAP else float(value)
        except ValueError:
            raise Mistake(f"{name} must be a number (durations in seconds)", field=name) from None
    return numbers, auto
