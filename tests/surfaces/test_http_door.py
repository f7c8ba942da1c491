"""The door: binds at once, furnishes when somebody knocks, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from tests.support.api import TOKEN
from tests.support.world import World, world

from tenuto.model.faults import Conflict, Mistake
from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.door import Door
from tenuto.surfaces.http.feed import Feed

pytestmark = pytest.mark.anyio
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A socket's name that is short enough."""
    return tmp_path_factory.mktemp("d") / "s" / "a.sock"


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def a_door(it: World, place: Path, *, port: int | None = None) -> Door:
    feed = Feed()
    auth = Authenticator(TOKEN, it.ledger.token)
    return Door(place, lambda bound: make_app(it.desk, auth, feed=feed, port=bound), port=port, closing=feed.close)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def there(path: Path) -> bool:
    return path.exists()


def fill(path: Path, text: str) -> None:
    path.write_text(text)


def over(place: Path) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=str(place)), base_url="http://tenuto", timeout=60)


async def test_it_serves_both_addresses_and_stops_cleanly(it: World, place: Path) -> None:
    door = a_door(it, place, port=0)
    door.open()
    assert mode(place) == 0o600
    assert mode(place.parent) == 0o700
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(door.serve())
        async with over(place) as client:
            told = await client.get("/api/v1/status", headers=HEADERS)
            assert (told.status_code, told.json()["standing"]) == (200, "live")
            assert "server" not in told.headers
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{door.port}") as other:
                assert (await other.get("/healthz")).status_code == 200
                foreign = await other.get("/api/v1/status", headers=HEADERS | {"Host": "tenuto"})
                assert foreign.status_code == 403
            async with client.stream(
                "GET", "/api/v1/events", headers=HEADERS | {"Accept": "text/event-stream"}
            ) as feed:
                lines = feed.aiter_lines()
                assert await anext(lines) == "retry: 2000"
                door.stop()
                assert [line async for line in lines if line.startswith("data")] == []
    assert not there(place)


async def test_stopping_lets_a_request_finish(it: World, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    real = it.desk.hold

    async def slow(*args: object, **more: object) -> object:
        begun.set()
        await go.wait()
        return await real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(it.desk, "hold", slow)
    door = a_door(it, place)
    door.open()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group, over(place) as client:
        serving = group.create_task(door.serve())
        asked = group.create_task(client.post("/api/v1/hold", headers=HEADERS | {"Idempotency-Key": "k"}))
        await begun.wait()
        door.stop()
        go.set()
        assert (await asked).status_code == 201
        await serving


async def test_a_door_nobody_knocked_at_closes_at_once(it: World, place: Path) -> None:
    door = a_door(it, place)
    door.open()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(door.serve())
        await asyncio.sleep(0)
        door.stop()
    assert not door.furnished
    assert not there(place)


async def test_a_socket_left_behind_is_replaced_and_a_living_one_is_not(it: World, place: Path) -> None:
    place.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    first = a_door(it, place)
    first.open()
    with pytest.raises(Conflict):
        a_door(it, place).open()
    assert there(place)
    first.stop()
    await first.serve()
    assert not there(place)


async def test_a_place_that_was_lost_to_us_is_ours_although_somebody_stands_still_there(it: World, place: Path) -> None:
    place.parent.mkdir(mode=0o700)
    still, heir = a_door(it, place), a_door(it, place)
    still.open()
    heir.open(succeeds=True)
    still.stop()
    await still.serve()
    assert there(place)
    heir.stop()
    await heir.serve()
    assert not there(place)


async def test_a_place_that_cannot_be_trusted_is_refused(it: World, place: Path) -> None:
    place.parent.mkdir(mode=0o755)
    with pytest.raises(Mistake, match="0700"):
        a_door(it, place).open()
    place.parent.chmod(0o700)
    fill(place, "mine")
    with pytest.raises(Mistake, match="no socket"):
        a_door(it, place).open()
    assert there(place)
    with pytest.raises(Mistake, match="too long"):
        a_door(it, place.with_name("x" * 101)).open()


async def test_a_port_that_is_taken_leaves_no_socket(it: World, place: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Conflict):
            a_door(it, place, port=taken.getsockname()[1]).open()
    assert not there(place)


def test_waiting_for_a_knock_costs_no_web_stack() -> None:
    script = """
        import sys, json
        import tenuto.surfaces.http.door, tenuto.surfaces.http.auth, tenuto.surfaces.http.feed, tenuto.surfaces.present
        import tenuto.surfaces.routes, tenuto.engine.spooled, tenuto.transports.spool, tenuto.engine.desk
        dear = ("fastapi", "starlette", "uvicorn", "pydantic", "h11", "websockets", "httpx2", "anyio", "typer", "rich")
        print(json.dumps([name for name in dear if name in sys.modules]))
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(said.stdout) == []
