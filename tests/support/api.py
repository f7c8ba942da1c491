"""Callers of the API, in memory: the real application behind its real guard, with nothing listening."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.support.world import World

from tenuto.surfaces.http.app import make_app
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.feed import Feed, Pace
from tenuto.surfaces.mcp.mounted import PATH, at_desk

TOKEN = "the-operators-token-that-is-long-enough-for-one"
PORT = 6174
KEYS = itertools.count(1)


class OverSocket:
    """What uvicorn says of a connection over a Unix socket: a server address without a port."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "server": ("/run/api.sock", None)}, receive, send)


class Api:
    """An API over a world. `token` None sends none."""

    def __init__(self, world: World, *, token: str | None = TOKEN, pace: Pace | None = None) -> None:
        self.world = world
        self.feed = Feed(pace or Pace(look=0.01, comment=0.05))
        auth = Authenticator(TOKEN, world.ledger.token)
        self.mounts = mounts = {PATH: at_desk(world.desk, self.feed.notify)}
        self.app: ASGIApp = make_app(world.desk, auth, feed=self.feed, port=PORT, mounts=mounts)
        self.token = token
        self.transport = httpx2.ASGITransport(app=OverSocket(self.app), raise_app_exceptions=False)
        self.client = httpx2.AsyncClient(transport=self.transport, base_url="http://tenuto")

    def headers(self, key: str | None = None) -> dict[str, str]:
        """What a well-behaved caller sends."""
        given = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return given if key is None else {**given, "Idempotency-Key": key}

    async def get(self, path: str, **query: Any) -> httpx2.Response:
        """Read."""
        return await self.client.get(f"/api/v1{path}", params=query, headers=self.headers())

    async def post(
        self, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None, method: str = "POST"
    ) -> httpx2.Response:
        """Change, under a fresh key unless one is given."""
        headers = self.headers(key or f"key-{next(KEYS)}")
        return await self.client.request(method, f"/api/v1{path}", json=body, headers=headers)


def order(world: World, **changed: Any) -> dict[str, Any]:
    """The body of a request for a run."""
    return {
        "title": "Tidy up",
        "objective": "Tidy the attic\nand say so",
        "cwd": str(world.folder),
        "agent": {"adapter": "played", "argv": ["agent", "--go"], "resumable": True},
    } | changed
