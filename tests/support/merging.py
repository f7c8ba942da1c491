"""A played host of repositories, a played gate, and a chain that merges: everything but the registry is in memory.

The host is honest: it merges a pull request once, and only at the head it is told to expect. It counts what it was
asked and what it did, so that a test can say how many merges there were. `silent` makes it do what it is asked and then
not answer; `deaf` makes it not even hear.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.world import NAME, OPERATOR, Played, SetClock, World

from tenuto.core import authority
from tenuto.engine.calling import Caller
from tenuto.engine.chaining.asked import MergeWish
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chaining.merging import Merging
from tenuto.engine.chains import HandOff, Start
from tenuto.model.chain import Caps, Chain, Link, Outcome, SourcePlace
from tenuto.model.forge import (
    BaseFacts,
    Doubtful,
    ForgePlace,
    Look,
    Merge,
    MergeAnswer,
    Merged,
    NoPull,
    NotMerged,
    PullFacts,
    PullState,
    Unreachable,
)
from tenuto.model.ids import ChainId, TaskId
from tenuto.model.merging import Proposal, Review, Verdict
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent
from tenuto.ports import Checkout, Forge


def commit(number: int) -> str:
    """A whole commit that can be told apart."""
    return f"{number:040x}"


@dataclass
class PlayedForge:
    """Implements `ports.Forge` and `ports.Forges` in memory."""

    requests: dict[int, PullFacts] = field(default_factory=dict)
    default: str = "main"
    asked: list[Merge] = field(default_factory=list)
    done: list[Merge] = field(default_factory=list)
    silent: bool = False
    deaf: bool = False
    out: str | None = None
    refuses: NotMerged | None = None
    over: float = 60.0

    def open(self, place: ForgePlace) -> Forge:
        return self

    def base(self, branch: str | None) -> BaseFacts | Unreachable:
        if self.out is not None:
            return Unreachable(self.out, 3)
        return BaseFacts(branch or self.default, commit(1))

    def pull(self, number: int) -> Look:
        if self.out is not None:
            return Unreachable(self.out, 3)
        return self.requests.get(number, NoPull(f"there is no pull request {number}"))

    def pulls(self, branch: str) -> tuple[PullFacts, ...] | Unreachable:
        if self.out is not None:
            return Unreachable(self.out, 3)
        return tuple(one for one in self.requests.values() if one.branch == branch)

    def merge(self, order: Merge) -> MergeAnswer:
        self.asked.append(order)
        if self.out is not None:
            return NotMerged(self.out, after=3)
        if self.refuses is not None:
            return self.refuses
        if self.deaf:
            return Doubtful("it did not answer", 1)
        there = self.requests[order.number]
        if there.state is not PullState.OPEN or there.head != order.head:
            return NotMerged("its head is another", moved=True)
        self.done.append(order)
        merged = commit(1000 + len(self.done))
        self.requests[order.number] = replace(there, state=PullState.MERGED, merged_as=merged, marker=order.marker)
        return Doubtful("it did not answer", 1) if self.silent else Merged(merged)

    # -- what a test does

    def propose(self, chain: ChainId, number: int, head: int = 77, **more: Any) -> PullFacts:
        """Open a pull request of a chain, or push to it."""
        made = PullFacts(
            number=number,
            state=PullState.OPEN,
            branch=f"{authority.namespace(chain)}u{number}",
            head=commit(head),
            base=self.default,
            url=f"https://host.example/pull/{number}",
            body=f"Mends it.\n{authority.chain_marker(chain)}",
        )
        self.requests[number] = replace(made, **more)
        return self.requests[number]

    def change(self, number: int, **more: Any) -> None:
        self.requests[number] = replace(self.requests[number], **more)


@dataclass
class PlayedCheckouts:
    """Implements `ports.Checkouts`: every commit is a directory that is there."""

    folder: Path
    made: list[Checkout] = field(default_factory=list)
    broken: bool = False

    def make(self, wanted: Checkout) -> str:
        if self.broken:
            raise OSError("the commit is not here")
        self.made.append(wanted)
        return str(self.folder)

    def clear(self, beginning: str) -> None:
        self.made = [one for one in self.made if not one.name.startswith(beginning)]


@dataclass
class Outside:
    """Everything that is played for merging."""

    folder: Path
    forge: PlayedForge = field(default_factory=PlayedForge)
    gates: list[Played] = field(default_factory=list)
    off: str | None = None

    @property
    def gate(self) -> Played:
        return self.gates[0]

    def hosts(self, clock: SetClock) -> Hosts:
        self.gates.append(Played(clock, name="host"))
        self.checkouts = PlayedCheckouts(self.folder)
        return Hosts(self.forge, self.checkouts, {"host": self.gate}, switch=lambda: self.off)


@dataclass
class MergingChain:
    """A chain that merges, and the shortest way to each of its moments."""

    world: World
    outside: Outside
    id: ChainId
    queue: Path

    @property
    def merging(self) -> Merging:
        return self.world.desk.chains.merging

    @property
    def chain(self) -> Chain:
        chain = self.world.ledger.chain(self.id)
        assert chain is not None
        return chain

    @property
    def reason(self) -> str:
        return self.chain.reason or ""

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(reversed(self.world.desk.chains.links(self.id)))

    @property
    def proposal(self) -> Proposal:
        return self.world.ledger.proposals(self.id, 1)[0]

    @property
    def review(self) -> Review:
        return self.world.ledger.reviews(self.proposal.id, 1)[0]

    def units(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in json.loads(self.queue.read_text())["units"]}

    async def hand_in(self, number: int = 1, head: int = 77, **more: Any) -> TaskId:
        """The task of the last link hands its pull request in."""
        task = self.links[-1].task_id
        self.outside.forge.propose(self.id, number, head, **more)
        await self.world.desk.chains.hand_off(
            OPERATOR, task, HandOff(Outcome.DONE, evidence=f"pull {number}", pull=number)
        )
        return task

    async def gated(self, code: int = 0) -> None:
        """The gate that runs ends."""
        task = self.links[-1].task_id
        await self.world.settle(task)
        command = self.proposal.gate_command
        assert command is not None
        self.outside.gate.finish(command, exit_code=code, block=False)
        await self.world.settle(task)
        await self.world.desk.chains.tend()

    async def reviewer(self) -> Caller:
        """The reviewer's own voice, in a turn of its own."""
        task = self.review.task_id
        await self.world.settle(task)
        return Caller(Role.AGENT, "reviewer", task, self.world.desk.task(task).lease_number)

    async def said(self, verdict: Verdict = Verdict.PASS, findings: str = "", head: str | None = None) -> None:
        """The reviewer comes to a verdict, and the chain goes on."""
        caller = await self.reviewer()
        await self.merging.reviewing.verdict(caller, self.review.task_id, verdict, head or self.review.head, findings)
        await self.world.desk.chains.tend()

    async def later(self, seconds: float) -> None:
        """Time passes, and whoever looks after chains looks."""
        from datetime import timedelta

        self.world.clock.move(timedelta(seconds=seconds))
        await self.world.desk.chains.tend()


async def merging_chain(it: World, outside: Outside, count: int = 3, **more: Any) -> MergingChain:
    """A chain of a few units that merges what is handed in."""
    queue = it.folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": f"u{n}"} for n in range(1, count + 1)]}))
    wish = MergeWish(
        forge=ForgePlace("github", "github.com/some/where"),
        gate=("./check",),
        reviewer=Agent(NAME, ("reviewer", "--go"), resumable=True),
    )
    changed = {name: more.pop(name) for name in tuple(more) if name in MergeWish.__dataclass_fields__}
    asked = Start(
        goal="Mend everything",
        repo="github.com/some/where",
        selector="all",
        source=SourcePlace("queue", str(queue)),
        cwd=str(it.folder),
        caps=Caps(units=100),
        authorization=(("merge", True),),
        agent=Agent(NAME, ("agent", "--go"), resumable=True),
        merging=replace(wish, **changed),
    )
    done = await it.desk.chains.start(OPERATOR, replace(asked, **more), "begin")
    return MergingChain(it, outside, ChainId(str(done.result["chain"])), queue)
