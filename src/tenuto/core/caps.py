"""Caps on what a task and its run may spend: turns, hours of live turns, tokens, money.

Says which cap is reached, by name, and what would lift it. What was spent is counted elsewhere, when a turn ends; what
an agent does not report cannot be capped, and is never guessed. A cap keeps the next turn from being made, and ends no
turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tenuto.model.snapshot import Snapshot
from tenuto.model.work import WaitKind

MILLION = 1_000_000


@dataclass(frozen=True)
class Cap:
    """A cap that is reached: its name as `policy set` knows it, whose it is, and the sentence."""

    name: str
    owner: str
    sentence: str

    @property
    def named(self) -> str:
        """Whose it is and its name, as `policy set` takes them."""
        return f"{self.owner} {self.name}"

    @property
    def change(self) -> str:
        """What lifts it."""
        return f"tenuto policy set {self.named}=N"


def reached(snapshot: Snapshot) -> Cap | None:
    """The first cap that is reached, the task's own before its run's; None while there is room under all."""
    task, policy, spent = snapshot.task, snapshot.run.policy, snapshot.spent
    money = task.currency or "the reported currency"
    rows: tuple[tuple[str, str, str, object, object, str], ...] = (
        ("max-attempts", task.id, "its", _own(task.max_attempts, policy.max_attempts), task.attempts, "{} turns"),
        ("max-live", task.id, "its", _own(task.max_live, policy.max_live), task.live_time, "{} of live turns"),
        ("max-tokens", task.id, "its", _own(task.max_tokens, policy.max_tokens), task.tokens, "{} tokens"),
        ("max-cost", task.id, "its", _own(task.max_cost, policy.max_cost), task.cost, f"{{}} {money}"),
        ("run-attempts", snapshot.run.id, "its run's", policy.run_attempts, spent.attempts, "{} turns"),
        ("run-live", snapshot.run.id, "its run's", policy.run_live, spent.live_time, "{} of live turns"),
        ("run-tokens", snapshot.run.id, "its run's", policy.run_tokens, spent.tokens, "{} tokens"),
        ("run-cost", snapshot.run.id, "its run's", policy.run_cost, spent.cost, f"{{}} {money}"),
    )
    for name, owner, whose, cap, used, unit in rows:
        if cap is not None and _full(cap, used):
            return Cap(name, owner, f"{whose} budget of {unit.format(_spelled(name, cap))} is spent")
    return None


def run_capped(snapshot: Snapshot) -> bool:
    """Whether what the whole run has spent matters."""
    policy = snapshot.run.policy
    return any(cap is not None for cap in (policy.run_attempts, policy.run_live, policy.run_tokens, policy.run_cost))


def waited_for(snapshot: Snapshot) -> bool:
    """Whether a reached cap is a wait already."""
    return any(wait.kind is WaitKind.CAP for wait in snapshot.waits)


def _own(mine: object, common: object) -> object:
    return mine if mine is not None else common


def _full(cap: object, used: object) -> bool:
    match cap, used:
        case (timedelta(), timedelta()):
            return used >= cap
        case (int(), int()):
            return used >= cap
        case _:
            raise TypeError(f"a cap of {cap!r} cannot be compared with {used!r}")


def _spelled(name: str, cap: object) -> str:
    if isinstance(cap, timedelta):
        return f"{cap.total_seconds() / 3600:g} h"
    if name.endswith("cost") and isinstance(cap, int):
        return f"{cap / MILLION:g}"
    return str(cap)
