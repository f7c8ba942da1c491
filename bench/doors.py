"""What the doors cost: from a spawn to its program, from an event to a reader of the feed, and writes over the API.

The supervisor is a process of its own; the callers are in this one and come in by its Unix socket. Writes are held
against transactions of an armed turn written by hand on sqlite3 in the same run, which is more than a message needs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2

from bench import ledger
from bench.detached import supervisor_of, warmed
from bench.memory import resident
from bench.world import Counting, NotMeasured, centile, home, median, place, stamping, stamps, times, turn
from tenuto.proof.bench import Row

SPAWNS = 60
EVENTS = 200
WRITES = 1_600
RAW = 400
CALLERS = 16
MCP_MB = 130.0
PATIENCE = 60.0
NO_LIMIT = 100_000


def measure(where: Path, effort: float) -> Iterator[Row]:
    """Three rows without a goal, to compare one version with another, and what memory all of it leaves in use."""
    folder = where / "home"
    home(folder)
    (folder / "config.toml").write_text(f"port = 0\n[policy]\nspawn_rate = {NO_LIMIT}\npending_tasks = {NO_LIMIT}\n")
    ids = Counting()
    places = [place(ids) for _ in range(times(effort, RAW, 100))]
    turns = [turn(ids, here) for here in places]
    raw = asyncio.run(ledger.lapped(where / "raw", places, turns, 0))
    warmed(folder, where.parent / "bytecode")
    with supervisor_of(folder, where.parent / "bytecode") as supervisor:
        pid = supervisor.start()
        state = folder / "state"
        supervisor.until("its door", lambda: (state / "operator.token").exists() and (state / "api.sock").exists())
        token = (state / "operator.token").read_text("ascii").strip()
        spawned, told, writes, task = asyncio.run(asked(state / "api.sock", token, where, effort))
        asyncio.run(by_mcp(state / "api.sock", token, task))
        used = resident(pid)
    yield Row(
        "a spawn is asked for -> its program runs",
        f"median {median(spawned):.0f} ms, p99 {centile(spawned, 0.99):.0f} ms ({len(spawned)} spawns)",
        "",
        None,
        {"spawn_median_ms": median(spawned), "spawn_p99_ms": centile(spawned, 0.99), "spawns": len(spawned)},
    )
    yield Row(
        "something is recorded -> a feed has told it",
        f"median {median(told):.1f} ms, p99 {centile(told, 0.99):.1f} ms ({len(told)} events)",
        "",
        None,
        {"feed_median_ms": median(told), "feed_p99_ms": centile(told, 0.99), "feed_events": len(told)},
    )
    yield Row(
        f"writes over the API, {CALLERS} callers",
        f"{writes:.0f} a second, {writes / raw:.2f} of raw sqlite3 ({raw:.0f})",
        "",
        None,
        {"api_writes_per_second": writes, "api_writes_of_raw": writes / raw, "api_raw_per_second": raw},
    )
    yield Row(
        "supervisor's memory once MCP is in use",
        f"{used:.0f} MB, after all of the above",
        f"<= {MCP_MB:.0f} MB",
        used <= MCP_MB,
        {"rss_mcp_mb": used},
    )


async def by_mcp(socket: Path, token: str, task: str) -> None:
    """Greet over MCP, list its tools, and call one, so that all of it is loaded."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    transport = httpx2.AsyncHTTPTransport(uds=str(socket))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    asks: list[tuple[str, dict[str, Any]]] = [
        ("initialize", hello), ("tools/list", {}), ("tools/call", {"name": "task_status", "arguments": {"task": task}}),
    ]  # fmt: skip
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://tenuto", headers=headers, timeout=PATIENCE
    ) as client:
        for number, (method, params) in enumerate(asks):
            body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            answer = await client.post("/mcp", json=body)
            if answer.status_code != 200 or '"error"' in answer.text:
                raise NotMeasured(f"{method} was answered with {answer.status_code}: {answer.text[:200]}")


async def asked(socket: Path, token: str, where: Path, effort: float) -> tuple[list[float], list[float], float, str]:
    """Milliseconds of each spawn and of each event, writes a second, and one of the tasks."""
    transport = httpx2.AsyncHTTPTransport(uds=str(socket), limits=httpx2.Limits(max_connections=CALLERS + 4))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://tenuto/api/v1", headers=headers, timeout=PATIENCE
    ) as client:
        spawned = [await spawn(client, where, number) for number in range(times(effort, SPAWNS, 15))]
        tasks = [await resting(client, where, number) for number in range(CALLERS)]
        told = await followed(client, tasks[0], times(effort, EVENTS, 50))
        return spawned, told, await written(client, tasks, times(effort, WRITES, 320)), tasks[0]


async def posted(client: httpx2.AsyncClient, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
    answer = await client.post(path, json=body, headers={"Idempotency-Key": key})
    if answer.status_code not in (200, 201):
        raise NotMeasured(f"{path} was answered with {answer.status_code}: {answer.text[:200]}")
    return dict(answer.json()["result"])


async def spawn(client: httpx2.AsyncClient, where: Path, number: int) -> float:
    """Milliseconds from asking until the program's first act."""
    file = where / f"spawned{number}"
    agent = {"argv": list(stamping(file)), "resumable": True}
    body = {"prompt": f"stamp the time {number}", "cwd": str(where), "agent": agent}
    at = time.time()  # noqa: TID251 - the same clock as the program's stamp
    task = (await posted(client, "/tasks", body, f"spawn-{number}"))["task"]
    async with asyncio.timeout(PATIENCE):
        while not (found := stamps(file)):  # noqa: ASYNC110 - the program is another process, and writes a file
            await asyncio.sleep(0.002)
    await posted(client, f"/tasks/{task}/cancel", {}, f"cancel-{number}")
    return 1000 * (found[0].at - at)


async def resting(client: httpx2.AsyncClient, where: Path, number: int) -> str:
    """A task that is continued only when it is asked for."""
    body = {
        "objective": f"rest {number}",
        "cwd": str(where),
        "agent": {"argv": list(stamping(where / "never")), "resumable": True},
        "auto_resume": "manual",
    }
    return str((await posted(client, "/runs", body, f"run-{number}"))["task"])


async def followed(client: httpx2.AsyncClient, task: str, count: int) -> list[float]:
    """Milliseconds from an event's moment until a feed has told it."""
    spent: list[float] = []
    open_ = asyncio.Event()

    async def read() -> None:
        stream = client.stream("GET", "/events", params={"task": task}, headers={"Accept": "text/event-stream"})
        async with stream as answer:
            async for line in answer.aiter_lines():
                open_.set()
                if line.startswith("data: "):
                    now = time.time()  # noqa: TID251 - the clock of the event's own moment
                    event = json.loads(line[6:])
                    if event["kind"] == "message.stored":
                        spent.append(1000 * (now - datetime.fromisoformat(event["at"]).timestamp()))
                        if len(spent) == count:
                            return

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(read())
        await open_.wait()
        for number in range(count):
            await said(client, task, f"feed-{number}")
    return spent


async def said(client: httpx2.AsyncClient, task: str, key: str) -> None:
    await posted(client, f"/tasks/{task}/messages", {"text": "a line", "policy": "record_only"}, key)


async def written(client: httpx2.AsyncClient, tasks: list[str], count: int) -> float:
    """Messages stored a second, each caller to a task of its own."""
    numbers = iter(range(count))

    async def caller(task: str) -> None:
        for number in numbers:
            await said(client, task, f"write-{number}")

    began = time.perf_counter()
    await asyncio.gather(*map(caller, tasks))
    return count / (time.perf_counter() - began)
