"""Pages that go away while they wait for news take none of it from the others, however often they are told to go."""

from __future__ import annotations

import asyncio

from tests.support.lab.state import Site

PATIENCE = 150.0


def test_pages_that_go_away_leave_the_others_their_news() -> None:
    """As a server does it whose page was closed: its wait is cancelled again and again until it is gone."""

    async def lived() -> list[object]:
        site = Site()
        waits = [asyncio.create_task(site.after(site.version, PATIENCE)) for _ in range(10)]
        for _ in range(4):
            await asyncio.sleep(0)
            for wait in waits[:5]:
                wait.cancel()
        site.touch()
        return list(await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), PATIENCE))

    came = asyncio.run(lived())
    assert all(isinstance(each, asyncio.CancelledError) for each in came[:5])
    assert came[5:] == [None] * 5
