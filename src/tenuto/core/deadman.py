"""The dead-man switch: whether a run whose chats have all gone silent may be looked after, once it was asked for.

An extension that sees nothing move any more may ask; its question authorises nothing. What decides is here: whether the
run has the switch on, how long its unfinished tasks have shown no sign by our own count of time that was awake and
connected, and whether anything of them is under way, waits, or is going to be continued anyway. What is granted is a
wake for recovery, which passes no rung of the ladder and wants two looks that agree.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tenuto.core import wake
from tenuto.core.draft import Draft, New
from tenuto.model.change import Commit
from tenuto.model.lifecycle import RunState
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import AutoResume, Run, WakeKind

LONGEST: Final = timedelta(seconds=60)
"""What one listening counts at most: a longer gap was slept through."""


@dataclass(frozen=True)
class Silence:
    """How long nothing of a run has shown a sign; `sign` is the digest of what its rows said then."""

    quiet: timedelta = timedelta(0)
    sign: str = ""


def listened(before: Silence | None, sign: str, passed: timedelta, *, alive: bool, connected: bool) -> Silence:
    """The silence after another listening, `passed` after the one before.

    A sign ends it. Time in which no browser of the run was connected says nothing, and neither does time slept through.
    """
    if before is None or before.sign != sign or alive:
        return Silence(timedelta(0), sign)
    if not connected:
        return before
    return replace(before, quiet=before.quiet + min(max(passed, timedelta(0)), LONGEST))


def sign(tasks: tuple[Snapshot, ...]) -> str:
    """A digest of what the rows say of the unfinished tasks' turns and progress; moments of looking are not in it."""
    told = []
    for one in sorted(tasks, key=lambda each: each.task.id):
        last, talk, progress = one.last, one.conversation, one.task.progress
        told.append(
            f"{one.task.id} {one.task.attempts} {progress.at} {progress.cursor} {talk.identity if talk else ''} "
            f"{last.id if last else ''} {last.state if last else ''} {last.outcome if last else ''}"
        )
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def refusal(run: Run, tasks: tuple[Snapshot, ...], silence: Silence, *, lately: bool) -> str | None:
    """Why nothing is granted to a run now; None when something may be. `lately`: something was, not long ago."""
    policy = run.policy
    if not policy.dead_man:
        return "its dead-man switch is off"
    if run.state is not RunState.OPEN:
        return "the run is stopped"
    if not tasks:
        return "nothing of it is unfinished"
    if lately:
        return "it was granted not long ago"
    if silence.quiet < policy.dead_man_after:
        return (
            f"it has been silent for {int(silence.quiet.total_seconds())} of "
            f"{int(policy.dead_man_after.total_seconds())} seconds, awake and connected"
        )
    if not any(idle(one) for one in tasks):
        return "each of its tasks has a turn, waits for something, or is continued already"
    return None


def idle(snapshot: Snapshot) -> bool:
    """Whether nothing of a task is under way, waits or is asked for, and it is continued unasked."""
    task = snapshot.task
    mode = task.auto_resume or snapshot.run.auto_resume
    busy = snapshot.live is not None or snapshot.commands or snapshot.wakes or snapshot.waits or task.claim is not None
    held = task.paused_at is not None or task.stalled_at is not None or task.ready_at is not None
    return not task.terminal and not busy and not held and mode is AutoResume.ON and task.agent.in_page


def granted(tasks: tuple[Snapshot, ...], now: datetime, new: New) -> Commit:
    """The wakes of every idle task; whether they lead to a turn is judged when they are looked at."""
    whole = Commit()
    for one in tasks:
        if not idle(one):
            continue
        draft = Draft(one, now, new)
        draft.wake(WakeKind.RECOVERY, wake.DEAD_MAN, now)
        draft.look_now()
        whole = whole.then(draft.commit() or Commit())
    return whole
