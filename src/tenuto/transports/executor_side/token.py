"""The file that holds an executor's token: read anew each time, and only where nobody else can read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tenuto.transports.executor_side.peer import Denied

TOKEN_BYTES: Final = 512


def token_file(path: Path) -> Callable[[], str]:
    """Reads the token anew each time; Denied when the file is not there, or not one's own."""

    def read() -> str:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Denied(f"{path} cannot be read ({error.strerror})") from None
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
                raise Denied(f"{path} must be a file of yours with mode 0600; others can reach it")
            text = os.read(handle, TOKEN_BYTES).decode("ascii", "replace").strip()
        finally:
            os.close(handle)
        if not text.isprintable() or not 16 <= len(text) < TOKEN_BYTES:
            raise Denied(f"{path} holds no token")
        return text

    return read
