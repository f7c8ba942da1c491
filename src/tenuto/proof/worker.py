"""Plays cases one after the other: names come in on standard input, one a line, results go out as lines of JSON.

A process of one thread that has imported everything, so that a life is a fork away. It is started by the matrix.

    python -m tenuto.proof.worker [NAME...]
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from tenuto.proof.case import read
from tenuto.proof.play import play


def main() -> int:
    """Play the cases named as arguments, or as lines until there are no more; 1 when a promise was broken."""
    broken = 0
    for line in sys.argv[1:] or sys.stdin:
        played = play(read(line.strip()))
        sys.stdout.write(json.dumps(asdict(played)) + "\n")
        sys.stdout.flush()
        broken += len(played.verdict.broken)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
