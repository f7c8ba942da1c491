"""The chat site over HTTP: its page, its stream of states, and where turns are posted.

A page holds a websocket open and is told the whole state as often as it changes, at most every 30 ms: a browser grants
a site six other connections in all, and a test may have fifty pages of it open. What the extension is made of is served
too, under /__extension__/, for tests of page code without an extension.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect
from tests.support.lab.state import Site

HERE = Path(__file__).parent
EXTENSION = HERE.parents[2] / "extension"
CHALLENGE = """<!doctype html><html><head><title>Just a moment...</title></head><body><div id="challenge-running"></div>
<p>Checking if the site connection is secure</p></body></html>"""
NOT_CACHED = {"Cache-Control": "no-store"}


def application(site: Site) -> Starlette:
    """The site as an ASGI application."""

    async def page(request: Request) -> Response:
        if site.challenge:
            return HTMLResponse(CHALLENGE, status_code=403, headers=NOT_CACHED)
        return HTMLResponse((HERE / "page" / "site.html").read_text("utf-8"), headers=NOT_CACHED)

    async def blank(request: Request) -> Response:
        return HTMLResponse("<!doctype html><html><head><title>blank</title></head><body></body></html>")

    async def events(socket: WebSocket) -> None:
        identity, document = socket.query_params.get("conversation") or None, socket.query_params["document"]
        await socket.accept()

        async def told(until: anyio.CancelScope) -> None:
            version = -1
            with contextlib.suppress(WebSocketDisconnect):
                while True:
                    snapshot = site.snapshot(identity, document)
                    if snapshot["version"] != version:
                        version = snapshot["version"]
                        await socket.send_text(json.dumps(snapshot))
                        await anyio.sleep(0.03)
                    else:
                        await site.after(version, 10.0)
            until.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(told, group.cancel_scope)
            while (await socket.receive())["type"] != "websocket.disconnect":
                pass
            group.cancel_scope.cancel()

    async def turn(request: Request) -> Response:
        told = await request.json()
        host = request.headers.get("host", "")
        verdict = await site.take(told.get("conversation"), str(told["text"]), str(told["document"]), host)
        if verdict is None:
            return Response(status_code=502)
        return JSONResponse(verdict)

    async def stop(request: Request) -> Response:
        site.stop(str((await request.json())["conversation"]))
        return JSONResponse({})

    async def pressed(request: Request) -> Response:
        site.pressed.append(str((await request.json())["button"]))
        return JSONResponse({})

    class Kept(StaticFiles):
        """Files that do not change while a site is served."""

        def file_response(self, *args: Any, **more: Any) -> Response:
            response = super().file_response(*args, **more)
            response.headers["Cache-Control"] = "max-age=3600"
            return response

    routes: list[Route | WebSocketRoute | Mount] = [
        WebSocketRoute("/lab/events", events),
        Route("/lab/turn", turn, methods=["POST"]),
        Route("/lab/stop", stop, methods=["POST"]),
        Route("/lab/pressed", pressed, methods=["POST"]),
        Mount("/lab/page", Kept(directory=HERE / "page")),
        Mount("/__extension__", Kept(directory=EXTENSION, check_dir=False)),
        Route("/__blank__", blank),
        Route("/__blank__/{rest:path}", blank),
        Route("/{rest:path}", page),
    ]
    return Starlette(routes=routes)
