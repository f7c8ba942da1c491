"""Chains that advance themselves on the stage of a crash: a bare remote that counts what is pushed to its base.

A unit is worked in a worktree, gated and reviewed at one commit, and merged by one command. The remote itself writes
down every push to its base with the marker of the command it came by, so that a merge that was asked for twice is
seen whatever the registry says. The person only stands in for the reviewer's voice, and for who throws the switch.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from pathlib import Path

from tenuto.engine.calling import Caller
from tenuto.engine.chaining.asked import MergeWish
from tenuto.engine.chains import Start
from tenuto.model.chain import Caps, SourcePlace
from tenuto.model.command import CommandKind
from tenuto.model.faults import Conflict, Mistake, Refused
from tenuto.model.forge import ForgePlace
from tenuto.model.ids import ChainId
from tenuto.model.lifecycle import AttemptState, ChainState, CommandState, ProposalState, WorktreeState
from tenuto.model.merging import Verdict
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent
from tenuto.proof import chains
from tenuto.proof.person import Person
from tenuto.proof.stage import Stage

#: In its worktree the agent commits its unit and pushes it; in a checkout without a branch it is the reviewer.
WORKS = (
    "if [ -e .git ]; then b=$(git symbolic-ref --short -q HEAD);"
    ' if [ -n "$b" ]; then c=${b#tenuto/}; c=${c%%/*};'
    " echo x > unit; git add unit; git diff --cached --quiet || git -c user.name=a -c user.email=a@b.c commit -q"
    ' -m unit -m "[tenuto-chain:$c]"; git push -q -f origin HEAD; else await "said.$TENUTO_TASK"; fi; fi'
)
#: Every push to the base, by the marker in its message: run by the remote before it takes one.
COUNTS = """\
#!/bin/sh
[ "$1" = refs/heads/main ] && git log -1 --format=%B "$3" | grep -o '\\[tenuto:c-[^]]*\\]' >> {merges}
exit 0
"""


def remote(stage: Stage) -> None:
    """A queue of one unit, and a bare remote that counts."""
    chains.repository(stage)
    hook = stage.home / "bare.git" / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(COUNTS.format(merges=shlex.quote(str(stage.home / "merges"))), "utf-8")
    os.chmod(hook, 0o700)  # noqa: PTH101 - one way to say it for a file that was just made


async def walk(person: Person) -> None:
    """A chain that merges its one unit, to its end."""
    chain = await _begun(person)
    await chains.until(person, lambda: _over(person, chain), lambda: _meanwhile(person, chain))
    _judged(person, chain)


async def revoked(person: Person) -> None:
    """The same, while the switch is thrown between the moment a merge is written down and the moment it is asked for.

    Whoever threw it lets the chains go on when that merge is known not to have been.
    """
    chain = await _begun(person)

    async def meanwhile() -> None:
        await _meanwhile(person, chain)
        switch = _switch(person.stage)
        merges = [one for one in person.desk.commands() if one.kind is CommandKind.MERGE]
        if switch.exists() and any(one.state is CommandState.FAILED for one in merges):
            person.stage.mark("lifted")
            switch.unlink()

    await chains.until(person, lambda: _over(person, chain), meanwhile)
    _judged(person, chain)


def throw(stage: Stage) -> None:
    """Throw the switch outside, once in the life of a stage."""
    if not (stage.home / "lifted").exists():
        _switch(stage).touch(mode=0o600)


def _switch(stage: Stage) -> Path:
    return stage.settings({}).self_advancing_stop


async def _begun(person: Person) -> ChainId:
    stage = person.stage
    agent = Agent("program", (str(stage.agent),), resumable=True)
    wish = MergeWish(ForgePlace("git", str(stage.home / "bare.git")), gate=(str(stage.check),), reviewer=agent)
    asked = Start(
        goal="All of them",
        repo=str(stage.home / "bare.git"),
        selector="all",
        source=SourcePlace("queue", str(stage.home / "queue.json")),
        cwd=str(stage.home / "clone"),
        caps=Caps(tasks=40),
        agent=agent,
        authorization=(("merge", True),),
        merging=wish,
        worktrees=True,
    )
    return await chains.begun(person, asked)


async def _meanwhile(person: Person, chain: ChainId) -> None:
    """The reviewer passes what it is asked about, while its turn is under way and by its own name."""
    for proposal in person.ledger.proposals(chain, 5):
        for review in person.ledger.reviews(proposal.id, 1):
            attempts = person.ledger.attempts(review.task_id, 1)
            if review.verdict is None and attempts and attempts[0].state is AttemptState.LIVE:
                lease = person.desk.task(review.task_id).lease_number
                voice = Caller(Role.AGENT, "its reviewer", review.task_id, lease)
                reviewing = person.desk.chains.merging.reviewing
                try:
                    await reviewing.verdict(voice, review.task_id, Verdict.PASS, review.head, "")
                except (Refused, Mistake, Conflict):
                    continue
            elif review.verdict is not None:
                person.stage.mark(f"said.{review.task_id}")


def _over(person: Person, chain: ChainId) -> bool:
    left = any(one.state is WorktreeState.READY for one in person.desk.chains.worktrees(chain))
    return person.desk.chains.chain(chain).state is not ChainState.OPEN and not left and chains.quiet(person)


def _judged(person: Person, chain: ChainId) -> None:
    """Each unit merged by one command, which was asked for once; and the base has exactly those."""
    chains.judged(person, chain)
    stage = person.stage
    pushed = (stage.home / "merges").read_text("ascii").split()
    history = chains.git(stage, f"--git-dir={stage.home / 'bare.git'}", "log", "--first-parent", "--format=%B", "main")
    stand = re.findall(r"\[tenuto:(c-\S+)\]", history)
    commands = {one.id: one for one in person.desk.commands() if one.kind is CommandKind.MERGE}
    merged = [name for name, one in commands.items() if one.state is CommandState.ACKNOWLEDGED]
    proposals = [one for one in person.ledger.proposals(chain, 20) if one.state is ProposalState.MERGED]
    if [count for count in Counter(pushed).values() if count > 1] or sorted(stand) != sorted(merged):
        raise AssertionError(f"asked for {pushed}, in the base {stand}, by the rows {commands}")
    if len(merged) != len(proposals) or len(merged) != 1:
        raise AssertionError(f"merged {merged}, handed in {proposals}")
