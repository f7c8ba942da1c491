"""A real chain of phases over a real repository with a bare remote, while everybody is killed at random.

Each unit has a worktree, a commit and a merge by somebody else; one merge is reverted in the middle and comes back. In
the end each unit is in the base once, the queue names the commits of the history, and no worktree is left.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.e2e import phase_agent
from tests.storm.weather import Storm
from tests.support.gits import Remote, git, remote
from tests.support.home import Home

from tenuto.model.chain import Chain
from tenuto.model.lifecycle import ChainState

pytestmark = pytest.mark.only_on("linux")
AGENT = Path(phase_agent.__file__)
WAYS = ("merge", "squash", "rebase")
#: How each can be told: one commit is the same squashed or rebased, and in the same second even the same commit.
HOWS = {
    "merge": {"merge"},
    "squash": {"squash", "number"},
    "rebase": {"rebase", "squash", "forward"},
}


@dataclass
class Host:
    """Somebody who merges what is pushed, reverts one of it, and brings it back."""

    at: Remote
    chance: random.Random
    reverts: int
    merged: list[int] = field(default_factory=list)
    ways: dict[int, str] = field(default_factory=dict)
    undone: str | None = None
    noticed: bool = False
    back: bool = False

    def say(self, *words: str) -> str:
        return git(self.at.desk, *words)

    def turn(self) -> None:
        """Merge one pull request that is open, or deal with the revert."""
        self.say("fetch", "-q", "-f", "origin", "+refs/heads/main:refs/remotes/origin/main", "+refs/pull/*:refs/pull/*")
        self.say("checkout", "-q", "-B", "main", "origin/main")
        names = self.say("for-each-ref", "--format=%(refname)", "refs/pull/").splitlines()
        for number in sorted(int(name.split("/")[2]) for name in names):
            if number not in self.merged:
                self.merge(number)
                return
        if self.undone is None and self.reverts in self.merged:
            self.revert()
        elif self.undone is not None and self.noticed and not self.back:
            self.say("revert", "--no-edit", self.undone)
            self.say("push", "-q", "origin", "HEAD:main")
            self.back = True

    def merge(self, number: int) -> None:
        head, way = f"refs/pull/{number}/head", self.chance.choice(WAYS)
        match way:
            case "merge":
                self.say("merge", "-q", "--no-ff", "-m", f"Merge pull request #{number} from x/y", head)
            case "squash":
                self.say("merge", "-q", "--squash", head)
                self.say("commit", "-q", "-m", f"unit u{number:02} (#{number})")
            case _:
                self.say("cherry-pick", f"main..{head}")
        self.say("push", "-q", "origin", "HEAD:main")
        self.merged.append(number)
        self.ways[number] = way

    def revert(self) -> None:
        """Undo the merge of the unit that was chosen, wherever it stands in the history."""
        commit = self.say("log", "-1", "--format=%H", "--", f"unit-{self.reverts:02}.txt")
        self.say("revert", "--no-edit", commit)
        self.say("push", "-q", "origin", "HEAD:main")
        self.undone = self.say("rev-parse", "HEAD")


def chained(folder: Path, units: int, kills: int, seed: int, seconds: float) -> None:
    home, at = Home(folder), remote(folder)
    storm = Storm(folder, 0, seed)
    (folder / "home").mkdir(mode=0o700, exist_ok=True)
    (folder / "home" / "config.toml").write_text("[policy]\nreconcile_separation = 0.1\nfault_recoveries = 20\n")
    names = [f"u{number:02}" for number in range(1, units + 1)]
    queue = folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": name} for name in names]}))
    host, chance = Host(at, random.Random(seed), max(2, units // 2)), random.Random(seed + 1)
    storm._start()
    try:
        home.until("the supervisor", (folder / "home" / "state" / "api.sock").exists)
        made = home.json(
            "chain", "start", "--repo", str(at.bare), "--queue", str(queue), "--cwd", str(at.clone), "--resumable",
            "--program", f"{sys.executable} {AGENT}", "--max-tasks", str(4 * units), "--phases", "--attempt-cap", "20",
            "--file", "-", text="Add every file",
        )  # fmt: skip
        chain, until = made["result"]["chain"], time.monotonic() + seconds
        while not over(now := standing(storm)):
            if time.monotonic() > until:
                raise TimeoutError(f"not over after {seconds} s: {now}; killed {storm.killed}; {left(storm)}")
            host.noticed = host.noticed or "not part of the base any more" in (now.reason or "")
            host.turn()
            if sum(storm.killed.values()) < kills and chance.random() < 0.5:
                storm._strike(chance)
            storm._start()
            time.sleep(chance.random() * 0.4)
        judge(home, storm, at, chain, names, host)
        assert host.back, "the revert was noticed, and came back"
    finally:
        storm._end()


def standing(storm: Storm) -> Chain:
    """How the chain stands by its row, whoever leads."""
    reader = storm._reader()
    try:
        (chain,) = reader.chains(2)
        return chain
    finally:
        reader.close_readers()


def left(storm: Storm) -> str:
    """What has not ended, for whoever reads why it was not over in time."""
    reader = storm._reader()
    try:
        tasks = [f"{one.id} {one.state} {one.standing}" for one in reader.tasks(100, unfinished=True)]
        commands = [f"{one.id} {one.kind} {one.state} {one.detail}" for one in reader.commands(100, only_open=True)]
        return f"tasks {tasks}, commands {commands}"
    finally:
        reader.close_readers()


def over(chain: Chain) -> bool:
    return chain.state is not ChainState.OPEN and chain.look_at is None


def judge(home: Home, storm: Storm, at: Remote, chain: str, names: list[str], host: Host) -> None:
    """Each unit once, and the ledger equals the history."""
    told = home.json("chain", "status", chain)
    assert told["chain"]["state"] == "complete", told
    assert told["chain"]["processed"] == len(names)
    assert told["counts"] == {"done": len(names)}
    phases = home.json("phase", "status", chain)["phases"]
    assert [(one["unit"], one["pull"], one["state"]) for one in phases] == [
        (name, number, "merged") for number, name in enumerate(names, 1)
    ]
    history = git(at.bare, "rev-list", "main").split()
    rows = {row["id"]: row for row in json.loads((home.folder / "queue.json").read_text())["units"]}
    for one in phases:
        assert one["landed_as"] in history
        assert rows[one["unit"]]["state"] == "done"
        assert one["landed_as"] in rows[one["unit"]]["evidence"]
        assert one["how"] in HOWS[host.ways[one["pull"]]], (one, host.ways)
    files = git(at.bare, "ls-tree", "--name-only", "main").splitlines()
    assert [name for name in files if name.startswith("unit-")] == [f"unit-{name[1:]}.txt" for name in names]
    subjects = git(at.bare, "log", "--format=%s", "main").splitlines()
    done = [subject.split(" (#")[0] for subject in subjects if subject.startswith("unit ")]
    assert sorted(done) == [f"unit {name}" for name in names], "each unit was committed once"
    links = [link for link in told["links"] if link["outcome"] == "done"]
    assert len({link["unit"] for link in links}) == len(links)
    assert not home.json("command", "list", "--open")["commands"]
    trees = home.json("worktree", "list", "--chain", chain)["worktrees"]
    assert {tree["state"] for tree in trees} <= {"gone", "failed"}, trees
    assert git(at.clone, "worktree", "list").count("\n") == 0


@pytest.mark.timeout(600)
def test_phases_with_a_revert_while_everybody_is_killed(tmp_path: Path) -> None:
    chained(tmp_path, 4, 6, 3, 540)


@pytest.mark.prove
@pytest.mark.timeout(2400)
def test_forty_phases_and_sixty_kills(tmp_path: Path) -> None:
    chained(tmp_path, 40, 60, 4, 1800)
