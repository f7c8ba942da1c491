"""Chains on the stage of a crash: sources and repositories, the person who merges, and what has to be true at the end.

The chain is begun under one key in every life, and its supervisor looks after it. A unit that was given twice, a
record that is missing, or a worktree that is left is a fault of ours, and ends the life as one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable

from tenuto.engine.chains import Opening, Start
from tenuto.model.chain import Caps, Chain, Outcome, SourcePlace
from tenuto.model.faults import Mistake, Refused
from tenuto.model.ids import ChainId
from tenuto.model.lifecycle import ChainState, PhaseState, WorktreeState
from tenuto.model.work import Agent
from tenuto.proof.person import BREATH, OPERATOR, Person
from tenuto.proof.stage import Stage

#: What an agent does in a worktree before it says that it is done; elsewhere it does nothing.
COMMITS = (
    "if [ -e .git ]; then echo x > unit; git add unit;"
    " git diff --cached --quiet || git -c user.name=a -c user.email=a@b.c commit -q -m unit;"
    " git push -q -f origin HEAD; fi"
)


def queue(stage: Stage, units: int = 2) -> None:
    """A queue of units in a file."""
    told = {"version": 1, "units": [{"id": f"u{number}"} for number in range(1, units + 1)]}
    (stage.home / "queue.json").write_text(json.dumps(told), "utf-8")


def repository(stage: Stage) -> None:
    """A queue of one unit, a bare remote with one commit, and a checkout of it."""
    queue(stage, 1)
    bare, clone = stage.home / "bare.git", stage.home / "clone"
    git(stage, "init", "-q", "--bare", "-b", "main", str(bare))
    git(stage, "clone", "-q", str(bare), str(clone))
    author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    git(stage, "-C", str(clone), *author, "commit", "-q", "--allow-empty", "-m", "a")
    git(stage, "-C", str(clone), "push", "-q", "origin", "HEAD:main")


def git(stage: Stage, *words: str) -> str:
    """What git says; empty where it fails."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *words], cwd=stage.home, check=False, capture_output=True, text=True, timeout=30, env=env
    )
    return done.stdout.strip()


async def walk(person: Person) -> None:
    """A chain over the queue, one unit after the other, to its end."""
    chain = await _begun(person, phases=False)
    await until(person, lambda: _chain(person, chain).state is not ChainState.OPEN and quiet(person))
    judged(person, chain)


async def phases(person: Person) -> None:
    """The same with a worktree and a pull request for each unit, which the person merges."""
    chain = await _begun(person, phases=True)

    def over() -> bool:
        now = _chain(person, chain)
        left = any(one.state is WorktreeState.READY for one in person.desk.chains.worktrees(chain))
        return now.state is not ChainState.OPEN and not left and quiet(person)

    merged: set[str] = set()
    await until(person, over, lambda: _merged(person, chain, merged))
    judged(person, chain)
    kept = [one for one in person.desk.chains.worktrees(chain) if one.state is not WorktreeState.GONE]
    if kept or not all(one.state is PhaseState.MERGED for one in person.desk.chains.phases(chain)):
        raise AssertionError(f"left: {kept}")


async def _begun(person: Person, *, phases: bool) -> ChainId:
    stage = person.stage
    asked = Start(
        goal="All of them",
        repo=str(stage.home / "bare.git"),
        selector="all",
        source=SourcePlace("queue", str(stage.home / "queue.json")),
        cwd=str(stage.home / "clone" if phases else stage.cwd),
        caps=Caps(tasks=40),
        agent=Agent("program", (str(stage.agent),), resumable=True),
        phases=phases,
    )
    return await begun(person, asked)


async def begun(person: Person, asked: Start) -> ChainId:
    """The one chain of a stage, begun once."""
    await person.once("chain", lambda key: person.desk.chains.start(OPERATOR, asked, key))
    (chain,) = person.desk.chains.chains()
    return chain.id


async def until(person: Person, over: Callable[[], bool], meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until it is over, and do meanwhile what only somebody outside does; the life's own limit bounds it."""
    while not over():
        told = meanwhile()
        if asyncio.iscoroutine(told):
            await told
        await asyncio.sleep(BREATH)


async def _merged(person: Person, chain: ChainId, merged: set[str]) -> None:
    """Record the pull request of a branch that was pushed, and merge it by moving the base to it, once in a life.

    It is done beside the supervisor, whose own looks share this process.
    """
    for link in person.desk.chains.links(chain):
        tree = next((one for one in person.desk.chains.worktrees(chain) if one.task_id == link.task_id), None)
        bare = f"--git-dir={person.stage.home / 'bare.git'}"
        if tree is None or link.recorded_at is not None or tree.branch in merged:
            continue
        asked = ("rev-parse", "--verify", "--quiet", f"refs/heads/{tree.branch}")
        head = await asyncio.to_thread(git, person.stage, bare, *asked)
        if head:
            try:
                await person.desk.chains.open_phase(OPERATOR, link.task_id, Opening(link.position))
            except (Refused, Mistake):
                continue
            await asyncio.to_thread(git, person.stage, bare, "update-ref", "refs/heads/main", head)
            merged.add(tree.branch)


def _chain(person: Person, chain: ChainId) -> Chain:
    return person.desk.chains.chain(chain)


def quiet(person: Person) -> bool:
    """Whether every task has ended, and nothing of any is under way."""
    return all(task.terminal for task in person.desk.tasks()) and not person.desk.commands(only_open=True)


def judged(person: Person, chain: ChainId) -> None:
    """Each unit once, in order, and the source says the same as the rows."""
    rows = json.loads((person.stage.home / "queue.json").read_text("utf-8"))["units"]
    links = [one for one in reversed(person.desk.chains.links(chain)) if one.outcome is Outcome.DONE]
    names, states = [row["id"] for row in rows], {row.get("state") for row in rows}
    now = _chain(person, chain)
    if [one.unit for one in links] != names or states != {"done"} or now.processed != len(names):
        raise AssertionError(f"units {[one.unit for one in links]}, source {rows}, {now}")
