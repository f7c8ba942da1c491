"""The application: every verb of the table at its address, with one way to answer and one way to fail.

What a verb takes, who may use it and what it says is the table's; this module only carries JSON in and out. Every
changing request carries an idempotency key, so that a lost answer can be asked for again.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from tenuto.engine.desk import Caller, Desk
from tenuto.engine.tokens import Wanted
from tenuto.model.faults import (
    Conflict,
    Corrupt,
    Mistake,
    NoSupervisor,
    NotAllowed,
    NotFound,
    OutOfReach,
    Pressed,
    Refused,
    StorageFull,
    UnsupportedVersion,
)
from tenuto.model.snapshot import Role
from tenuto.surfaces import present, verbs
from tenuto.surfaces.http import schema
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.executors import PATH, ExecutorDoor, Serve
from tenuto.surfaces.http.feed import Feed
from tenuto.surfaces.http.guard import CALLER, PANEL, Guard, authorization_of
from tenuto.surfaces.http.login import Login
from tenuto.surfaces.http.pairing import Codes, Paired, Pairing
from tenuto.surfaces.http.sessions import Sessions
from tenuto.surfaces.routes import PREFIX

_LOG = logging.getLogger("tenuto.http")

#: The status of each fault; the first class that fits counts.
STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (Pressed, 429),
    (Refused, 423),
    (Conflict, 409),
    (NotFound, 404),
    (NotAllowed, 403),
    (Mistake, 422),
    (NoSupervisor, 503),
    (OutOfReach, 503),
    (StorageFull, 507),
    (UnsupportedVersion, 500),
    (Corrupt, 500),
)
KEY = re.compile(r"[!-~]{1,200}")
JSON_DEPTH_FAULTS = (ValueError, RecursionError)


def make_app(
    desk: Desk,
    auth: Authenticator,
    *,
    feed: Feed,
    port: int | None = None,
    origins: Iterable[str] = (),
    hosts: Iterable[str] = (),
    sessions: Sessions | None = None,
    mounts: Mapping[str, ASGIApp] = MappingProxyType({}),
    executors: Serve | None = None,
    extensions: Iterable[str] = (),
    paired: Paired | None = None,
    codes: Codes | None = None,
) -> FastAPI:
    """The API over one desk. `port` is the loopback port served beside the Unix socket, if any.

    `hosts` and `origins` are names beside the loopback's own; `sessions` opens the way in for browsers. `mounts` are
    other applications at their paths, behind the same guard. `executors` serves the sockets of executors; `extensions`
    are origins of browser extensions that may open one; `paired` and `codes` are what pairs more of them.
    """
    app = FastAPI(title="Tenuto", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    secure = tuple(one for one in origins if one.startswith("https:"))
    app.add_middleware(
        Guard,
        auth=auth,
        port=port,
        origins=tuple(origins),
        hosts=tuple(hosts),
        sessions=sessions,
        extensions=tuple(extensions),
        paired=paired,
    )
    if paired is not None and codes is not None:
        Pairing(codes, paired, lambda caller, name: _executors_token(desk, caller, name), told, port).on(app)
    if executors is not None:
        door = ExecutorDoor(executors, lambda scope: auth.caller(authorization_of(scope)) is not None)
        app.router.routes.append(WebSocketRoute(PATH, door))
    if sessions is not None:
        base = secure[0] if secure else None if port is None else f"http://127.0.0.1:{port}"
        Login(sessions, told, base, secure=bool(secure)).on(app)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(Exception, _fault)
    app.add_route("/healthz", _healthz, methods=["GET"], include_in_schema=False)
    app.add_route(f"{PREFIX}/openapi.json", _document, methods=["GET"], include_in_schema=False)
    app.router.routes += [Route(place, mounted, include_in_schema=False) for place, mounted in mounts.items()]
    places: dict[str, dict[str, _Answer]] = {}
    for verb in verbs.VERBS.values():
        for path in (verb.route.path, verb.route.run_path):
            if path is not None:
                answer = _Answer(desk, feed, verb, for_run=path == verb.route.run_path)
                places.setdefault(PREFIX + path, {})[verb.route.method] = answer
    for path, answers in places.items():
        app.add_route(path, _at(answers), methods=list(answers), include_in_schema=False)
    return app


#: What the panel of an extension may ask for with the extension's own token.
PANEL_VERBS = frozenset(
    {
        "status", "attention", "task.list", "task.explain", "task.pause", "task.resume", "task.continue", "hold",
    }
)  # fmt: skip


async def _executors_token(desk: Desk, caller: Caller, name: str) -> str:
    """A fresh executor's token of this name; an earlier executor's token of the name is taken back."""
    for token in desk.tokens():
        if token.name == name and token.revoked_at is None:
            if token.role is not Role.EXECUTOR:
                raise Conflict(f"there is a token called {name} of another role", field="name")
            await desk.revoke_token(caller, token.id, None)
    made = await desk.make_token(caller, Wanted(Role.EXECUTOR, name), None)
    return str(made.result["secret"])


def _at(answers: Mapping[str, _Answer]) -> Callable[[Request], Awaitable[Response]]:
    """One address, which says of itself every method it takes."""

    async def answer(request: Request) -> Response:
        return await answers["GET" if request.method == "HEAD" else request.method].to(request)

    return answer


class _Answer:
    """One verb at one address."""

    def __init__(self, desk: Desk, feed: Feed, verb: verbs.Verb, *, for_run: bool) -> None:
        self._desk = desk
        self._feed = feed
        self._verb = verb
        self._for_run = for_run

    async def to(self, request: Request) -> Response:
        """Carry out the verb, and say what came of it."""
        caller: Caller = request.scope[CALLER]
        if request.scope.get(PANEL) and self._verb.name in PANEL_VERBS:
            caller = Caller(Role.OPERATOR, f"panel of {caller.name}")
        try:
            verbs.allowed(self._verb, caller)
            if self._verb.mutates:
                return await self._change(request, caller)
            raw = self._named(request, query(request))
            if self._verb.name == "events" and wants_stream(request):
                return self._stream(request, raw)
            return _json(200, await verbs.call(self._desk, caller, self._verb.name, raw, lenient=True))
        except present.NOT_AS_ASKED as fault:
            return told(fault)

    async def _change(self, request: Request, caller: Caller) -> Response:
        if request.url.query:
            raise Mistake("parameters of this verb go into the body", field="query")
        key = request.headers.get("idempotency-key")
        if key is None or not KEY.fullmatch(key):
            raise Mistake("an Idempotency-Key of 1 to 200 visible ASCII characters is needed", field="Idempotency-Key")
        raw = self._named(request, await body(request))
        said = await verbs.call(self._desk, caller, self._verb.name, raw, key)
        self._feed.notify()
        if "effects" not in said:
            return _json(200, said)  # a look that is recorded: it tells what it saw
        if said["replayed"]:
            return _json(200, said, {"Idempotent-Replay": "true"})
        return _json(201 if changed(said) else 200, said)

    def _named(self, request: Request, raw: dict[str, Any]) -> dict[str, Any]:
        """The parameters with the names of the address among them."""
        for name, value in request.path_params.items():
            if name in raw:
                raise Mistake(f"{name} stands in the address and is not given again", field=name)
            raw[name] = value if not self._for_run or value.startswith("r-") else f"r-{value}"
        return raw

    def _stream(self, request: Request, raw: dict[str, Any]) -> Response:
        params = verbs.parsed(self._verb, raw, lenient=True)
        assert isinstance(params, verbs.EventsAfter)
        desk = self._desk
        task_id = None if params.task is None else desk.task_id(params.task)
        run_id = None if params.run is None else desk.run_id(params.run)
        seen = request.headers.get("last-event-id") or (params.after if "after" in raw else None)
        after = last = desk.last_event()
        if seen is not None:
            given = verbs.parsed(self._verb, {"after": seen}, lenient=True)
            assert isinstance(given, verbs.EventsAfter)
            after = min(verbs.after_of(given.after), last)  # a number of another registry must not hush the feed
        if self._feed.full:
            busy = present.explanation("busy", "too many feeds are open; close one, or come back later")
            return _json(429, busy, {"Retry-After": "5"})
        return StreamingResponse(
            self._feed.stream(
                lambda n, limit: desk.events(n, limit, task_id=task_id, run_id=run_id), after, (task_id, run_id)
            ),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


def changed(said: Mapping[str, Any]) -> bool:
    """Whether a verb made anything; a run with no task that changed was left as it was."""
    effects = said["effects"]
    return not effects or any(effect["changed"] for effect in effects)


def query(request: Request) -> dict[str, Any]:
    """The query as parameters; raises Mistake where one is given twice."""
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            raise Mistake(f"{name[:64]} is given twice", field=name[:64])
        found[name] = value
    return found


async def body(request: Request) -> dict[str, Any]:
    """The body as parameters, {} where there is none. Raises Mistake for what is no JSON object."""
    raw = await request.body()
    if not raw:
        return {}
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except JSON_DEPTH_FAULTS:
        raise Mistake("the body is not valid JSON in UTF-8", field="body") from None
    if not isinstance(value, dict):
        raise Mistake("the body must be a JSON object", field="body")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is given twice")
    return made


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def wants_stream(request: Request) -> bool:
    """Whether the feed is asked for rather than a page: the first of the two kinds that is named counts."""
    kinds = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    named = [kind for kind in kinds if kind in ("application/json", "text/event-stream")]
    return bool(named) and named[0] == "text/event-stream"


def told(fault: BaseException) -> Response:
    """What a fault is answered with."""
    status = next(status for kind, status in STATUS if isinstance(fault, kind))
    again = "1" if status == 503 else str(fault.retry_after) if isinstance(fault, Pressed) else None
    return _json(status, present.error(fault), None if again is None else {"Retry-After": again})


def _json(status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(content, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


async def _told(request: Request, fault: Exception) -> Response:
    """What routing itself refuses, in the one shape."""
    assert isinstance(fault, HTTPException)
    code = {404: "not_found", 405: "no_such_method"}.get(fault.status_code, "bad_request")
    message = {404: "there is nothing at this address", 405: "this address does not take that method"}
    said = present.explanation(code, message.get(fault.status_code, "this cannot be answered"))
    return _json(fault.status_code, said, fault.headers)


async def _fault(request: Request, fault: Exception) -> Response:
    """A fault of ours: the log has it, the answer only says so."""
    _LOG.error("%s %s failed: %s", request.method, request.url.path, type(fault).__name__)
    return _json(500, present.error(fault))


async def _healthz(request: Request) -> Response:
    return _json(200, {"ok": True})


async def _document(request: Request) -> Response:
    return _json(200, schema.document())
