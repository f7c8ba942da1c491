"""The supervisor as a detached process: what `tenuto start` runs.

The same as `tenuto up`, without the command line's libraries, which a process that stays for weeks need not carry.

    python -m tenuto.wiring.resident [CONFIG]

Another registry comes in TENUTO_DB: its address may hold a password, which has no business among arguments.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tenuto.config import load
from tenuto.model.faults import Mistake
from tenuto.wiring import launch


def main(arguments: list[str]) -> int:
    """Lead and serve until stopped; the exit code of `tenuto up`."""
    config = arguments[0] if arguments else ""
    try:
        settings = load(os.environ, Path(config) if config else None)
    except Mistake as mistake:
        sys.stderr.write(f"error: {mistake.message}\n")
        return 2
    return launch.foreground(settings, detached=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
