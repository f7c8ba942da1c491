"""The local gate: a program that has to end with 0 in a checkout of exactly the commit that is to be merged.

It is a command like every other: written before it is begun, carried by a host with a journal, and run again where it
came to no result. What it came to counts for that commit alone.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta

from tenuto.core.authority import Held, Stop
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.proposals import Proposals
from tenuto.engine.cycle import Cycle
from tenuto.model.chain import Chain
from tenuto.model.change import Commit, Committed
from tenuto.model.command import Command, CommandKind
from tenuto.model.evidence import CommandFacts, Mark
from tenuto.model.fact import Fact, FactKind
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import CommandState
from tenuto.model.merging import Gate, Mandate, Proposal
from tenuto.ports import Check, Checkout, Placed

#: How soon a gate that runs is looked at again, when nothing rings before.
LOOK = timedelta(seconds=30)


def checkout_of(chain: Chain, mandate: Mandate, proposal: Proposal) -> Checkout:
    """The commit a proposal stands at, as it is wanted for its gate and its reviewer."""
    remote = mandate.forge.location if mandate.forge.kind == "git" else None
    name = f"{proposal.id}-{proposal.head[:12]}"
    return Checkout(name, chain.cwd, proposal.head, proposal.branch, proposal.number, remote)


class Gating:
    """Runs gates and reads what they came to."""

    def __init__(self, books: Books, proposals: Proposals, cycle: Cycle) -> None:
        self._books = books
        self._proposals = proposals
        self._cycle = cycle

    async def step(self, chain: Chain, mandate: Mandate, proposal: Proposal) -> Held | None:
        """Why the gate does not hold yet; None: it is green at the proposal's commit, or something was written."""
        command = None if proposal.gate_command is None else self._books.ledger.command(proposal.gate_command)
        if command is None or proposal.gate_head != proposal.head:
            if command is not None and command.open:
                self._books.help.ring(command.task_id)
                return _runs("the gate of an earlier commit still runs")
            return await self._begin(chain, mandate, proposal)
        if command.open:
            self._books.help.ring(command.task_id)
            return _runs(f"the gate runs at {proposal.head[:12]}")
        if command.state is CommandState.ACKNOWLEDGED and (code := await self._code(command)) is not None:
            gate = Gate.GREEN if code == 0 else Gate.RED
            reason = None if gate is Gate.GREEN else f"{' '.join(mandate.gate)[:200]} ended with {code}"
            told = self._proposals.moved(proposal, gate=gate, reason=reason)
            fact = self._proposals.fact(FactKind.PROPOSAL_GATED, chain, told, gate=gate)
            await self._proposals.put(chain, told, fact)
            return None
        tries = proposal.gate_tries + 1
        if tries >= self._books.snapshot(proposal.task_id).run.policy.check_tries:
            why = f"the gate came to no result {tries} times (last: {command.detail or command.state})"
            return Held("gate", why, "a gate that ends", Stop.DOWN)
        again = self._proposals.moved(proposal, gate_command=None, gate_head=None, gate_tries=tries)
        await self._proposals.put(chain, again)
        return None

    async def _begin(self, chain: Chain, mandate: Mandate, proposal: Proposal) -> Held | None:
        """Arm the gate at the proposal's commit, and hand it over."""
        hosts = self._proposals.hosts
        executor = hosts.executors.get(hosts.gate)
        if executor is None or hosts.checkouts is None:
            return Held("gate", "nothing here runs a gate", "a supervisor with a host", Stop.PERSON)
        try:
            cwd = await asyncio.to_thread(hosts.checkouts.make, checkout_of(chain, mandate, proposal))
        except OSError as why:
            return Held("gate", str(why), "the commit is within reach", Stop.WAIT, timedelta(seconds=30))
        snapshot = self._books.snapshot(proposal.task_id)
        policy, now = snapshot.run.policy, self._books.clock.now()
        command_id = CommandId(self._books.mint.new("command"))
        place: object = executor
        told = repr((chain.id, proposal.id, proposal.head, mandate.gate))
        command = Command(
            id=command_id,
            revision=1,
            kind=CommandKind.GATE,
            task_id=proposal.task_id,
            attempt_id=None,
            conversation_id=None,
            executor=hosts.gate,
            state=CommandState.ARMED,
            epoch=self._books.epoch,
            fence=hashlib.sha256(told.encode()).hexdigest(),
            scopes=(f"gate:{proposal.id}",),
            created_at=now,
            deadline=now + policy.check_limit,
            armed_at=now,
            place=place.place if isinstance(place, Placed) else None,
        )
        gated = self._proposals.moved(
            proposal, gate_command=command_id, gate_head=proposal.head, gate=None, reason=None
        )
        looked = replace(chain, revision=chain.revision + 1, look_at=now + LOOK)
        fact = Fact(FactKind.COMMAND_ARMED, chain.run_id, proposal.task_id,
                    {"command": command_id, "kind": CommandKind.GATE})  # fmt: skip
        commit = Commit(puts=(command, gated, looked), facts=(fact,), holds=((command.scopes[0], command_id),))
        agent = snapshot.task.agent
        order = Check(
            argv=mandate.gate,
            cwd=cwd,
            env=agent.env,
            given={"TENUTO_TASK": proposal.task_id, "TENUTO_HEAD": proposal.head},
            limit=policy.check_limit,
            grace=policy.interrupt_grace,
        )
        async with self._cycle.alone(proposal.task_id):
            self._books.fuse.burn("gate.before_commit")
            outcome = await self._books.ledger.commit(commit)
            if not isinstance(outcome, Committed):
                return None
            self._books.fuse.burn("gate.armed")
            for armed in outcome.armed:
                if self._cycle.holds():
                    await executor.perform(armed, order)
            self._books.fuse.burn("gate.handed_over")
        self._books.help.ring(proposal.task_id)
        return _runs(f"the gate runs at {proposal.head[:12]}")

    async def _code(self, command: Command) -> int | None:
        """What the gate's program ended with; None where it was cut short, or its journal does not say."""
        executor = self._proposals.hosts.executors.get(command.executor)
        if executor is None:
            return None
        facts = (await executor.look(command)).facts
        if not isinstance(facts, CommandFacts) or facts.mark is not Mark.ENDED or facts.ending is None:
            return None
        ending = facts.ending
        return ending.exit_code if ending.cut is None else None


def _runs(why: str) -> Held:
    return Held("gate", why, "its end", Stop.WAIT, LOOK)
