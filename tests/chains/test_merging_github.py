"""A chain whose units are issues and whose merges are GitHub's: the real client library, and a host that falls silent.

Every question and every answer is judged by GitHub's own description. Whatever is not answered, each pull request is
merged once and each issue is told of it once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.github import TOKEN, PlayedGitHub
from tests.support.merging import MergingChain, Outside, merging_chain
from tests.support.world import OPERATOR, SetClock, World, world

from tenuto.core import authority
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chains import HandOff
from tenuto.model.chain import Outcome, SourcePlace
from tenuto.model.command import CommandKind
from tenuto.model.lifecycle import ChainState, CommandState
from tenuto.sources.finding import GitHubForges, SourceFinder
from tenuto.sources.github import api
from tenuto.sources.github.api import Account
from tenuto.sources.github.doubts import Doubts

pytestmark = pytest.mark.anyio


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedGitHub]:
    monkeypatch.setattr(api, "PATIENCE", 2.0)
    monkeypatch.setattr(api, "BREATH", 0.01)
    with PlayedGitHub().serving() as made:
        yield made
    assert made.wrong == []


@pytest.fixture
async def it(tmp_path: Path, hub: PlayedGitHub) -> AsyncIterator[tuple[World, Outside]]:
    outside, told = Outside(tmp_path), Account(api=hub.url, token=TOKEN)

    def hosts(clock: SetClock) -> Hosts:
        return replace(outside.hosts(clock), forges=GitHubForges(told))

    sources = SourceFinder({}, told, Doubts(lambda: 0.0, 0.0))
    async with world(tmp_path, hosts=hosts, sources=sources) as made:
        yield made, outside


def handed(hub: PlayedGitHub, chain: MergingChain, number: int, issue: int) -> None:
    """An agent opens a pull request for its issue."""
    branch = f"{authority.namespace(chain.id)}{issue}-1"
    hub.pull(number, branch, f"{number:040x}", f"For issue {issue}.\n{authority.chain_marker(chain.id)}")


async def brought(chain: MergingChain, number: int) -> None:
    task = chain.links[-1].task_id
    await chain.world.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, f"pull {number}", pull=number))
    await chain.gated()
    await chain.said()


@pytest.mark.parametrize("kind", ["plain", "silence", "broken", "502"])
async def test_issues_are_worked_merged_and_closed_once_each(
    it: tuple[World, Outside], hub: PlayedGitHub, kind: str
) -> None:
    for number in (1, 2):
        hub.issue(number, "unit")
    source = SourcePlace("github", "some/where", "label:unit")
    chain = await merging_chain(*it, source=source)
    assert chain.links[-1].unit == "#1"
    for issue in (1, 2):
        if kind != "plain":
            hub.fail("PUT", "merge$", kind, after=True)
            hub.fail("POST", "comments$", kind, after=True)
        handed(hub, chain, 10 + issue, issue)
        await brought(chain, 10 + issue)
        for _ in range(3):
            await chain.later(31)
    assert chain.chain.state is ChainState.COMPLETE, chain.reason
    assert [link.unit for link in chain.links] == ["#1", "#2"]
    assert hub.took_effect("PUT", "merge$") == 2
    said = {number: [row["body"] for row in rows] for number, rows in hub.repo.comments.items()}
    assert {number: len(rows) for number, rows in said.items()} == {1: 2, 2: 2}, "who works on it, and what came of it"
    assert all("tenuto:claim" in rows[0] and "tenuto:record" in rows[1] for rows in said.values())
    assert {row["state"] for row in hub.repo.issues.values()} == {"closed"}
    merges = [one for one in chain.world.ledger.commands(100) if one.kind is CommandKind.MERGE]
    assert [one.state for one in merges] == [CommandState.ACKNOWLEDGED] * 2


async def test_a_limit_is_waited_for_and_a_merge_on_the_page_is_seen(
    it: tuple[World, Outside], hub: PlayedGitHub
) -> None:
    hub.issue(1, "unit")
    chain = await merging_chain(*it, source=SourcePlace("github", "some/where", "issues:1"))
    handed(hub, chain, 11, 1)
    task = chain.links[-1].task_id
    await chain.world.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, "pull 11", pull=11))
    hub.fail("GET", "pulls/11$", "secondary")
    asked = len(hub.seen)
    await chain.later(31)
    assert "limits how often" in chain.reason
    await chain.later(3)
    assert len([one for one in hub.seen[asked:] if one[1].endswith("/pulls/11")]) == 1, "not before it may be asked"
    hub.merged(11, "c" * 40)
    await chain.later(31)
    assert hub.took_effect("PUT", "merge$") == 0
    assert any("merged by somebody else" in item.question for item in chain.world.desk.attention())
    assert chain.chain.state is ChainState.COMPLETE
