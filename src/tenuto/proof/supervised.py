"""A supervisor with a fuse in it, as a process of its own.

Runs what `tenuto up` runs, except that it kills itself at the n-th passing of a named point. For demonstrations and
proofs only; an everyday supervisor never has a fuse.

    python -m tenuto.proof.supervised POINT COUNT
"""

from __future__ import annotations

import os
import sys

from tenuto.config import load
from tenuto.proof.fuse import KillFuse
from tenuto.wiring import launch


def main(arguments: list[str]) -> int:
    """Serve until the fuse burns through, or until stopped."""
    point, count = arguments[0], int(arguments[1])
    return launch.foreground(load(os.environ), detached=True, fuse=KillFuse(point, count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
