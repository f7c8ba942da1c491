"""Watching a program to its end: its output flows by, its time runs, and whoever interrupts it is obeyed.

Decides when a turn has ended and what cut it short. It keeps nothing of the output but the fenced blocks and
a count, and it never waits longer than a second for output that somebody else still holds open. Standard
library only.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NamedTuple

from tenuto.transports.host.fences import FenceScanner
from tenuto.transports.host.kin import Elders, kin, signal_all, survivors
from tenuto.transports.host.program import Program

CHUNK: Final = 1 << 20
DRAIN: Final = 1.0
"""Seconds that output may still come after the leader has ended."""

LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at what is being ended."""

SWEEPS: Final = 64
"""Most chunks that are taken of a pipe when all is over."""

HEARD_EVERY: Final = 1.0
"""Seconds between two times that it is told that output came."""

KILL_WAIT: Final = 5.0
"""Seconds that killed processes may take to vanish."""


class Closed(NamedTuple):
    """How a program ended: its exit code or signal, what cut it short, its output in bytes, who outlived it."""

    exit_code: int | None
    signal: int | None
    cut: str | None
    output_bytes: int
    survivors: int


class Ears:
    """Hears signals as they come: an interruption asked for, a child that ended."""

    def __init__(self) -> None:
        self.interrupted = False
        self.hearing, self._writing = os.pipe()
        for descriptor in (self.hearing, self._writing):
            os.set_blocking(descriptor, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._interrupt)
        signal.signal(signal.SIGCHLD, self._ended)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True

    def _ended(self, number: int, frame: FrameType | None) -> None:
        """Only wakes whoever polls."""

    def drain(self) -> None:
        """Forget what has been heard, so that the next poll waits again."""
        try:
            while os.read(self.hearing, 512):
                pass
        except BlockingIOError:
            pass


class Watch:
    """One program from its start to its end. Durations are seconds of the machine being awake.

    `heard` is called when output came, at most once a second.
    """

    def __init__(
        self,
        program: Program,
        badge: str,
        ears: Ears,
        scanner: FenceScanner,
        limit: float,
        grace: float,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        self._program = program
        self._badge = badge
        self._ears = ears
        self._scanner = scanner
        self._grace = grace
        self._deadline = time.monotonic() + limit
        self._poll = select.poll()
        self._open = {program.out, program.err}
        self._heard = heard
        self._heard_at: float | None = None
        self._bytes = 0
        self._cut: str | None = None
        self._kill_at = 0.0
        self._status: int | None = None
        self._ended_at: float | None = None
        for descriptor in (program.out, program.err, ears.hearing):
            self._poll.register(descriptor, select.POLLIN)

    def to_end(self) -> Closed:
        """Wait for the end, ending the program when its time is over or somebody asks."""
        elders = Elders(self._program.started)
        while True:
            now = time.monotonic()
            if self._ended_at is None and self._has_ended():
                self._ended_at = now
            self._press(now)
            if self._over(now):
                break
            self._turn(self._wait(now))
        self._sweep()
        left = survivors(self._program.pid, self._badge, self._program.started, elders)
        if self._status is None:
            _, self._status = os.waitpid(self._program.pid, 0)
        code = os.waitstatus_to_exitcode(self._status)
        for descriptor in self._open:
            os.close(descriptor)
        cut = self._cut or ("killed" if code < 0 else None)
        return Closed(code if code >= 0 else None, -code if code < 0 else None, cut, self._bytes, left)

    def _press(self, now: float) -> None:
        """The ladder: asked to end, then, after the grace, killed."""
        if self._cut is None and self._ended_at is None:
            if self._ears.interrupted:
                self._cut = "interrupt"
            elif now >= self._deadline:
                self._cut = "time_limit"
            else:
                return
            self._kill_at = now + self._grace
            signal_all(self._program.pid, self._badge, signal.SIGTERM)
            signal_all(self._program.pid, self._badge, signal.SIGCONT)
        elif self._cut is not None and now >= self._kill_at:
            signal_all(self._program.pid, self._badge, signal.SIGKILL)

    def _over(self, now: float) -> bool:
        if self._ended_at is None:
            return False
        drained = not self._open or now >= self._ended_at + DRAIN
        if self._cut is None:
            return drained
        if now >= self._kill_at + KILL_WAIT:
            return True
        return not kin(self._program.pid, self._badge) and drained

    def _wait(self, now: float) -> float:
        if self._cut is not None:
            return LOOK_AGAIN
        if self._ended_at is not None:
            return self._ended_at + DRAIN - now
        return self._deadline - now

    def _turn(self, seconds: float) -> None:
        """Wait for output, a signal or the time, whichever comes first."""
        for descriptor, _ in self._poll.poll(max(0.0, min(seconds, 3600.0)) * 1000):
            if descriptor == self._ears.hearing:
                self._ears.drain()
            else:
                self._read(descriptor)

    def _sweep(self) -> None:
        """Take what lies in the pipes still; a survivor that goes on writing does not keep us."""
        for descriptor in tuple(self._open):
            for _ in range(SWEEPS):
                if not self._read(descriptor):
                    break

    def _read(self, descriptor: int) -> bool:
        """Take one chunk; False when there is none."""
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._poll.unregister(descriptor)
            self._open.discard(descriptor)
            os.close(descriptor)
            return False
        self._bytes += len(chunk)
        self._stirred(time.monotonic())
        if descriptor == self._program.out:
            self._scanner.feed(chunk)
        return True

    def _stirred(self, now: float) -> None:
        """Say that output came, at most once a second."""
        if self._heard_at is None or now - self._heard_at >= HEARD_EVERY:
            self._heard_at = now
            self._heard()

    def _has_ended(self) -> bool:
        """Whether the leader has ended; where that can be asked it stays unreaped, so that its number stays its own."""
        pid = self._program.pid
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        reaped, status = os.waitpid(pid, os.WNOHANG)
        if reaped == pid:
            self._status = status
        return reaped == pid
