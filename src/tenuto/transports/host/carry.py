"""Carrying out one order: claim, begin, watch, and write down the end.

This is all that a host process does. It outlives whoever gave the order. It does nothing at all unless it is
first at its journal, nothing irreversible before `begun` is on the disk, and it never starts a program
twice. Standard library only.
"""

from __future__ import annotations

import _socket  # the part of `socket` that is needed, without what makes importing the rest slow
import json
import os
import signal
import time
from typing import Final, TypedDict

from tenuto.transports.host import claim
from tenuto.transports.host.fences import FenceScanner
from tenuto.transports.host.program import NotStartedError, close_all, nameless, start
from tenuto.transports.host.watch import Closed, Ears, Watch

ORDER_LIMIT: Final = 2 << 20
"""Most bytes of an order."""

PATIENCE: Final = 600
"""How often, once a second, an end is written again that the disk would not take."""


class Identity(TypedDict):
    """A process for ever: `start` is what the platform counts from, `boot` the life of the machine."""

    pid: int
    start: int
    boot: str


class Order(TypedDict):
    """What to run, for whom, and where to write it down. Durations are seconds; `fuse` is a point to die at."""

    folder: str
    command: str
    attempt: str | None
    task: str
    registry: str
    epoch: int
    kind: str
    host: Identity | None
    argv: list[str]
    cwd: str
    env: dict[str, str]
    prompt: str
    limit: float
    grace: float
    bell: str
    fuse: str | None


def main() -> int:
    """Carry out the order on standard input; 0 when its journal tells the rest, 1 when there was nothing to do."""
    stand_alone()
    bell = warmed()
    order = read_order(0)
    if order is None:
        return 1
    burn(order, "host.start")
    try:
        journal = claim.take(order["folder"], order["command"], first_line(order), durable=False)
    except claim.TakenError:
        return 1
    Turn(order, journal, bell).run()
    return 0


class Turn:
    """One claimed order on its way: begun, accepted, ended, or failed by name."""

    def __init__(self, order: Order, journal: claim.Journal, bell: _socket.socket) -> None:
        self._order = order
        self._journal = journal
        self._unwritten: list[claim.Line] = []
        self._bell = bell

    def run(self) -> None:
        order = self._order
        burn(order, "host.claimed")
        ears = Ears()
        try:
            stdin = self._ready()
        except NotStartedError as error:
            self._fail(error)
            return
        scanner = FenceScanner(order["prompt"])
        burn(order, "host.before_begun")
        if ears.interrupted:
            self._fail(NotStartedError("it was interrupted before it began", mendable=False))
            return
        self._journal.mark(marked("begun"))  # nobody is rung for yet: what counts comes in a moment
        burn(order, "host.begun")
        try:
            program = start(order["argv"], order["cwd"], order["env"], stdin)
        except NotStartedError as error:
            self._fail(error)
            return
        burn(order, "host.spawned")
        badge = f"TENUTO_COMMAND={order['command']}"
        watch = Watch(program, badge, ears, scanner, order["limit"], order["grace"], self._heard)
        self._write({**marked("accepted"), "pid": program.pid, "start": program.started})
        burn(order, "host.accepted")
        os.close(stdin)
        burn(order, "host.running")
        closed = watch.to_end()
        burn(order, "host.drained")
        line = ended(closed, scanner if order["kind"] == "turn" else FenceScanner())
        burn(order, "host.before_ended")
        self._write(line)
        for _ in range(PATIENCE):
            if not self._unwritten:
                break
            time.sleep(1)
            self._write()
        burn(order, "host.ended")

    def _heard(self) -> None:
        self._journal.heard(time.time())  # noqa: TID251 - the host is a program of its own, and this is its clock

    def _ready(self) -> int:
        """All that can still fail without a trace: the leader's epoch and the prompt's place on the disk."""
        order = self._order
        try:
            if not claim.admit(order["folder"], order["registry"], order["epoch"]):
                raise NotStartedError("a later supervisor leads", mendable=False)
            return nameless(order["folder"], order["prompt"])
        except (OSError, ValueError) as error:
            raise NotStartedError(f"the journal's directory cannot be used ({error})", mendable=True) from None

    def _fail(self, error: NotStartedError) -> None:
        self._journal.mark({**marked("failed"), "reason": error.reason, "mendable": error.mendable})
        self._ring()

    def _write(self, *lines: claim.Line) -> None:
        """Write marks in their order; what a full disk refuses is kept for the next time."""
        self._unwritten += lines
        try:
            while self._unwritten:
                self._journal.mark(self._unwritten[0])
                del self._unwritten[0]
        except OSError:
            return
        self._ring()

    def _ring(self) -> None:
        try:
            self._bell.sendto(self._order["command"].encode("ascii"), self._order["bell"])
        except OSError:  # nobody listens, or too slowly: the journal tells it all the same
            pass


def stand_alone() -> None:
    """Leave whoever started us: a session of our own, no directory held, nothing inherited but the order."""
    try:
        os.setsid()
    except OSError:  # a session of our own already
        pass
    os.chdir("/")
    close_all(())


def warmed() -> _socket.socket:
    """What has to be done once whatever the order is, before it is there: a host may wait for its order a while.

    Gives the socket that rings; what else is done here only brings into memory what is needed first.
    """
    bell = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
    bell.setblocking(False)
    json.loads(json.dumps(marked("claimed")))
    FenceScanner("").finish()
    os.urandom(1)
    return bell


def read_order(descriptor: int) -> Order | None:
    """The order, once whoever writes it has closed the pipe; None for half an order, which is none."""
    held = bytearray()
    while more := os.read(descriptor, 1 << 16):
        held += more
        if len(held) > ORDER_LIMIT:
            return None
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, descriptor)
    os.close(nothing)
    try:
        order: Order = json.loads(held)
    except ValueError:
        return None
    return order


def first_line(order: Order) -> claim.Line:
    return {
        **marked("claimed"),
        "command": order["command"],
        "attempt": order["attempt"],
        "task": order["task"],
        "registry": order["registry"],
        "epoch": order["epoch"],
        "kind": order["kind"],
        "host": order["host"],
    }


def marked(mark: str) -> claim.Line:
    now = time.time()  # noqa: TID251 - the host is a program of its own, and this is its clock
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))  # datetime would be one more import
    return {"mark": mark, "at": f"{second}.{int(now * 1000) % 1000:03}+00:00"}


def ended(closed: Closed, scanner: FenceScanner) -> claim.Line:
    found = scanner.finish()
    return {
        **marked("ended"),
        "exit_code": closed.exit_code,
        "signal": closed.signal,
        "cut": closed.cut,
        "output_bytes": closed.output_bytes,
        "survivors": closed.survivors,
        "signals": found["signals"],
        "signal_count": found["signal_count"],
        "reports": found["reports"],
    }


def burn(order: Order, point: str) -> None:
    """Die here when a proof asked for it."""
    if order.get("fuse") == point:
        os.kill(os.getpid(), signal.SIGKILL)
