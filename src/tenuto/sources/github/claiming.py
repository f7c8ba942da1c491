"""Who works on an issue, told in its comments: the order in which GitHub has them decides, for everybody alike.

A claim is a comment. It counts when nobody had the issue when it came, or when it names whoever had it as over; any
other is lost for good, and nothing has to be taken back. Whoever claims says so first and reads afterwards: only who is
then found to have the issue works on it. A record under the name of a claim ends it. As far as GitHub shows everybody
the same comments in the same order, nobody claims what somebody else has.
"""

from __future__ import annotations

import json
import re

from tenuto.model.chain import Hold

#: Says that there are claims to be read; it decides nothing.
WORKING = "tenuto:working"
NAME, OVER = 200, 20
_CLAIM = re.compile(r"<!-- tenuto:claim (\{[^\n]{1,8000}\}) -->")


def words(hold: Hold) -> str:
    """The comment of a claim: a line for people, and the same for ourselves."""
    told = {"by": hold.by, "over": sorted(hold.over)}
    return f"A task works on this ({hold.by}).\n\n<!-- tenuto:claim {json.dumps(told)} -->"


def after(holder: str | None, body: str) -> str | None:
    """Who has the issue after a comment of somebody who may write to the repository; None: nobody."""
    for raw in _CLAIM.findall(body):
        try:
            told = json.loads(raw)
        except ValueError:
            continue
        by, over = (told.get("by"), told.get("over")) if isinstance(told, dict) else (None, None)
        named = [one for one in over if isinstance(one, str)][:OVER] if isinstance(over, list) else []
        if isinstance(by, str) and 0 < len(by) <= NAME and (holder is None or holder in named):
            holder = by
    return holder
