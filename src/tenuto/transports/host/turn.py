"""The host process of one turn, as the supervisor starts it: `python -I -S turn.py` with an order on stdin.

It only finds the package it lies in, behind the standard library, and hands over to `carry`; so little
stands here because a script, unlike a module, is compiled at every start.
"""

import sys
from os.path import abspath, dirname

if __name__ == "__main__":
    sys.path.append(dirname(dirname(dirname(dirname(abspath(__file__))))))  # noqa: PTH100, PTH120 - see above

    from tenuto.transports.host.carry import main

    sys.exit(main())
