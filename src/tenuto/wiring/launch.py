"""Starting a supervisor: in the foreground, or detached and proven.

A detached start is believed only when the lease row names the process that was started. It is never made beside a
living supervisor. Whatever the child has to say before it leads goes to the log.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import logging.handlers
import os
import secrets
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from tenuto.config import Settings
from tenuto.engine.cycle import Deposed
from tenuto.engine.residency import NotFree
from tenuto.model.faults import Corrupt, Mistake, OutOfReach, Refused, StorageFull, UnsupportedVersion
from tenuto.ports import Fuse

_LOG = logging.getLogger("tenuto")
#: What malloc.h calls the greatest number of arenas.
_M_ARENA_MAX = -8
LOG_BYTES = 5 * 1024 * 1024


def one_arena() -> bool:
    """Have the threads of this process share one arena of the C library's; False where it knows no such thing.

    By itself it gives each thread its own, and keeps in each what was freed there: several megabytes for threads that
    are hardly ever busy at once.
    """
    import ctypes

    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    return setting is not None and setting(_M_ARENA_MAX, 1) == 1


def log_to(path: Path, *, also_stderr: bool) -> None:
    """Send the log to a bounded file (mode 0600), and to stderr in the foreground."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600))
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handlers: list[logging.Handler] = [
        logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8")
    ]
    if also_stderr:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.setFormatter(form)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    for noisy in ("alembic", "uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def foreground(settings: Settings, *, detached: bool = False, fuse: Fuse | None = None, standby: bool = False) -> int:
    """Lead and serve until stopped. 0 after a clean stop, 5 when another leads, 1 when the lease was lost.

    With `standby` it waits until nobody leads.
    """
    one_arena()
    from tenuto.wiring.daemon import assembled, named, serve

    try:
        log_to(settings.log, also_stderr=not detached)
    except OSError as error:
        sys.stderr.write(f"error: the state directory cannot be written: {error}\n")
        return 1

    async def main() -> int:
        async with assembled(settings, fuse=fuse) as supervisor:
            gc.freeze()  # what is here now stays: looking through it again and again would hold up a wake for long
            refused = await serve(supervisor, standby=standby)
            if isinstance(refused, NotFree):
                _LOG.warning("another supervisor leads: %s", named(refused.holder))
                return 5
        return 0

    try:
        return asyncio.run(main())
    except Deposed as deposed:
        _LOG.error("stopped: %s", deposed)
        return 1
    except UnsupportedVersion as error:
        _LOG.error("%s", error)
        return 7
    except Refused as error:  # one of an older version leads
        _LOG.error("%s", error)
        return 5
    except (Corrupt, StorageFull, OutOfReach, Mistake, OSError) as error:
        _LOG.error("%s", error)
        return 1


def detached(settings: Settings, token: str, config: str, database: str | None) -> subprocess.Popen[bytes]:
    """Start a supervisor in a session of its own, with a start token that its lease row will carry.

    What the address of a database may hold is given to it where no other user can read it.
    """
    settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = {**os.environ, "TENUTO_START_TOKEN": token}
    environment.pop("TENUTO_TOKEN", None)
    if database is not None:
        environment["TENUTO_DB"] = database
    with settings.log.open("ab") as log:
        settings.log.chmod(0o600)
        return subprocess.Popen(
            [sys.executable, "-m", "tenuto.wiring.resident", config],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
            start_new_session=True,
            close_fds=True,
        )


def start_token() -> str:
    """A token that proves which start a lease row belongs to; it opens nothing."""
    return f"start-{secrets.token_hex(8)}"


def waited(process: subprocess.Popen[bytes], proven: object, within: timedelta) -> bool:
    """Wait until `proven()` is true, the child ended, or time is up; whether it was proven."""
    until = time.monotonic() + within.total_seconds()
    while time.monotonic() < until:
        if callable(proven) and proven():
            return True
        if process.poll() is not None:
            return bool(callable(proven) and proven())
        time.sleep(0.02)
    return False
