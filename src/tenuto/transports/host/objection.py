"""Whether a program could be started at all, asked before any work is promised.

Looks only. An objection names the field of the request to mend; that there is none now does not promise that there
will be none at launch, where the same things are found out again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tenuto.model.work import Agent
from tenuto.transports.host import environment


def to(agent: Agent, cwd: str, surroundings: Mapping[str, str], env_file: Path | None) -> tuple[str, str] | None:
    """(field, sentence) for the first thing that stands in the way; None for none."""
    place = Path(cwd)
    if not place.is_absolute():
        return "cwd", f"the working directory must be an absolute path, not '{cwd}'"
    if not place.is_dir():
        return "cwd", f"there is no directory {cwd}"
    if not os.access(place, os.R_OK | os.X_OK):
        return "cwd", f"{cwd} may not be entered by this user"
    for name in agent.env:
        if not environment.NAME.fullmatch(name):
            return "env", f"'{name}' is no name of an environment variable"
    try:
        values = environment.resolve(agent.env, {}, surroundings, env_file)
    except environment.MissingError as missing:
        return "env", f"{missing}; set it there first"
    program = agent.argv[0]
    if os.sep in program:
        found = place / program
        if not found.is_file():
            return "program", f"there is no program {program}"
        if not os.access(found, os.X_OK):
            return "program", f"{program} is not executable"
    elif shutil.which(program, path=values.get("PATH", os.defpath)) is None:
        return "program", f"there is no program '{program}' on the PATH"
    return None
