"""What a program's hook runs: `python -m tenuto.wiring.hook ADAPTER MARK`, with the event on standard input.

It ends with 0 whatever happens, within `WHOLE` seconds, and prints nothing but the words by which a turn goes on. In a
turn of ours it leaves its stamp and no more: the turn's own channel knows better. A sub-agent's events are not told.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from tenuto.config import Settings, load
from tenuto.transports.hooks import calls
from tenuto.wiring.world import SystemClock

WHOLE: Final = 12.0
"""Seconds after which a hook is over, whatever it waits for."""

ANSWER: Final = 2.0
"""Seconds that the supervisor may take."""

STOPPED: Final = 8.0
"""Seconds that the host of a session may take to say whether its turn goes on."""

LINE: Final = 1 << 20


def fired(adapter: str, mark: str, raw: bytes, settings: Settings, environ: Mapping[str, str], at: datetime) -> bytes:
    """Do what one call asks for; what is to be printed."""
    found = calls.read(adapter, raw)
    if found is None:
        return b""
    call, last = found
    place = settings.state / "hooks"
    calls.stamp(place, mark, call, at)
    if call.sub or environ.get("TENUTO_ATTEMPT"):
        return b""
    if not _told(call, settings):
        calls.leave(place, call, at)
    words = _host(call, last, settings)
    return json.dumps({"decision": "block", "reason": words}).encode() if words else b""


def _told(call: calls.Call, settings: Settings) -> bool:
    """Whether the supervisor heard it."""
    from tenuto.surfaces.cli.client import Client, Lost, Unreachable
    from tenuto.surfaces.cli.exits import Failure
    from tenuto.surfaces.routes import address

    try:
        token = settings.operator_token.read_text("utf-8").strip()
        params = {"adapter": call.adapter, "event": call.event, "session": call.session}
        method, path, body = address("hook.tell", params)
        Client(settings.socket, token, answer=ANSWER).ask(method, path, body=body)
    except Failure as failure:
        return failure.code == "not_found"
    except (OSError, Unreachable, Lost):
        return False
    return True


def _host(call: calls.Call, last: str, settings: Settings) -> str:
    """What the host that waits for this session has to say to it; nothing where there is none."""
    place = settings.socket.parent / calls.socket_name(call.session)
    told = {"event": call.event, "session": call.session, "again": call.again, "last": last}
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        if place.lstat().st_uid != os.geteuid():
            return ""
        line.settimeout(STOPPED if call.event == "Stop" else ANSWER)
        line.connect(str(place))
        line.sendall(json.dumps(told).encode() + b"\n")
        answer = json.loads(_line(line))
        words = answer.get("words") if isinstance(answer, dict) else None
        if isinstance(words, str) and words:
            line.sendall(b"taken\n")
            return words
    return ""


def _line(line: socket.socket) -> bytes:
    held = b""
    while b"\n" not in held and len(held) <= LINE:
        more = line.recv(1 << 16)
        if not more:
            break
        held += more
    return held


def _over(_number: int, _frame: object) -> None:
    os._exit(0)


def main(argv: Sequence[str] | None = None) -> None:
    """Be called by a hook: read, tell, end with 0."""
    signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, WHOLE)
    with contextlib.suppress(BaseException):
        given = list(sys.argv[1:] if argv is None else argv)
        environ = dict(os.environ)
        if len(given) >= 4 and given[2] == "--home" and not environ.get("TENUTO_HOME"):
            environ["TENUTO_HOME"] = given[3]
        raw = sys.stdin.buffer.read(calls.BODY + 1)
        said = fired(given[0], given[1], raw, load(environ), environ, SystemClock().now())
        if said:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
