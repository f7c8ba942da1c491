"""A host executor that kills itself at a named point, as a program of its own: for tests alone.

python dying_host.py ADDRESS TOKEN_FILE NAME JOURNAL POINT COUNT
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tenuto.config import load
from tenuto.wiring.hosting import hosting


class Death:
    """A fuse that kills this process when a point is passed for the n-th time."""

    def __init__(self, point: str, count: int) -> None:
        self.point = point
        self.left = count

    def burn(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main(address: str, token: str, name: str, journal: str, point: str, count: str) -> None:
    """Speak for programs until the point is passed."""
    fuse = Death(point, int(count))
    host = point if point.startswith("host.") else None
    served = hosting(load(os.environ), name, [address], Path(token), Path(journal), fuse=fuse, host_fuse=host)
    sys.exit(0 if asyncio.run(served) is None else 4)


if __name__ == "__main__":
    main(*sys.argv[1:])
