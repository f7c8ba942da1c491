"""Every address and every socket of the application, tried by everybody who has no business there.

The list is made from the application itself, so that an address that somebody adds is tried without anybody
remembering to.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from starlette.routing import BaseRoute, Route, WebSocketRoute
from tests.support.api import PORT, TOKEN, Api
from tests.support.world import OPERATOR, World, world

from tenuto.engine.tokens import Wanted
from tenuto.model.snapshot import Role
from tenuto.surfaces.http import guard, schema
from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.sessions import Sessions
from tenuto.surfaces.verbs import VERBS

pytestmark = pytest.mark.anyio
HERE = f"127.0.0.1:{PORT}"
ORIGIN = f"http://localhost:{PORT}"
GOOD = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "k", "Host": HERE}


class Walked:
    """An application as it is served on loopback, with sessions."""

    def __init__(self, it: World) -> None:
        secrets = (f"a-secret-of-the-door-that-is-long-{n}" for n in range(10_000))
        self.ticks = [0.0]
        self.sessions = Sessions(lambda: self.ticks[0], lambda: next(secrets))
        api = Api(it)
        auth = Authenticator(TOKEN, it.ledger.token, now=it.clock.now)
        self.app: Any = make_app(it.desk, auth, feed=api.feed, port=PORT, sessions=self.sessions, mounts=api.mounts)
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.client = httpx2.AsyncClient(transport=transport, base_url=f"http://{HERE}")


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
async def door(it: World) -> AsyncIterator[Walked]:
    made = Walked(it)
    async with made.client:
        yield made


def every(routes: list[BaseRoute], before: str = "") -> Iterator[tuple[str, str, bool]]:
    """Method, address and whether it is a socket, of each route; anything of another kind fails the walk."""
    for route in routes:
        if isinstance(route, WebSocketRoute):
            yield "GET", before + route.path, True
        elif isinstance(route, Route):
            for method in sorted(route.methods or {"GET", "POST", "DELETE"}):
                if method != "HEAD":
                    yield method, before + re.sub(r"\{\w+\}", "zzzzzzzz", route.path), False
        else:
            raise AssertionError(f"a route of a kind this walk does not know: {route!r}")


async def refused(answer: httpx2.Response, status: int, where: object) -> None:
    assert answer.status_code == status, (where, answer.status_code, answer.text)
    jsonschema.validate(answer.json(), schema.ERROR)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_nobody_comes_in_by_any_address(it: World, door: Walked) -> None:
    places = [(method, path) for method, path, socket in every(door.app.router.routes) if not socket]
    assert len(places) > len(VERBS)
    task = await it.started()
    agent = it.agent_token()
    told = await it.desk.make_token(OPERATOR, Wanted(Role.EXECUTOR, "far"), "k")
    executor = str(told.result["secret"])
    for method, path in places:
        where = (method, path)
        door.app.middleware_stack = None  # a fresh guard, whose buckets are empty
        ask = door.client.request
        if path not in guard.OPEN:
            for nobody in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "tenuto=wrong"}):
                given = {"Idempotency-Key": "k", "Host": HERE, **nobody}
                await refused(await ask(method, path, headers=given), 401, where)
        for host in ("evil.example", f"evil.example:{PORT}", "localhost", f"{HERE}.evil.example", "tenuto"):
            await refused(await ask(method, path, headers=GOOD | {"Host": host}), 403, where)
        for origin in ("https://evil.example", "null", f"http://evil.example:{PORT}", f"https://localhost:{PORT}"):
            await refused(await ask(method, path, headers=GOOD | {"Origin": origin}), 403, where)
        large = {"Content-Type": "application/json", "Content-Length": str(guard.BODY_BYTES + 1)}
        await refused(await ask(method, path, headers=GOOD | large), 413, where)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            wrong = await ask(method, path, content=b"{}", headers=GOOD | {"Content-Type": kind})
            await refused(wrong, 415, where)
        if path in guard.OPEN or path.startswith("/mcp"):
            continue
        for name, secret in (("agent", agent), ("executor", executor)):
            said = await ask(method, path, headers=GOOD | {"Authorization": f"Bearer {secret}"})
            opens = path in ("/session", "/logout", "/api/v1/openapi.json")
            assert said.status_code in (403, 404, 422, 423) or opens or path in FOR_ANYBODY, (name, where, said.text)
            if name == "executor" and path.startswith("/api/v1/") and not opens:
                assert said.status_code == 403, (where, said.text)
    assert it.desk.task(task).state == "active"


#: Addresses where a token of any role reads something: nothing of them is another's.
FOR_ANYBODY = frozenset({"/api/v1/whoami"})


async def test_nobody_comes_in_by_any_socket(it: World, door: Walked) -> None:
    sockets = [path for _, path, socket in every(door.app.router.routes) if socket] + ["/executor", "/nowhere"]
    good = {b"host": HERE.encode(), b"authorization": f"Bearer {TOKEN}".encode(), b"origin": ORIGIN.encode()}
    bad: list[dict[bytes, bytes]] = [
        {b"host": HERE.encode()},
        good | {b"authorization": b"Bearer wrong"},
        good | {b"host": b"evil.example"},
        good | {b"origin": b"https://evil.example"},
        {b"host": HERE.encode(), b"cookie": b"tenuto=wrong"},
    ]
    for path in sockets:
        for headers in bad:
            said: list[Any] = []

            async def send(message: Any, said: list[Any] = said) -> None:
                said.append(message)

            async def receive() -> Any:
                return {"type": "websocket.connect"}

            scope = {
                "type": "websocket",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "headers": list(headers.items()),
                "server": ("127.0.0.1", PORT),
                "client": ("127.0.0.1", 5),
            }
            await door.app(scope, receive, send)
            assert [(one["type"], one.get("code")) for one in said] == [("websocket.close", 1008)], (path, headers)


async def test_br_189_health_tells_nothing(door: Walked) -> None:
    told = await door.client.get("/healthz", headers={"Host": HERE})
    assert (told.status_code, told.json()) == (200, {"ok": True})


# -- paces


async def test_who_guesses_is_slowed_down_and_who_knows_is_not(door: Walked) -> None:
    ask = door.client.get
    codes = [
        (await ask("/api/v1/status", headers={"Host": HERE, "Authorization": f"Bearer guess-{n}"})).status_code
        for n in range(30)
    ]
    assert codes[:20] == [401] * 20
    assert codes[-1] == 429
    slowed = await ask("/api/v1/status", headers={"Host": HERE, "Authorization": "Bearer guess"})
    assert (slowed.status_code, slowed.json()["error"]["code"]) == (429, "rate_limited")
    assert int(slowed.headers["retry-after"]) >= 1
    assert (await ask("/api/v1/status", headers=GOOD)).status_code == 200


# -- browsers


async def test_a_browser_comes_in_once_by_a_link_and_changes_nothing_without_its_secret(
    it: World, door: Walked
) -> None:
    client = door.client
    page = await client.get("/login", headers={"Host": HERE})
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    link = (await client.post("/login/link", headers=GOOD)).json()["link"]
    address, code = link.split("#")
    assert address == f"http://127.0.0.1:{PORT}/login"
    headers = {"Host": HERE, "Origin": ORIGIN}
    come = await client.post("/login", json={"code": code}, headers=headers)
    assert come.status_code == 200, come.text
    cookie = come.headers["set-cookie"]
    for word in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert word in cookie
    used = await client.post("/login", json={"code": code}, headers=headers)
    assert used.status_code == 403
    client.cookies.clear()
    value = cookie.partition(";")[0]
    assert value.partition("=")[2] not in page.text + come.text
    session = {"Host": HERE, "Cookie": value}
    who = (await client.get("/session", headers=session)).json()
    assert (who["name"], who["role"], who["csrf"]) == ("operator", "operator", come.json()["csrf"])
    assert (await client.get("/api/v1/status", headers=session)).status_code == 200
    proof = {"X-Tenuto-Csrf": who["csrf"]}
    key = {"Idempotency-Key": "k"}
    for short in ({}, proof, {"Origin": ORIGIN}, {"Origin": ORIGIN, "X-Tenuto-Csrf": "guess"}):
        await refused(await client.post("/api/v1/hold", headers=session | key | short), 403, short)
    changed = await client.post("/api/v1/hold", headers=session | key | proof | {"Origin": ORIGIN})
    assert changed.status_code == 201
    assert (await client.post("/login/link", headers=session | proof | {"Origin": ORIGIN})).status_code == 403
    assert (await client.post("/logout", headers=session | proof | {"Origin": ORIGIN})).status_code == 200
    assert (await client.get("/api/v1/status", headers=session)).status_code == 401


async def test_codes_and_sessions_run_out(door: Walked) -> None:
    for wrong in (b"{}", b"[]", b"x", b'{"code": 5}', b'{"code": ""}', json.dumps({"code": "x" * 500}).encode()):
        headers = {"Host": HERE, "Content-Type": "application/json"}
        assert (await door.client.post("/login", content=wrong, headers=headers)).status_code in (403, 422)
    code = door.sessions.code(OPERATOR)
    door.ticks[0] += 61
    assert door.sessions.redeem(code) is None
    found = door.sessions.redeem(door.sessions.code(OPERATOR))
    assert found is not None
    cookie = f"tenuto={found[0]}".encode()
    assert door.sessions.of(cookie) is not None
    door.ticks[0] += 12 * 3600 + 1
    assert door.sessions.of(cookie) is None
    for junk in (None, b"", b"tenuto", b"other=1", b"\xff", b"tenuto=" + b"x" * 5000):
        assert door.sessions.of(junk) is None
