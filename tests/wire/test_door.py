"""The executors' socket in the real server: who is let in, how a browser brings its token, and how large a frame is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.api import TOKEN
from tests.support.world import OPERATOR, World, world
from tests.wire.frames import EXAMPLES
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from tenuto.engine.tokens import Wanted
from tenuto.model.snapshot import Role
from tenuto.ports import NoFuse
from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.door import Door
from tenuto.surfaces.http.feed import Feed
from tenuto.transports import wire
from tenuto.transports.bridge import Bridge
from tenuto.transports.executor_side.connecting import connector
from tenuto.transports.executor_side.peer import Denied
from tenuto.transports.executor_side.token import token_file

pytestmark = pytest.mark.anyio
PAIRED = "chrome-extension://" + "abcdefghijklmnop" * 2
SPOKEN = Subprotocol(wire.SUBPROTOCOL)


class Place:
    """A server with its port, its bridge, and a token of an executor called box."""

    def __init__(self, it: World, bridge: Bridge, door: Door, secret: str) -> None:
        self.it = it
        self.bridge = bridge
        self.door = door
        self.secret = secret

    def come(self, token: str | None = None, **more: object) -> connect:
        """A websocket to the executors' address."""
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        given: dict[str, object] = {"subprotocols": [SPOKEN], "additional_headers": headers, "proxy": None, **more}
        return connect(f"ws://127.0.0.1:{self.door.port}/executor", **given)  # type: ignore[arg-type]

    async def answer(self, socket: ClientConnection, **other: object) -> wire.Frame:
        """What a hello is answered with."""
        made = EXAMPLES["hello"]
        assert isinstance(made, wire.Hello)
        plain = replace(made, kind=wire.ExecutorKind.HOST, name="box", registry=None, epoch=0, journal=())
        await socket.send(wire.dump(replace(plain, **other)))  # type: ignore[arg-type]
        return wire.parse(await socket.recv())


@asynccontextmanager
async def placed(folder: Path, socket: Path) -> AsyncIterator[Place]:
    async with world(folder) as it:
        bridge = Bridge(it.ledger.registry().id, it.clock, NoFuse(), known=lambda command: False)
        bridge.lead(1)
        auth, feed = Authenticator(TOKEN, it.ledger.token, now=it.clock.now), Feed()

        def make(port: int | None) -> object:
            return make_app(it.desk, auth, feed=feed, port=port, executors=bridge.serve, extensions=[PAIRED])

        door = Door(socket, make, port=0, closing=feed.close)
        door.open()
        done = await it.desk.make_token(OPERATOR, Wanted(Role.EXECUTOR, "box"), None)
        async with asyncio.timeout(40), asyncio.TaskGroup() as group:
            group.create_task(door.serve())
            try:
                yield Place(it, bridge, door, str(done.result["secret"]))
            finally:
                await bridge.close()
                door.stop()


@pytest.fixture
async def place(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with placed(tmp_path, tmp_path_factory.mktemp("s") / "a.sock") as made:
        yield made


async def refused(place: Place, token: str | None, **more: object) -> None:
    with pytest.raises(InvalidStatus) as error:
        async with place.come(token, **more):
            pass
    assert error.value.response.status_code == 403


async def test_who_does_not_belong_is_refused_before_anything_is_accepted(place: Place) -> None:
    await refused(place, None)
    await refused(place, "guessed" * 8)
    await refused(place, TOKEN)  # the operator's opens verbs, not this
    await refused(place, place.secret, subprotocols=None)
    await refused(place, place.secret, subprotocols=[Subprotocol("other")])
    await refused(place, place.secret, origin=Origin("https://evil.example"))
    await refused(place, place.secret, origin=Origin("chrome-extension://" + "p" * 32))
    headers = {"Authorization": f"Bearer {place.secret}"}
    there = {"host": "127.0.0.1", "port": place.door.port, "proxy": None}
    with pytest.raises(InvalidStatus):  # the same address by a name that is not ours
        await connect("ws://evil.example/executor", subprotocols=[SPOKEN], additional_headers=headers, **there)  # type: ignore[arg-type]


async def test_an_executor_comes_in_by_its_header(place: Place) -> None:
    async with place.come(place.secret) as socket:
        assert socket.subprotocol == SPOKEN
        assert isinstance(await place.answer(socket), wire.Welcome)
    async with place.come(place.secret) as socket:
        farewell = await place.answer(socket, name="other")
        assert isinstance(farewell, wire.Bye)
        assert farewell.code is wire.Farewell.NAME


async def test_a_paired_extension_brings_its_token_as_a_subprotocol(place: Place) -> None:
    spoken = [SPOKEN, Subprotocol(f"bearer.{place.secret}")]
    async with place.come(subprotocols=spoken, origin=Origin(PAIRED)) as socket:
        assert socket.subprotocol == SPOKEN
        assert isinstance(await place.answer(socket), wire.Welcome)


async def test_a_paired_extension_reaches_nothing_else(place: Place) -> None:
    import httpx2

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{place.door.port}") as client:
        headers = {"Authorization": f"Bearer {TOKEN}", "Origin": PAIRED}
        assert (await client.get("/api/v1/status", headers=headers)).status_code == 403
        verbs = {"Authorization": f"Bearer {place.secret}"}
        assert (await client.get("/api/v1/tasks", headers=verbs)).status_code == 403


@pytest.mark.parametrize("what", ["x" * (wire.LIMIT + 1), b"bytes", "no frame"])
async def test_what_is_no_frame_closes_the_socket(place: Place, what: str | bytes) -> None:
    async with place.come(place.secret) as socket:
        assert isinstance(await place.answer(socket), wire.Welcome)
        with pytest.raises(ConnectionClosed):  # noqa: PT012 - either of them may be the one that notices
            await socket.send(what)
            while True:
                await socket.recv()


async def test_a_token_that_was_taken_back_opens_nothing(place: Place) -> None:
    await place.it.desk.revoke_token(OPERATOR, "box", None)
    await refused(place, place.secret)


async def test_a_peers_own_connector_reaches_both_doors(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(place.secret)
    for address in (str(place.door._path), f"unix:{place.door._path}", f"ws://127.0.0.1:{place.door.port}"):
        socket = await connector(address, token_file(file))()
        await socket.close(1000, "")
    file.write_text("another-token-that-opens-nothing")
    with pytest.raises(Denied):
        await connector(f"ws://127.0.0.1:{place.door.port}", token_file(file))()
    file.chmod(0o644)
    with pytest.raises(Denied, match="others can reach it"):
        await connector(f"ws://127.0.0.1:{place.door.port}", token_file(file))()


@pytest.mark.parametrize(
    "address",
    [
        "ws://elsewhere.example:1",
        "http://127.0.0.1",
        "ws://me:pass@127.0.0.1",
        "ws://127.0.0.1/other",
        "ws://127.0.0.1?t=x",
    ],
)
def test_a_token_goes_nowhere_in_the_clear(address: str, tmp_path: Path) -> None:
    from tenuto.model.faults import Mistake

    with pytest.raises(Mistake):
        connector(address, token_file(tmp_path / "token"))
