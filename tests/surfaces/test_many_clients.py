"""Many callers at once, on the feed and on the API, beside a run that goes on: nothing is lost, and nothing grows.

The server is a process of its own with a real wheel, real hosts and a real agent program; callers are in this one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil
import pytest

pytestmark = pytest.mark.anyio
READY = 60.0
AGENT = """\
import sys, time
sys.stdin.read()
time.sleep(0.2)
print("```tenuto\\nstatus: working\\nsummary: on it\\n```")
"""


@dataclass
class Served:
    """A supervisor of its own home, and what is needed to call it."""

    process: subprocess.Popen[bytes]
    socket: Path
    token: str
    base: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("many")
    port = free_port()
    environment = {**os.environ, "TENUTO_HOME": str(home), "TENUTO_PORT": str(port)}
    (home / "config.toml").write_text("slots = 4\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "tenuto.wiring.resident"], env=environment, stderr=subprocess.DEVNULL
    )
    token = home / "state" / "operator.token"
    try:
        until = time.monotonic() + READY
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=READY) as client:
            while True:
                try:
                    if client.get("/healthz").status_code == 200 and token.exists():
                        break
                except httpx2.TransportError:
                    pass
                if time.monotonic() > until:
                    raise TimeoutError("the supervisor did not come up")
                assert process.poll() is None
                time.sleep(0.1)
        yield Served(process, home / "state" / "api.sock", token.read_text().strip(), f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Tally:
    """What the callers saw: how long each answer took in seconds, what each feed told, and what went wrong."""

    took: list[float] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    feeds: list[list[int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    again: int = 0

    def p99(self) -> float:
        return sorted(self.took)[int(len(self.took) * 0.99)]


async def crowd(served: Served, callers: int, seconds: float, tmp_path: Path) -> Tally:
    """Half of them read the feed, the others say words to a running task and look at it, as fast as they may."""
    tally = Tally()
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(base_url=served.base, headers=served.headers, timeout=120, limits=limits) as client:
        order = {
            "objective": "go on",
            "cwd": str(tmp_path),
            "agent": {"argv": [sys.executable, str(agent)], "resumable": True},
            "policy": {"stall-pause": 100000, "stall-warn": 100000},
        }
        made = await client.post("/api/v1/runs", json=order, headers={"Idempotency-Key": f"run-{callers}"})
        assert made.status_code == 201, made.text
        task = made.json()["result"]["task"]
        before = (await client.get("/api/v1/events", params={"limit": 1000})).json()["last"]
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            feeds = [group.create_task(follow(client, tally, before, over)) for _ in range(callers // 2)]
            loop = asyncio.get_running_loop()
            end = loop.time() + seconds
            async with asyncio.TaskGroup() as asking:
                for number in range(callers - callers // 2):
                    asking.create_task(ask(client, tally, task, number, end))
            await client.post(f"/api/v1/tasks/{task}/cancel", headers={"Idempotency-Key": f"cancel-{callers}"})
            last = await quiet(client)
            async with asyncio.timeout(60):
                while any(not told or told[-1] < last for told in tally.feeds):  # noqa: ASYNC110 - feeds tell nobody
                    await asyncio.sleep(0.05)
            over.set()
            for feed in feeds:
                feed.cancel()
        events = [one for after in range(before, last, 1000) for one in await page(client, after)]
    numbers = [int(str(one["n"])) for one in events]
    assert numbers == list(range(before + 1, last + 1))
    for told in tally.feeds:
        assert told == numbers, f"a feed lost {sorted(set(numbers) - set(told))[:5]} or told something twice"
    stored = [one for one in events if one["kind"] == "message.stored"]
    assert len(stored) == len(tally.made)
    assert any(one["kind"] == "attempt.ended" for one in events), "the run did not go on beside all this"
    return tally


async def quiet(client: httpx2.AsyncClient) -> int:
    """The number of the last event, once nothing has been recorded for a while."""
    last = -1
    async with asyncio.timeout(60):
        while True:
            found = await page(client, max(last, 0))
            if not found and last >= 0:
                return last
            last = int(str(found[-1]["n"])) if found else last
            if len(found) < 1000:
                await asyncio.sleep(1.0)


async def page(client: httpx2.AsyncClient, after: int) -> list[dict[str, object]]:
    return list((await client.get("/api/v1/events", params={"after": str(after), "limit": 1000})).json()["events"])


async def follow(client: httpx2.AsyncClient, tally: Tally, after: int, over: asyncio.Event) -> None:
    told: list[int] = []
    tally.feeds.append(told)
    headers = {"Accept": "text/event-stream", "Last-Event-ID": f"1-{after}"}
    async with client.stream("GET", "/api/v1/events", headers=headers) as stream:
        if stream.status_code != 200:
            tally.wrong.append(f"feed {stream.status_code}")
            return
        async for line in stream.aiter_lines():
            told.extend([int(json.loads(line[6:])["n"])] if line.startswith("data: ") else [])


async def heard(tally: Tally, request: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
    """An answer; asked again with the same key where an idle connection was closed as it was being used."""
    for _ in range(3):
        try:
            return await request()
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            tally.again += 1
    return await request()


async def ask(client: httpx2.AsyncClient, tally: Tally, task: str, number: int, end: float) -> None:
    loop = asyncio.get_running_loop()
    count = 0
    while loop.time() < end:
        count += 1
        began = loop.time()
        if count % 4 == 1:
            key = f"say-{task}-{number}-{count}"
            path, body = f"/api/v1/tasks/{task}/messages", {"text": f"{number}: {count}", "policy": "record_only"}
            headers = {"Idempotency-Key": key}
            answer = await heard(tally, lambda: client.post(path, json=body, headers=headers))  # noqa: B023
            if answer.status_code in (200, 201):
                tally.made.append(key)
        else:
            places = ("/api/v1/slots", "", f"/api/v1/tasks/{task}/explain", "/api/v1/tasks")
            answer = await heard(tally, lambda: client.get(places[count % 4]))  # noqa: B023
        tally.took.append(loop.time() - began)
        if answer.status_code not in (200, 201):
            tally.wrong.append(f"{answer.status_code} {answer.text[:80]}")
        await asyncio.sleep(0.2)


async def crowded(served: Served, callers: int, seconds: float, tmp_path: Path, growth: int) -> None:
    await crowd(served, 4, 1.0, tmp_path)
    before = served.memory()
    tally = await crowd(served, callers, seconds, tmp_path)
    grown = served.memory() - before
    assert tally.wrong == []
    print(
        f"{callers} callers for {seconds:.0f} s: {len(tally.took)} answers, p99 {tally.p99() * 1000:.0f} ms, "
        f"{len(tally.feeds)} feeds, {tally.again} asked again, memory grew by {grown / 1024 / 1024:.1f} MiB"
    )
    assert grown < growth


async def test_twenty_callers_lose_nothing(served: Served, tmp_path: Path) -> None:
    await crowded(served, 20, 3.0, tmp_path, 64 * 1024 * 1024)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_two_hundred_callers_lose_nothing_for_a_minute(served: Served, tmp_path: Path) -> None:
    await crowded(served, 200, 60.0, tmp_path, 96 * 1024 * 1024)
