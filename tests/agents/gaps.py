"""How long each real program stands still between two turns, beside what it takes to come up by itself.

    python -m tests.agents.gaps [TURNS] [NAME...]

Under a supervisor a gap reaches from the mark that a turn has ended to the mark that the next one was accepted. Beside
it the same program is brought up without any of that, by its channel alone, from its start until it has taken our words
up. The model is scripted and answers at once. The difference of the medians is ours.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.support.agents import DONE, UNASKED, WORKING, Stage, lined
from tests.support.home import Home
from tests.support.scripted_model import Say, ScriptedModel

from tenuto.transports.agents import events as said
from tenuto.transports.agents.adapters import ADAPTERS
from tenuto.transports.agents.channel import Start

NAMES = ("claude", "codex", "gemini", "pi", "opencode")


def under_a_supervisor(folder: Path, name: str, turns: int) -> list[float]:
    """Seconds of each gap."""
    with ScriptedModel([*[Say(WORKING)] * (turns - 1), Say(DONE)]) as model:
        stage = Stage(folder, name, model.url, *UNASKED)
        task = stage.run("Keep the log.\n", "--policy", "stall_pause=1000", "--policy", "stall_warn=1000")
        try:
            stage.ended(task, 60.0 + 30.0 * turns)
            place = folder / "home" / "state" / "agents" / task / "journal"
            marks = sorted(
                (datetime.fromisoformat(line["at"]).timestamp(), line["mark"])
                for file in place.glob("*.jsonl")
                for line in map(json.loads, file.read_text("utf-8").splitlines())
                if line["mark"] in ("accepted", "ended")
            )
        finally:
            stage.close(task)
    ends = [at for at, mark in marks if mark == "ended"]
    begins = [at for at, mark in marks if mark == "accepted"]
    return [after - before for before, after in zip(ends, begins[1:], strict=False)]


def alone(folder: Path, name: str, turns: int) -> list[float]:
    """Seconds from the program's start until it has taken up our words, in one session."""
    (folder / "work").mkdir(parents=True)
    with ScriptedModel([Say(WORKING)] * turns) as model:
        line, environment, _ = lined(folder, name, model.url, *UNASKED)
        values = {**Home(folder / "bare").environment, **environment, "HOME": str(folder)}
        argv = tuple(shlex.split(line.partition(":")[2]))
        return asyncio.run(_alone(name, Start(argv, str(folder / "work"), values), turns))


async def _alone(name: str, start: Start, turns: int) -> list[float]:
    found, session = [], None
    for number in range(turns):
        channel, marker = ADAPTERS[name].make(start), f"[tenuto:alone-{number}]"
        began = time.monotonic()
        session = await channel.open(session)
        await channel.prompt(f"Go on. {marker}\n", marker)
        while not isinstance(event := await channel.hear(), said.TurnEnded | said.Closed):
            if isinstance(event, said.TurnBegan):
                found.append(time.monotonic() - began)
        await channel.close(5.0)
    return found[1:]


def main() -> None:
    """Print a line for each program."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    for name in sys.argv[2:] or NAMES:
        with tempfile.TemporaryDirectory(prefix="tn-") as one, tempfile.TemporaryDirectory(prefix="tn-") as two:
            gaps = under_a_supervisor(Path(one) / "a", name, turns)
            bare = alone(Path(two) / "a", name, turns)
        ours = statistics.median(gaps) - statistics.median(bare)
        told = f"{statistics.median(gaps):.2f} s between turns, {statistics.median(bare):.2f} s its own start"
        sys.stdout.write(f"{name}: {told}, {1000 * ours:.0f} ms ours ({len(gaps)} gaps)\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
