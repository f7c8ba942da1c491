"""Tokens made by hand, the operator's that is changed while it serves, and where HTTP may be bound."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from tests.support.api import TOKEN, Api
from tests.support.world import World, world

from tenuto import config
from tenuto.model.faults import Conflict, Mistake
from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator, Kept, operator_token, rotate
from tenuto.surfaces.http.door import Door, Wide
from tenuto.surfaces.http.feed import Feed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
async def api(it: World) -> AsyncIterator[Api]:
    made = Api(it)
    async with made.client:
        yield made


async def test_a_token_is_told_once_and_kept_by_digest(api: Api, it: World) -> None:
    body = {"role": "operator", "name": "night-job"}
    made = await api.post("/tokens", body, key="k")
    assert made.status_code == 201
    secret = made.json()["result"]["secret"]
    again = await api.post("/tokens", body, key="k")
    assert (again.status_code, again.json()["result"].get("secret")) == (200, None)
    assert secret not in (await api.get("/tokens")).text
    assert secret not in (await api.get("/events", limit=1000)).text
    for file in (it.folder / "state").iterdir():
        assert secret.encode() not in file.read_bytes(), file
    assert (await api.post("/tokens", body)).status_code == 409
    api.token = secret
    assert (await api.get("/status")).status_code == 200
    assert (await api.post("/tokens/night-job/revoke")).status_code == 201
    assert (await api.get("/status")).status_code == 401


async def test_each_role_opens_its_own(api: Api, it: World) -> None:
    task = await it.started()
    for body, field in (
        ({"role": "agent", "name": "a"}, "task"),
        ({"role": "executor", "name": "a", "task": task}, "task"),
        ({"role": "executor", "name": "a b"}, "name"),
        ({"role": "king", "name": "a"}, "role"),
        ({"role": "executor", "name": "a", "ttl": -1}, "ttl"),
    ):
        wrong = await api.post("/tokens", body)
        assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, field), body
    made = await api.post("/tokens", {"role": "agent", "name": "a", "task": task})
    far = await api.post("/tokens", {"role": "executor", "name": "far"})
    api.token = made.json()["result"]["secret"]
    assert (await api.get(f"/tasks/{task}")).status_code == 200
    assert (await api.get("/tokens")).status_code == 403
    assert (await api.post("/tokens", {"role": "operator", "name": "b"})).status_code == 403
    api.token = far.json()["result"]["secret"]
    assert (await api.get(f"/tasks/{task}")).status_code == 403


async def test_a_token_runs_out(it: World) -> None:
    auth = Authenticator(TOKEN, it.ledger.token, now=it.clock.now)
    api = Api(it)
    async with api.client:
        made = await api.post("/tokens", {"role": "executor", "name": "short", "ttl": 60})
    header = f"Bearer {made.json()['result']['secret']}".encode()
    assert auth.caller(header) is not None
    assert Authenticator(TOKEN, it.ledger.token).caller(header) is None  # who cannot tell the time lets nobody in
    it.clock.move(timedelta(seconds=60))
    assert auth.caller(header) is None


async def test_the_operators_token_is_changed_while_it_serves(it: World, tmp_path: Path) -> None:
    path = tmp_path / "private" / "operator.token"
    secrets = (letter * 43 for letter in "abc")
    old = operator_token(path, lambda: next(secrets))
    auth = Authenticator(Kept(path, old), it.ledger.token)
    assert auth.caller(f"Bearer {old}".encode()) is not None
    new = rotate(path, lambda: next(secrets))
    assert new != old
    assert auth.caller(f"Bearer {old}".encode()) is None
    assert auth.caller(f"Bearer {new}".encode()) is not None
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    path.write_text("z" * 43)  # others could have written it: it counts for nothing
    assert auth.caller(f"Bearer {'z' * 43}".encode()) is None
    assert auth.caller(f"Bearer {new}".encode()) is not None


# -- where it is bound


def settings(tmp_path: Path, text: str, **environ: str) -> config.Settings:
    (tmp_path / "config.toml").write_text(text)
    return config.load({"TENUTO_HOME": str(tmp_path), **environ})


def test_loopback_unless_everything_else_is_said(tmp_path: Path) -> None:
    plain = settings(tmp_path, "")
    assert (plain.port, plain.port_wished, plain.bind) == (6174, True, None)
    assert settings(tmp_path, "port = 0").port is None
    assert settings(tmp_path, "port = 7000").port_wished is False
    assert settings(tmp_path, "port = 7000", TENUTO_PORT="7001").port == 7001
    for name in ("127.0.0.1", "::1", "localhost", "loopback", "127.0.0.9"):
        assert settings(tmp_path, f'bind = "{name}"').bind is None
    lines = ('bind = "0.0.0.0"', 'tls_certificate = "/c"', 'tls_key = "/k"', 'token_file = "/t"')
    whole = "\n".join((*lines, 'hosts = ["Box.example:6174"]'))
    wide = settings(tmp_path, whole)
    assert (wide.bind, wide.hosts, wide.operator_token) == ("0.0.0.0", ("box.example:6174",), Path("/t"))


@pytest.mark.parametrize("left_out", ["tls_certificate", "tls_key", "token_file", "hosts"])
def test_br_195_a_wide_bind_without_tls_token_and_names_does_not_start(tmp_path: Path, left_out: str) -> None:
    lines = ['bind = "192.0.2.1"', 'tls_certificate = "/c"', 'tls_key = "/k"', 'token_file = "/t"', 'hosts = ["b:1"]']
    with pytest.raises(Mistake, match=left_out) as caught:
        settings(tmp_path, "\n".join(line for line in lines if not line.startswith(left_out)))
    assert caught.value.field == "bind"


@pytest.mark.parametrize(
    "line", ["port = 70000", 'port = "x"', "port = true", 'bind = "everywhere"', 'hosts = ["*"]', 'tls_key = "k"']
)
def test_what_cannot_be_bound_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(Mistake) as caught:
        settings(tmp_path, line)
    assert caught.value.field == line.partition(" ")[0]


def a_door(it: World, place: Path, **more: object) -> Door:
    feed, auth = Feed(), Authenticator(TOKEN, it.ledger.token)
    hosts = ("box.example:1",) if "wide" in more else ()
    return Door(
        place,
        lambda port: make_app(it.desk, auth, feed=feed, port=port, hosts=hosts),
        closing=feed.close,
        **more,  # type: ignore[arg-type]
    )


HEADERS = {"Authorization": f"Bearer {TOKEN}"}


async def test_both_addresses_of_loopback_are_served(it: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    door = a_door(it, tmp_path_factory.mktemp("d") / "s" / "a.sock", port=0)
    door.open()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(door.serve())
        for host in ("127.0.0.1", "[::1]") if six() else ("127.0.0.1",):
            async with httpx2.AsyncClient(base_url=f"http://{host}:{door.port}", timeout=30) as client:
                assert (await client.get("/api/v1/status", headers=HEADERS)).status_code == 200
                lines: list[str] = []
                feed = {"Accept": "text/event-stream", "Last-Event-ID": "1-0"}
                await it.create()
                async with client.stream("GET", "/api/v1/events", headers=HEADERS | feed) as stream:
                    async for line in stream.aiter_lines():
                        lines.append(line)
                        if line.startswith("id: ") and len([one for one in lines if one.startswith("id: ")]) == 2:
                            break
                ids = [line[4:] for line in lines if line.startswith("id: ")]
                known = {"Accept": "text/event-stream", "Last-Event-ID": ids[0]}
                async with client.stream("GET", "/api/v1/events", headers=HEADERS | known) as stream:
                    async for line in stream.aiter_lines():
                        if line.startswith("id: "):
                            assert line[4:] == ids[1]  # numbered by epoch and place, and gone on with over TCP as well
                            break
        door.stop()


def six() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_a_wished_port_that_is_taken_leaves_the_socket(
    it: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        door = a_door(it, tmp_path_factory.mktemp("d") / "s" / "a.sock", port=port, wished=True)
        door.open()
        assert door.port is None
        assert str(port) in (door.trouble or "")
        asked = a_door(it, tmp_path_factory.mktemp("e") / "s" / "a.sock", port=port)
        with pytest.raises(Conflict):
            asked.open()
    door.stop()
    await door.serve()


async def test_anything_wider_speaks_tls_and_nothing_else(
    it: World, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    await asyncio.to_thread(
        subprocess.run,
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=box.example",
            "-addext", "subjectAltName=DNS:box.example,IP:127.0.0.1",
            "-keyout", str(key), "-out", str(certificate),
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    place = tmp_path_factory.mktemp("d") / "s" / "a.sock"
    door = a_door(it, place, port=0, wide=Wide("127.0.0.1", certificate, key))
    door.open()
    trust = ssl.create_default_context(cafile=str(certificate))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(door.serve())
        base = f"127.0.0.1:{door.port}"
        named = HEADERS | {"Host": "box.example:1"}
        async with httpx2.AsyncClient(base_url=f"https://{base}", verify=trust, timeout=30) as client:
            assert (await client.get("/api/v1/status", headers=named)).status_code == 200
            assert (await client.get("/api/v1/status", headers={"Host": "box.example:1"})).status_code == 401
            assert (await client.get("/api/v1/status", headers=HEADERS | {"Host": "evil.example"})).status_code == 403
        async with httpx2.AsyncClient(base_url=f"http://{base}", timeout=30) as client:
            with pytest.raises(httpx2.TransportError):
                await client.get("/healthz", headers=named)
        over = httpx2.AsyncHTTPTransport(uds=str(place))
        async with httpx2.AsyncClient(transport=over, base_url="http://tenuto", timeout=30) as client:
            assert (await client.get("/api/v1/status", headers=HEADERS)).status_code == 200
        door.stop()
