"""A supervisor whose machine's clock is wrong:   python skewed.py SECONDS ARGUMENTS of tenuto

Only the wall clock is moved, by so many seconds; everything else is the supervisor as it is shipped.
"""

import sys
from datetime import datetime, timedelta

from tenuto.__main__ import main
from tenuto.wiring.world import SystemClock

off = timedelta(seconds=float(sys.argv.pop(1)))
true_now = SystemClock.now


def now(clock: SystemClock) -> datetime:
    """The moment on this machine's wall."""
    return true_now(clock) + off


if __name__ == "__main__":
    SystemClock.now = now  # type: ignore[assignment, method-assign]
    main()
