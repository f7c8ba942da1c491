"""What runs a command and turns however it ended into an exit code.

Every failure becomes one line with its mend; a reader that went away and an interruption are no failures of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tenuto.surfaces.cli.exits import Exit, Failure, of_fault
from tenuto.surfaces.cli.output import Out


def ended(out: Out, act: Callable[[], object]) -> int:
    """The exit code of `act`, which returns it as a number, or None for 0. Raises only what is a fault of ours."""
    try:
        code = act()
        return code if isinstance(code, int) else Exit.DONE
    except Failure as failure:
        out.fail(failure)
        return failure.exit
    except KeyboardInterrupt:
        return Exit.DETACHED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as fault:
        told = of_fault(fault)
        if told is None:
            raise
        out.fail(told)
        return told.exit
