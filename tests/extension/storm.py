"""A storm of kills over many chats at once: browser, extension, tabs and supervisor end at random instants.

Several tasks stand in one browser, and every few moments one victim is killed, before, in or after whatever the tasks
are doing. The site's server is the judge: what it accepted is held against what the registry believes of each command.
Whatever stands in attention is settled as its person would settle it, by looking at the site. The order of victims,
the instants and the delays come from one seed, so that a plan can be played again (what it meets cannot).

    python -m tests.extension.storm chromium --each 25 --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.extension.browsers import Wrong
from tests.extension.chats import MARKER, OVER, Chats, chats
from tests.support.lab import Answer

from tenuto.surfaces.cli.exits import Failure

VICTIMS: Final = ("background", "tab", "supervisor", "browser")
INSTANTS: Final = ("command.armed", "command.submitted", "command.acknowledged", "attempt.ended", "whenever")
"""After which event a victim is killed; the delay after it is drawn, too."""
LONGEST: Final = 1.5
EVENT: Final = 20.0
TEND: Final = 3.0
SETTINGS: Final = """slots = 40
[policy]
retry_unsent = [1, 2, 4]
stall_warn = 1000
stall_pause = 10000
fault_recoveries = 1000
fresh_sessions = 1000
"""
TURNS: Final = 3
"""In how many turns of one conversation a task is done."""


@dataclass
class Told:
    """What a storm came to. `doubled` and the three lists below it are empty, or a promise is broken."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    attention: Counter[str] = field(default_factory=Counter)
    doubled: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    pressed: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def broken(self) -> bool:
        """Whether a promise is broken."""
        return bool(self.doubled or self.lost or self.false or self.stuck or self.pressed)

    def __str__(self) -> str:
        return json.dumps({**vars(self), "seconds": round(self.seconds)}, indent=1)


class Storm:
    """One storm; `run` lives through it."""

    def __init__(self, it: Chats, seed: int, *, each: dict[str, int], at_once: int = 8) -> None:
        self.it = it
        self.chance = random.Random(seed)
        self.at_once = at_once
        self.plan = [victim for victim, count in each.items() for _ in range(count)]
        self.chance.shuffle(self.plan)
        self.told = Told(seed)
        self.tasks: dict[str, str] = {}
        self.verdicts: dict[str, str] = {}
        self.settled: set[str] = set()
        self.after = "0"
        self.number = 0
        self.began = time.monotonic()

    # -- the person ------------------------------------------------------------------

    def answer(self, prompt: str) -> Answer:
        """What the site says: a task is done in the third turn of a conversation. On the lab's thread."""
        taken = self.it.lab.site.accepted
        mine = next((turn for turn in reversed(taken) if turn.text == prompt), None)
        count = sum(turn.conversation == mine.conversation for turn in taken) if mine else 1
        word = "complete" if count >= TURNS else "working"
        lines = [f"status: {word}", f"summary: turn {count}", f"progress: step {count}", "evidence: done"]
        pace = random.Random(prompt).random() * 0.4
        return Answer("Here it is.\n\n```tenuto\n" + "\n".join(lines) + "\n```\n", 5, pace)

    def begin(self) -> None:
        """One more task."""
        self.number += 1
        objective = f"Storm {self.told.seed}, task {self.number}: three steps."
        self.tasks[self.it.begin(objective)] = "begun"

    def tend(self, *, more: bool = True) -> None:
        """Settle what stands in attention, see which tasks are over, and begin others in their places."""
        for item in self.it.ask("attention")["items"]:
            self.settle(item)
        open_now = {row["id"] for row in self.it.ask("task.list", unfinished="true")["tasks"]}
        for task in [task for task, state in self.tasks.items() if state not in OVER and task not in open_now]:
            self.tasks[task] = str(self.it.ask("task.show", task=task)["task"]["state"])
            self.told.ended[self.tasks[task]] += 1
        while more and sum(state not in OVER for state in self.tasks.values()) < self.at_once:
            self.begin()

    def settle(self, item: dict[str, Any]) -> None:
        """Do what a person does about one item: look at the site, and say what is there."""
        task, kind, name = item["task"], str(item["kind"]), f"{item['task']} {item['kind']} {item['since']}"
        if name not in self.settled:
            self.settled.add(name)
            self.told.attention[f"{kind}: {generic(str(item['question']))}"] += 1
        if task not in self.tasks:
            return
        try:
            if kind == "ambiguous command":
                command = next(word for word in item["mend"].split() if word.startswith("c-"))
                taken = any(command in MARKER.findall(turn.text) for turn in self.it.lab.accepted())
                self.verdicts[command] = "happened" if taken else "not-happened"
                self.it.ask("command.release", command=command, verdict=self.verdicts[command])
            elif kind == "stalled":
                self.it.ask("task.resume", task=task, stalled=True)
            elif kind == "human wait":
                self.it.ask("task.answer", task=task, answer="Go on.")
        except Failure as failure:
            if failure.code not in ("conflict", "not_found", "mistake", "refused"):
                raise
            self.told.slow.append(f"{kind}: {failure}"[:300])

    # -- the storm -------------------------------------------------------------------

    def moment(self) -> None:
        """Wait for the instant of the next kill: something of a kind happens, and then a while passes."""
        kind = self.chance.choice(INSTANTS)
        delay = self.chance.random() * LONGEST * self.chance.choice((0.05, 0.3, 1.0))
        end = time.monotonic() + (EVENT if kind != "whenever" else 0)
        self.passed(kind)
        tended = time.monotonic()
        while time.monotonic() < end and not self.passed(kind):
            time.sleep(0.1)
            if time.monotonic() - tended > TEND:
                self.tend()
                tended = time.monotonic()
        time.sleep(delay)

    def passed(self, kind: str) -> bool:
        """Whether an event of that kind was written since this was last asked."""
        found = False
        while True:
            page = self.it.ask("events", after=self.after, limit=200)
            found = found or any(row["kind"] == kind for row in page["events"])
            self.after = str(page["last"])
            if not page["events"]:
                return found

    def kill(self, victim: str) -> bool:
        """End one of them as a crash does; false when there was nothing to be ended."""
        try:
            return self.killed(victim)
        except Wrong:  # it went by itself a moment before
            return False

    def killed(self, victim: str) -> bool:
        """As `kill`; Wrong where the browser knows it no more."""
        browser = self.it.browser
        match victim:
            case "background":
                return browser.kill_background()
            case "tab":
                shown = sorted(url for url in browser.tabs() if "chatgpt.com/" in url)
                return bool(shown) and browser.close_tabs(self.chance.choice(shown)) > 0
            case "supervisor":
                self.it.kill_supervisor()
                time.sleep(self.chance.random())
                self.it.start_supervisor()
            case _:
                browser.kill()
                time.sleep(self.chance.random())
                browser.start()
        return True

    def run(self, seconds: float) -> Told:
        """Kill by the plan until it is done or the time is over; then let everything come to its end, and judge."""
        self.it.lab.answers(self.answer)
        while self.plan and time.monotonic() - self.began < seconds:
            self.tend()
            self.moment()
            victim = next((each for each in dict.fromkeys(reversed(self.plan)) if self.kill(each)), None)
            if victim is not None:
                del self.plan[len(self.plan) - 1 - self.plan[::-1].index(victim)]
                self.told.kills[victim] += 1
                if sum(self.told.kills.values()) % 10 == 0:
                    self.say()
        self.calm()
        self.judge()
        self.told.seconds = time.monotonic() - self.began
        return self.told

    def say(self) -> None:
        """How it stands, for whoever waits."""
        self.told.turns = len(self.it.lab.accepted())
        self.told.seconds = time.monotonic() - self.began
        counted = Counter(MARKER.findall(turn.text)[-1] for turn in self.it.lab.accepted() if "[tenuto:" in turn.text)
        self.told.doubled = {command: count for command, count in counted.items() if count > 1}
        sys.stderr.write(f"{json.dumps(vars(self.told), default=str)}\n")
        sys.stderr.flush()

    def calm(self, patience: float = 600.0) -> None:
        """After the last kill everything ends, or stands in attention; what does neither is stuck."""
        end = time.monotonic() + patience
        while time.monotonic() < end and any(state not in OVER for state in self.tasks.values()):
            self.tend(more=False)
            time.sleep(0.3)
        for task, state in self.tasks.items():
            if state not in OVER:
                why = self.it.ask("task.explain", task=task)
                self.told.stuck.append(json.dumps({"task": task, "explain": why})[:2000])

    def judge(self) -> None:
        """Hold what the site's server accepted against what the registry believes."""
        accepted = self.it.lab.accepted()
        self.told.turns = len(accepted)
        self.told.pressed = self.it.lab.pressed()
        marked = [MARKER.findall(turn.text) for turn in accepted]
        self.told.false += [
            f"a turn without a marker: {turn.text[:80]}" for turn in accepted if "[tenuto:" not in turn.text
        ]
        taken = Counter(found[-1] for found in marked if found)
        self.told.doubled = {command: count for command, count in taken.items() if count > 1}
        known: dict[str, str] = {}
        for task in self.tasks:
            for row in self.it.ask("command.list", task=task)["commands"]:
                if row["kind"] == "send":
                    known[row["id"]] = row["state"]
        for command, state in known.items():
            if state == "acknowledged" and not taken[command]:
                self.told.false.append(f"{command} is believed to have happened, and did not")
            if state == "failed" and taken[command]:
                self.told.false.append(f"{command} is believed not to have happened, and did")
            if self.verdicts.get(command) == "not-happened" and taken[command]:
                self.told.false.append(f"{command} was taken after its person had looked")
        for command in taken:
            if known.get(command, "unknown") not in ("acknowledged", "released", "ambiguous"):
                self.told.lost.append(f"{command} was taken, and is {known.get(command, 'unknown')}")


def generic(question: str) -> str:
    """A sentence without what is only this task's."""
    return " ".join("…" if any(one.isdigit() for one in word) else word for word in question.split())[:160]


def storm(folder: Path, kind: str, seed: int, each: dict[str, int], at_once: int, seconds: float) -> Told:
    """One storm in a world of its own."""
    with chats(folder, kind, SETTINGS) as it:
        return Storm(it, seed, each=each, at_once=at_once).run(seconds)


def main() -> int:
    """One storm from the command line; what it came to is printed."""
    asked = argparse.ArgumentParser(prog="python -m tests.extension.storm")
    asked.add_argument("kind", choices=("chromium", "firefox"))
    asked.add_argument("--each", type=int, default=25)
    asked.add_argument("--only", choices=VICTIMS, action="append")
    asked.add_argument("--seed", type=int, default=7)
    asked.add_argument("--at-once", type=int, default=8)
    asked.add_argument("--seconds", type=float, default=3600.0)
    given = asked.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no browser is left behind
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        each = dict.fromkeys(given.only or VICTIMS, given.each)
        told = storm(Path(folder), given.kind, given.seed, each, given.at_once, given.seconds)
    sys.stdout.write(f"{told}\n")
    return int(told.broken)


if __name__ == "__main__":
    raise SystemExit(main())
